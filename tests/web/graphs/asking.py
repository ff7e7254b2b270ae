"""Graphs that ask whatever they are given, so that every dialect can be put before a person."""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    ask: Any
    answer: Any


def put(state: State) -> State:
    return {"answer": interrupt(state["ask"])}


def go_on(state: State) -> State:
    return {"answer": "went on"}


_ask = StateGraph(State)
_ask.add_node("put", put)
_ask.add_edge(START, "put")
ask = _ask.compile()

_stop = StateGraph(State)
_stop.add_node("publish", go_on)
_stop.add_edge(START, "publish")
stop = _stop.compile(interrupt_before=["publish"])
