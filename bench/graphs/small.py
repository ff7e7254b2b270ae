"""Graphs that do nothing, so that what is measured is the server around them. They need LangGraph and nothing else,
because both servers load them, each from an environment of its own."""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    text: str
    reply: str


async def answer(state: State) -> State:
    return {"reply": state.get("text", "")}


async def ask(state: State) -> State:
    return {"reply": str(interrupt({"question": "Go on?"}))}


def chain(node: Any, names: tuple[str, ...]) -> StateGraph[State]:
    """Nodes that follow one another, all doing the same."""
    builder = StateGraph(State)
    for before, name in zip((START, *names), names, strict=False):
        builder.add_node(name, node)
        builder.add_edge(before, name)
    return builder


builders = {
    "echo": chain(answer, ("answer",)),
    "steps": chain(answer, ("first", "second", "third")),
    "question": chain(ask, ("ask",)),
}
echo = builders["echo"].compile()
steps = builders["steps"].compile()
question = builders["question"].compile()
