"""A graph inside a graph; with `ask`, the inner one stops for a person."""

from __future__ import annotations

import operator
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    text: str
    ask: bool
    log: Annotated[list[str], operator.add]


def outer(state: State) -> State:
    return {"log": ["outer"]}


def inner(state: State) -> State:
    answer = interrupt({"question": "go on?"}) if state.get("ask") else "not asked"
    return {"log": [f"inner: {answer}"]}


def last(state: State) -> State:
    return {"log": ["last"]}


_child = StateGraph(State)
_child.add_node("inner", inner)
_child.add_edge(START, "inner")

_parent = StateGraph(State)
_parent.add_node("outer", outer)
_parent.add_node("child", _child.compile())
_parent.add_node("last", last)
_parent.add_edge(START, "outer")
_parent.add_edge("outer", "child")
_parent.add_edge("child", "last")
graph = _parent.compile()
