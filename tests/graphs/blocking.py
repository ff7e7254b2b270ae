"""One node that does what no async node should: it keeps the event loop from doing anything else."""

from __future__ import annotations

import time
from typing import TypedDict

from langgraph.graph import START, StateGraph


class State(TypedDict, total=False):
    seconds: float
    done: bool


async def block(state: State) -> State:
    time.sleep(state["seconds"])  # noqa: ASYNC251 - the point of this graph
    return {"done": True}


builder = StateGraph(State)
builder.add_node("block", block)
builder.add_edge(START, "block")
graph = builder.compile()
