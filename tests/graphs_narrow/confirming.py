"""For a server that executes one run at a time: a graph that asks before it acts, and one that keeps the place.

`holding` makes the file `<hold>.started` and waits for `<hold>.go`.
"""

from __future__ import annotations

from typing import Any

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from tests.graphs_gated.agents import _leave
from tests.graphs_gated.stopping import Order, prepare


def confirm(order: Order) -> Order:
    answer = interrupt({"pay": order["tag"]})
    _leave(order["log"], f"{order['tag']}: {answer}")
    return {}


def _of(node: Any) -> Any:
    builder: Any = StateGraph(Order)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    return builder.compile()


confirming = _of(confirm)
holding = _of(prepare)
