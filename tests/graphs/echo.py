"""The smallest graphs: one node that answers, one node that fails."""

from __future__ import annotations

from typing import TypedDict

from langgraph.graph import START, StateGraph


class State(TypedDict, total=False):
    text: str
    reply: str


async def echo(state: State) -> State:
    return {"reply": state.get("text", "")}


def fail(state: State) -> State:
    raise ValueError(f"boom: {state.get('text', '')}")


def _one_node(name: str, node: object) -> StateGraph[State]:
    builder = StateGraph(State)
    builder.add_node(name, node)  # type: ignore[call-overload]
    builder.add_edge(START, name)
    return builder


graph = _one_node("echo", echo).compile()
failing = _one_node("fail", fail).compile()
