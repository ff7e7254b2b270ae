"""The agent that the examples of the documentation talk to: it asks the question of its input, or repeats the text."""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    messages: list[Any]
    text: str
    question: Any
    answer: Any


def reply(state: State) -> State:
    if question := state.get("question"):
        return {"answer": interrupt(question)}
    return {"answer": state.get("text", "")}


graph = StateGraph(State).add_node("reply", reply).add_edge(START, "reply").compile()
