"""Graphs that ask by `interrupt` alone: a request of Agent Inbox, a text, an object, and several at once by `Send`.

Their questions and their state hold the author's own classes.
"""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import Send, interrupt

from tests.kinds.graphs.orders import Order, names, sample, samples, ship

YES = "yes"


class State(TypedDict, total=False):
    log: str
    numbers: list[int]
    kept: Any
    answers: Annotated[list[Any], operator.add]
    types: list[str]


class Part(TypedDict):
    order: Order
    log: str


def keep(state: State) -> State:
    return {"kept": samples()}


def note(state: State) -> State:
    return {"types": names(state["kept"])}


def ask_in_agent_inbox(state: State) -> State:
    allowed = dict.fromkeys(("allow_accept", "allow_edit", "allow_respond", "allow_ignore"), True)
    request = {"action": "ship", "args": {"order": state["kept"][0]}}
    [answer] = interrupt({"action_request": request, "config": allowed, "description": "Please review"})
    if answer["type"] in ("accept", "edit"):
        ship(Order.model_validate(answer["args"]["args"]["order"]), state["log"])
    return {"answers": [answer]}


def ask_by_text(state: State) -> State:
    order: Order = state["kept"][0]
    return _asked(f"Ship to {order.address.city}, priority {order.priority.value}?", order, state["log"])


def ask_by_object(state: State) -> State:
    return _asked({"question": "Ship?", "order": state["kept"][0]}, state["kept"][0], state["log"])


def ask_for_part(part: Part) -> State:
    return _asked({"question": f"Ship {part['order'].number}?", "order": part["order"]}, part["order"], part["log"])


def _asked(question: Any, order: Order, log: str) -> State:
    answer = interrupt(question)
    if answer == YES:
        ship(order, log)
    return {"answers": [answer]}


def parts(state: State) -> list[Send]:
    return [Send("ask", Part(order=sample(number), log=state["log"])) for number in state["numbers"]]


def _asking(ask: Any) -> StateGraph[Any, Any, Any, Any]:
    graph = StateGraph(State)
    for name, node in {"keep": keep, "ask": ask, "note": note}.items():
        graph.add_node(name, node)
    graph.add_edge(START, "keep")
    graph.add_edge("ask", "note")
    return graph


agent_inbox = _asking(ask_in_agent_inbox).add_edge("keep", "ask").compile()
text = _asking(ask_by_text).add_edge("keep", "ask").compile()
record = _asking(ask_by_object).add_edge("keep", "ask").compile()
parallel = _asking(ask_for_part).add_conditional_edges("keep", parts, ["ask"]).compile()
