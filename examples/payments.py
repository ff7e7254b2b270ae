"""A custom graph with a gated tool: every payment needs a person's approval, on every path through the graph.

Serve it with `assent dev --config examples/langgraph.json`; the approval request appears in the inbox.
"""

from __future__ import annotations

from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from assent import current_grant, gated

payments: dict[str, tuple[str, int]] = {}
"""Simulates a bank that executes repeated orders with the same idempotency key once."""


@gated(idempotent=True)
@tool
def pay(account: str, cents: int) -> str:
    """Pays an amount to an account."""
    grant = current_grant()
    assert grant is not None, "a gated tool runs only with a grant"
    payments[grant.id] = (account, cents)
    return f"Paid {cents / 100:.2f} to {account}."


builder = StateGraph(MessagesState)
builder.add_node("tools", ToolNode([pay]))
builder.add_edge(START, "tools")
graph = builder.compile()
