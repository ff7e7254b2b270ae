"""Three nodes that a test can hold: with `gate`, node `a` makes the file `a.started` there and waits for `a.go`."""

from __future__ import annotations

import asyncio
import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.graph import START, StateGraph


class State(TypedDict, total=False):
    text: str
    gate: str
    delay: float
    log: Annotated[list[str], operator.add]


async def _pass(gate: Path, name: str) -> None:
    (gate / f"{name}.started").touch()
    while not (gate / f"{name}.go").exists():  # noqa: ASYNC110 - another process opens the gate
        await asyncio.sleep(0.005)


def _node(name: str) -> Any:
    async def node(state: State) -> State:
        if state.get("gate"):
            await _pass(Path(state["gate"]), name)
        await asyncio.sleep(state.get("delay", 0))
        return {"log": [f"{state.get('text', '')}:{name}"]}

    return node


builder = StateGraph(State)
for name in ("a", "b", "c"):
    builder.add_node(name, _node(name))
builder.add_edge(START, "a")
builder.add_edge("a", "b")
builder.add_edge("b", "c")
graph = builder.compile()
