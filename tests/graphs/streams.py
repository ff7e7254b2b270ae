"""Something for every kind of stream: lines of its own, a model that talks inside a subgraph, and a message at once."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langgraph.config import get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph


class State(MessagesState, total=False):
    lines: int


async def announce(state: State) -> dict[str, Any]:
    """With `lines`, writes so many at once, without ever letting anything else happen in between."""
    get_stream_writer()({"progress": "outside"})
    for number in range(state.get("lines", 0)):
        get_stream_writer()({"line": number})
    return {"messages": [AIMessage("at once", id="whole")]}


async def talk(state: MessagesState) -> dict[str, Any]:
    get_stream_writer()({"progress": "inside"})
    return {"messages": [await FakeListChatModel(responses=["abc"]).ainvoke(state["messages"])]}


_child = StateGraph(MessagesState)
_child.add_node("talk", talk)
_child.add_edge(START, "talk")

_parent = StateGraph(State)
_parent.add_node("announce", announce)
_parent.add_node("child", _child.compile())
_parent.add_edge(START, "announce")
_parent.add_edge("announce", "child")
graph = _parent.compile()
