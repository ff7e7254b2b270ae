"""Graphs whose threads move from another server: each stops in a way of its own, and can go on."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.func import entrypoint
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.runtime import Runtime
from langgraph.types import Send, interrupt


@dataclass
class Order:
    item: str
    count: int


class Talk(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    order: Order
    answer: str


class Text(TypedDict, total=False):
    text: str
    listed: Annotated[list[str], operator.add]


@dataclass
class Context:
    model: str = "small"


def _order(state: Talk) -> Talk:
    said = str(state["messages"][-1].content)
    return {"order": Order(said, len(said)), "messages": [AIMessage(f"order {said}", id=f"ordered {said}")]}


def _confirm(state: Talk, runtime: Runtime[Context]) -> Talk:
    """Asks only about what is marked with a question mark, so that some threads wait and others are done."""
    order, kinds = state["order"], ",".join(message.type for message in state["messages"])
    answer = interrupt(f"really {order.item}?") if order.item.endswith("?") else "unasked"
    return {"answer": f"{order.item} {order.count} {kinds} {answer} {runtime.context.model}"}


def _asks_twice(state: Text) -> Text:
    first = interrupt("first")
    return {"listed": [first, interrupt("second")]}


def _approved(state: Text) -> Text:
    return {"listed": [interrupt(f"approve {state['text']}")]}


def _spread(state: Text) -> list[Send]:
    return [Send("approve", {"text": f"{state['text']}{number}"}) for number in (1, 2)]


def _named(name: str) -> Any:
    return lambda state: {"listed": [name]}


def _ask(state: Text) -> Text:
    return {"listed": [interrupt("go on?")]}


def _fails(state: Text) -> Text:
    raise ValueError("no luck")


def _line(state: type[Any], *nodes: tuple[str, Any], **options: Any) -> StateGraph[Any, Any, Any, Any]:
    built: StateGraph[Any, Any, Any, Any] = StateGraph(state, **options)
    for name, node in nodes:
        built.add_node(name, node)
    path = [START, *(name for name, _ in nodes), END]
    for first, following in pairwise(path):
        built.add_edge(first, following)
    return built


def _joined() -> Any:
    """`last` waits for a short and a long branch, and the long one asks."""
    built = StateGraph(Text)
    for name, node in {"short": _named("short"), "begin": _named("begin"), "ask": _ask, "last": _named("last")}.items():
        built.add_node(name, node)
    built.add_edge(START, "short")
    built.add_edge(START, "begin")
    built.add_edge("begin", "ask")
    built.add_edge(["short", "ask"], "last")
    return built.compile()


def _sent() -> Any:
    built = StateGraph(Text)
    built.add_node("plan", _named("plan"))
    built.add_node("approve", _approved)
    built.add_edge(START, "plan")
    built.add_conditional_edges("plan", _spread, ["approve"])
    return built.compile()


chat = _line(Talk, ("order", _order), ("confirm", _confirm), context_schema=Context).compile()
twice = _line(Text, ("ask", _asks_twice)).compile()
sent = _sent()
joined = _joined()
nested = _line(Text, ("inside", _line(Text, ("ask", _ask)).compile()), ("after", _named("after"))).compile()
stopping = _line(Text, ("before", _named("before")), ("act", _named("act"))).compile(interrupt_before=["act"])
failing = _line(Text, ("before", _named("before")), ("fail", _fails)).compile()


@entrypoint()
def function(given: str, *, previous: str | None = None) -> str:
    """Asks only about what is marked with a question mark."""
    answer = interrupt(f"really {given}?") if given.endswith("?") else "unasked"
    return f"{given} {answer} {previous}"
