"""Loads, whatever happens beside it."""

from __future__ import annotations

from typing import TypedDict

from langgraph.graph import START, StateGraph


class State(TypedDict):
    text: str


def same(state: State) -> State:
    return state


graph = StateGraph(State)
graph.add_node("same", same)
graph.add_edge(START, "same")
