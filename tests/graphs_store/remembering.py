"""A graph that stores what it is told, and reads what others stored."""

from __future__ import annotations

from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime


class State(TypedDict, total=False):
    put: dict[str, str]
    known: dict[str, str]


async def remember(state: State, runtime: Runtime[None]) -> State:
    assert runtime.store is not None
    for key, text in (state.get("put") or {}).items():
        await runtime.store.aput(("notes",), key, {"text": text})
    known = await runtime.store.asearch(("notes",), limit=100)
    return {"known": {item.key: item.value["text"] for item in known}}


graph = StateGraph(State).add_node(remember).add_edge(START, "remember").add_edge("remember", END).compile()
