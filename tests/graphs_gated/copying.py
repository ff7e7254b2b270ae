"""Graphs whose threads are worth copying: `spending` pays from the account that its config names, and the others have
handled a password that their latest state has no call for any more."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, RemoveMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages

from tests.graphs_gated.agents import _leave
from tests.graphs_gated.stopping import Order, prepare

PASSWORD = "correct-horse-battery"


def spend(order: Order, config: RunnableConfig) -> Order:
    account = config["configurable"].get("account", "default")
    user = config["configurable"].get("langgraph_auth_user_id")
    _leave(order["log"], f"{order['tag']} from {account} as {user}")
    return {}


def _spending() -> Any:
    builder: Any = StateGraph(Order)
    builder.add_node("prepare", prepare)
    builder.add_node("spend", spend)
    builder.add_edge(START, "prepare")
    builder.add_edge("prepare", "spend")
    return builder


spending = _spending().compile(interrupt_before=["spend"])


class Talk(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]


class Inner(TypedDict, total=False):
    said: Annotated[list[AnyMessage], add_messages]
    done: str


class Outer(TypedDict, total=False):
    done: str


def _signing_in(result: str) -> list[AnyMessage]:
    call = {"name": "sign_in", "args": {"password": PASSWORD}, "id": "call-1"}
    return [AIMessage("", id="call", tool_calls=[call]), ToolMessage(result, tool_call_id="call-1", name="sign_in")]


def _then(result: str, forgotten: str) -> Any:
    builder: Any = StateGraph(Talk)
    builder.add_node("sign_in", lambda _: {"messages": _signing_in(result)})
    builder.add_node("forget", lambda _: {"messages": [RemoveMessage(id=forgotten)]})
    builder.add_edge(START, "sign_in")
    builder.add_edge("sign_in", "forget")
    return builder.compile()


forgetful = _then("ok", REMOVE_ALL_MESSAGES)
quoting = _then(f"signed in with {PASSWORD}", "call")

_inner: Any = StateGraph(Inner)
_inner.add_node("sign_in", lambda _: {"said": _signing_in("ok"), "done": "yes"})
_inner.add_edge(START, "sign_in")
_outer: Any = StateGraph(Outer)
_outer.add_node("inner", _inner.compile(checkpointer=True))
_outer.add_edge(START, "inner")
discreet = _outer.compile()
