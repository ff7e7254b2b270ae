"""Graphs that read the config or the metadata of their run after a person has been asked."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from tests.graphs_gated.agents import _leave
from tests.graphs_gated.stopping import Order, ask, prepare, transfer


def _approval(account: str) -> dict[str, Any]:
    call = {"name": "pay", "args": {"account": account}, "description": "pay"}
    allowed = {"action_name": "pay", "allowed_decisions": ["approve", "reject"]}
    return {"action_requests": [call], "review_configs": [allowed]}


def _account(config: RunnableConfig) -> str:
    named = config["configurable"].get("account") or config["metadata"].get("account")
    return str(named or "payroll")


def pay_to(order: Order, config: RunnableConfig) -> Order:
    _leave(order["log"], f"{order['tag']} to {_account(config)}")
    return {}


def approve_and_pay_to(order: Order, config: RunnableConfig) -> Order:
    interrupt(_approval("as configured"))
    return pay_to(order, config)


def approve_and_hold(order: Order, config: RunnableConfig) -> Order:
    """With `hold` in the state it waits after the answer, as `prepare` does."""
    interrupt(_approval("as configured"))
    prepare(order)
    return pay_to(order, config)


def ask_and_tell(order: Order, config: RunnableConfig) -> Order:
    """Leaves the account, the user by the metadata, and the user by the config."""
    ask(order)
    users = [str(config[part].get("langgraph_auth_user_id")) for part in ("metadata", "configurable")]
    by_id = str(config["metadata"].get("user_id"))
    _leave(order["log"], " ".join([_account(config), *users, by_id]))
    return {}


def transfer_to(order: Order, config: RunnableConfig) -> Order:
    transfer(tag=_account(config), log=order["log"])
    return {}


def ask_or_approve(order: Order, config: RunnableConfig) -> Order:
    """Asks which account or, where the config names one, for an approval: either is the node's first question."""
    account = config["configurable"].get("account") or str(interrupt(_WHICH))
    if interrupt(_approval(account))["decisions"][0]["type"] == "approve":
        _leave(order["log"], f"paid {account}")
    return {}


def ask_too(order: Order) -> Order:
    return {"answer": interrupt({"kind": "clarification", "clarifications": [{**_QUESTION, "call_id": "2"}]})}


_QUESTION = {"call_id": "1", "question": "Which?", "context": ""}
_WHICH = {"kind": "clarification", "clarifications": [_QUESTION]}


def _line(last: Any, first: Any = prepare) -> Any:
    builder: Any = StateGraph(Order)
    builder.add_node("prepare", first)
    builder.add_node("pay", last)
    builder.add_edge(START, "prepare")
    builder.add_edge("prepare", "pay")
    return builder


paying_to = _line(pay_to).compile(interrupt_before=["pay"])
approving = _line(approve_and_pay_to).compile()
holding = _line(approve_and_hold, first=lambda order: {}).compile()
telling = _line(ask_and_tell).compile()
wiring = _line(transfer_to).compile()

_two: Any = StateGraph(Order)
_two.add_node("pay", ask_or_approve)
_two.add_node("ask", ask_too)
_two.add_edge(START, "pay")
_two.add_edge(START, "ask")
two = _two.compile()
