"""A graph that asks, and then works until it is let go: its run can be stopped after the answer has arrived."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    question: Any
    log: str
    answer: Any


async def ask(state: State) -> State:
    return {"answer": interrupt(state["question"])}


async def work(state: State) -> State:
    """Says in the file `log` that it has begun, and ends once `<log>.go` is there."""
    Path(state["log"]).touch()
    while not Path(f"{state['log']}.go").exists():  # noqa: ASYNC110 - the test makes it
        await asyncio.sleep(0.01)
    return {}


builder = StateGraph(State)
builder.add_node("ask", ask)
builder.add_node("work", work)
builder.add_edge(START, "ask")
builder.add_edge("ask", "work")
graph = builder.compile()
