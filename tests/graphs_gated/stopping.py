"""Graphs whose only guard is a breakpoint, and one whose first node asks what nobody has to approve.

With `hold` in the state, the node before the breakpoint makes the file `<hold>.started` and waits for `<hold>.go`.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from assent import gated
from tests.graphs_gated.agents import _leave


def _last(before: Any, now: Any) -> Any:
    """Nodes that run side by side may write the same value."""
    return now


class Order(TypedDict, total=False):
    log: Annotated[str, _last]
    tag: Annotated[str, _last]
    hold: Annotated[str, _last]
    answer: Annotated[Any, _last]
    fails: Annotated[bool, _last]
    moves: Annotated[int, _last]
    paid: Annotated[str, _last]


def prepare(order: Order) -> Order:
    if order.get("hold"):
        Path(f"{order['hold']}.started").touch()
        while not Path(f"{order['hold']}.go").exists():
            time.sleep(0.005)
    return {"tag": order.get("tag", "")}


def pay(order: Order) -> Order:
    if order.get("fails"):
        raise RuntimeError("the bank is closed")
    _leave(order["log"], order["tag"])
    return {}


def ask(order: Order) -> Order:
    question = {"kind": "clarification", "clarifications": [{"call_id": "1", "question": "Which?", "context": ""}]}
    return {"answer": interrupt(question)}


@gated
def transfer(tag: str, log: str) -> str:
    """Moves money."""
    _leave(log, tag)
    return "moved"


@gated
def order_and_ask(tag: str, log: str) -> str:
    """Has an effect before it asks, and one after the answer."""
    _leave(log, f"ordered {tag}")
    ask({})
    _leave(log, f"finished {tag}")
    return "done"


def order(state: Order) -> Order:
    order_and_ask(tag=state["tag"], log=state["log"])
    return {}


def move(order: Order) -> Order:
    transfer(tag=order["tag"], log=order["log"])
    return {"moves": order["moves"] - 1}


def _paying() -> Any:
    builder: Any = StateGraph(Order)
    builder.add_node("prepare", prepare)
    builder.add_node("pay", pay)
    builder.add_edge(START, "prepare")
    builder.add_edge("prepare", "pay")
    return builder


free = _paying().compile()
stopping = _paying().compile(interrupt_before=["pay"])
after = _paying().compile(interrupt_after=["prepare"])
before_all = _paying().compile(interrupt_before="*")
after_all = _paying().compile(interrupt_after="*")

_outer: Any = StateGraph(Order)
_outer.add_node("inner", stopping)
_outer.add_edge(START, "inner")
nested = _outer.compile()

_asking: Any = StateGraph(Order)
_asking.add_node("ask", ask)
_asking.add_node("move", move)
_asking.add_edge(START, "ask")
for node in ("ask", "move"):
    _asking.add_conditional_edges(node, lambda order: "move" if order.get("moves") else END, ["move", END])
asking = _asking.compile()
asking_unseen = asking.with_config(tags=["langsmith:hidden"])


def ask_and_pay(order: Order) -> Order:
    return {**ask(order), **pay(order)}


def ask_beside(order: Order) -> Any:
    return {"answer": ask(order)["answer"]}


_beside: Any = StateGraph(Order)
_beside.add_node("ask", ask_beside)
_beside.add_node("inner", stopping)
_beside.add_edge(START, "ask")
_beside.add_edge(START, "inner")
beside = _beside.compile()

_inside: Any = StateGraph(Order)
_inside.add_node("prepare", prepare)
_inside.add_node("pay", ask_and_pay)
_inside.add_edge(START, "prepare")
_inside.add_edge("prepare", "pay")
inside = _inside.compile(interrupt_before=["pay"])


def charge(order: Order) -> Order:
    """Its output is stored, so that the checkpoint before it shows it as done."""
    return {**pay(order), "paid": "yes"}


def ask_and_charge(order: Order) -> Order:
    return {**ask(order), **charge(order)}


def ask_and_transfer(order: Order, config: RunnableConfig) -> Order:
    """Sends the money where its config says, or its metadata."""
    answer = ask(order)
    account = config["configurable"].get("account") or config["metadata"].get("account") or "payroll"
    _leave(order["log"], f"{order['tag']} to {account}")
    return {**answer, "paid": "yes"}


def _line(node: Any) -> Any:
    builder: Any = StateGraph(Order)
    builder.add_node("prepare", prepare)
    builder.add_node("pay", node)
    builder.add_edge(START, "prepare")
    builder.add_edge("prepare", "pay")
    return builder


def _around(node: Any) -> Any:
    builder: Any = StateGraph(Order)
    builder.add_node("work", node)
    builder.add_edge(START, "work")
    return builder.compile()


ordering = _around(order)
charging = _line(charge).compile(interrupt_before=["pay"])
charging_after = _line(charge).compile(interrupt_after=["prepare"])
charging_inside = _around(charging)
asked_charging = _line(ask_and_charge).compile(interrupt_before=["pay"])
configured = _line(ask_and_transfer).compile(interrupt_before=["pay"])
inquiring = _line(ask).compile()


def _asked_first() -> Any:
    """Asks what nobody has to approve, and stops then."""
    builder: Any = StateGraph(Order)
    builder.add_node("ask", ask)
    builder.add_node("pay", charge)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", "pay")
    return builder.compile(interrupt_before=["pay"])


asked_first = _around(_asked_first())
asking_and_paying = _asked_first().builder.compile()


def _joined() -> Any:
    """Pays when both nodes before have ended."""
    builder: Any = StateGraph(Order)
    for name in ("a", "b"):
        builder.add_node(name, prepare)
        builder.add_edge(START, name)
    builder.add_node("pay", charge)
    builder.add_edge(["a", "b"], "pay")
    return builder.compile(interrupt_before=["pay"])


joined = _joined()


async def build_and_call(order: Order) -> Any:
    return await _line(charge).compile(interrupt_before=["pay"]).ainvoke(order)


async def build_and_ask(order: Order) -> Any:
    return await _asked_first().ainvoke(order)


async def build_freely(order: Order) -> Any:
    return await _line(charge).compile().ainvoke(order)


_REGISTRY = {"charging": charging}


async def look_up_and_call(order: Order) -> Any:
    return await _REGISTRY["charging"].ainvoke(order)


built = _around(build_and_call)
built_asking = _around(build_and_ask)
built_deep = _around(built)
built_freely = _around(build_freely)
looked_up = _around(look_up_and_call)
looked_up_unseen = looked_up.with_config(tags=["langsmith:hidden"])


_question = _around(ask)
_remembering = _line(charge).compile(checkpointer=True, interrupt_before=["pay"])
_asking_and_remembering = _asked_first().builder.compile(checkpointer=True, interrupt_before=["pay"])


def _called(order: Order) -> Order:
    return {"log": order["log"], "tag": order["tag"]}


async def ask_in_a_graph_and_call(order: Order) -> Any:
    """Which graphs a node calls is looked up in its code, and only the first is found."""
    await _question.ainvoke(_called(order))
    return await charging.ainvoke(_called(order))


async def ask_in_a_graph_and_remember(order: Order) -> Any:
    if order.get("moves"):
        await _question.ainvoke(_called(order))
    return await _remembering.ainvoke(_called(order))


async def ask_and_remember(order: Order) -> Any:
    ask(order)
    return await _remembering.ainvoke(_called(order))


async def remember(order: Order) -> Any:
    return await _asking_and_remembering.ainvoke(_called(order))


called_second = _around(ask_in_a_graph_and_call)
remembered_second = _around(ask_in_a_graph_and_remember)
remembered_after_a_question = _around(ask_and_remember)
remembered = _around(remember)
remembered_node = _around(_asking_and_remembering)


CONNECTION = "connection to db.internal refused for user app"
"""What an exception of an author's code may say, and no caller should read."""


class OddError(ConnectionError):
    """As some libraries write theirs."""

    def __repr__(self) -> str:
        return f"<{CONNECTION}>"


def _fail(state: Any) -> Any:
    raise (OddError if state.get("text") == "odd" else ConnectionError)(CONNECTION)


def _refuse(before: Any, now: Any) -> Any:
    if now == "refused":
        raise ConnectionError(CONNECTION)
    return now


class Refusing(TypedDict, total=False):
    text: Annotated[str, _refuse]


failing = StateGraph(Refusing).add_node("call", _fail).add_edge(START, "call").compile()
