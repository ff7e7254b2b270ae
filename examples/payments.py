"""A graph of one's own, with a plain gated tool: whatever the graph does, nobody is paid without a person's consent.

Serve it with `assent dev --config examples/langgraph.json`; the approval then waits in the inbox.
"""

from __future__ import annotations

from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from assent import current_grant, gated

payments: dict[str, tuple[str, int]] = {}
"""Stands for a bank that carries out each order once, whatever number of times it hears of it."""


@gated(idempotent=True)
@tool
def pay(account: str, cents: int) -> str:
    """Pays an amount to an account."""
    grant = current_grant()
    assert grant is not None, "the gate lets nothing through without one"
    payments[grant.id] = (account, cents)
    return f"Paid {cents / 100:.2f} to {account}."


builder = StateGraph(MessagesState)
builder.add_node("tools", ToolNode([pay]))
builder.add_edge(START, "tools")
graph = builder.compile()
