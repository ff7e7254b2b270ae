"""Graphs that do nothing, so that what is measured is the server around them. They need LangGraph and nothing else,
because both servers load them, each from an environment of its own."""

from __future__ import annotations

import asyncio
import time
from typing import Any, TypedDict

from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    text: str
    reply: str


async def answer(state: State) -> State:
    return {"reply": state.get("text", "")}


async def reply(state: MessagesState) -> dict[str, Any]:
    """As long as what was said."""
    return {"messages": [AIMessage(str(state["messages"][-1].content)[::-1])]}


async def ask(state: State) -> State:
    return {"reply": str(interrupt({"question": "Go on?"}))}


async def moment(state: State) -> State:
    """When it was executed, by the clock that all processes of a machine share."""
    return {"reply": str(time.monotonic())}


async def wait(state: State) -> State:
    await asyncio.sleep(0.5)
    return {"reply": "done"}


def chain(node: Any, names: tuple[str, ...]) -> StateGraph[State]:
    """Nodes that follow one another, all doing the same."""
    builder = StateGraph(State)
    for before, name in zip((START, *names), names, strict=False):
        builder.add_node(name, node)
        builder.add_edge(before, name)
    return builder


def conversation() -> StateGraph[MessagesState]:
    builder = StateGraph(MessagesState)
    builder.add_node("reply", reply)
    builder.add_edge(START, "reply")
    return builder


builders: dict[str, StateGraph[Any]] = {
    "echo": chain(answer, ("answer",)),
    "steps": chain(answer, ("first", "second", "third")),
    "question": chain(ask, ("ask",)),
    "moment": chain(moment, ("moment",)),
    "waits": chain(wait, ("wait",)),
    "chat": conversation(),
}
echo = builders["echo"].compile()
steps = builders["steps"].compile()
question = builders["question"].compile()
moment_graph = builders["moment"].compile()
waits = builders["waits"].compile()
chat = builders["chat"].compile()
