"""Graphs that stop for a person: one question, two at once, two in a row in one node, and a breakpoint."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt


class Draft(TypedDict, total=False):
    text: str
    answer: Any


class Answers(TypedDict, total=False):
    text: str
    answers: Annotated[list[Any], operator.add]


def review(state: Draft) -> Draft:
    """Asks as Agent Inbox expects it (`human_interrupt`)."""
    request = {
        "action_request": {"action": "send_email", "args": {"to": "a@b.c", "body": state.get("text", "")}},
        "config": {"allow_ignore": True, "allow_respond": True, "allow_edit": True, "allow_accept": True},
        "description": "Please review",
    }
    answer = interrupt(request)
    return {"answer": answer[0] if isinstance(answer, list) else answer}


def ask_left(state: Answers) -> Answers:
    return {"answers": [f"left={interrupt({'question': 'left?'})}"]}


def ask_right(state: Answers) -> Answers:
    return {"answers": [f"right={interrupt({'question': 'right?'})}"]}


def ask_twice(state: Answers) -> Answers:
    first = interrupt("first?")
    second = interrupt(f"second, after {first}?")
    return {"answers": [first, second]}


def ask_and_act(state: Draft) -> Draft:
    """Takes its answer and then fails on it."""
    answer = interrupt("which?")
    if answer == "break":
        raise ValueError("could not do that")
    return {"answer": answer}


def prepare(state: Draft) -> Draft:
    return {"text": f"{state.get('text', '')}, prepared"}


def publish(state: Draft) -> Draft:
    return {"answer": f"published: {state.get('text', '')}"}


_hitl = StateGraph(Draft)
_hitl.add_node("review", review)
_hitl.add_edge(START, "review")
hitl = _hitl.compile()

_parallel = StateGraph(Answers)
_parallel.add_node("left", ask_left)
_parallel.add_node("right", ask_right)
_parallel.add_edge(START, "left")
_parallel.add_edge(START, "right")
parallel = _parallel.compile()

_twice = StateGraph(Answers)
_twice.add_node("ask", ask_twice)
_twice.add_edge(START, "ask")
twice = _twice.compile()

_fragile = StateGraph(Draft)
_fragile.add_node("act", ask_and_act)
_fragile.add_edge(START, "act")
fragile = _fragile.compile()

_breakpoint = StateGraph(Draft)
_breakpoint.add_node("prepare", prepare)
_breakpoint.add_node("publish", publish)
_breakpoint.add_edge(START, "prepare")
_breakpoint.add_edge("prepare", "publish")
breakpoint = _breakpoint.compile(interrupt_before=["publish"])
