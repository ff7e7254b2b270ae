"""Two gated tools in one ToolNode, of which one pauses with a question of its own: only one question is open at a time,
and the paused call goes on with its own answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt

from assent import LocalInbox, gated

CONFIG: Any = {"configurable": {"thread_id": "t"}}


def _graph(inbox: LocalInbox, effects: list[str]) -> Any:
    @tool
    def order(what: str) -> str:
        """Orders, and asks about the details."""
        effects.append("ordered")
        effects.append(f"told {interrupt({'question': 'which one?'})}")
        return "done"

    @tool
    def pay(price: int) -> str:
        """Pays."""
        effects.append("paid")
        return "paid"

    calls: Any = [
        {"name": "order", "args": {"what": "a room"}, "id": "o"},
        {"name": "pay", "args": {"price": 1}, "id": "p"},
    ]
    builder = StateGraph(MessagesState)
    builder.add_node("model", lambda state: {"messages": [AIMessage("", tool_calls=calls)]})
    guard = gated(inbox=inbox)
    builder.add_node("tools", ToolNode([guard(order), guard(pay)]))
    builder.add_edge(START, "model")
    builder.add_edge("model", "tools")
    return builder.compile(checkpointer=InMemorySaver())


def _approve(inbox: LocalInbox, graph: Any) -> Any:
    [item] = inbox.items()
    inbox.decide(item.id, "approve", revision=item.revision, hash=item.hash, by="ana")
    return graph.invoke(inbox.command("t"), CONFIG)


@pytest.mark.promise("P2")
def test_paused_call_starts_once_and_gets_its_answer_beside_another_gated_call(tmp_path: Path) -> None:
    inbox, effects = LocalInbox(tmp_path / "gate.db"), list[str]()
    graph = _graph(inbox, effects)
    graph.invoke({"messages": [("user", "go")]}, CONFIG)
    [question] = _approve(inbox, graph)["__interrupt__"]
    assert (question.value, effects, inbox.items()) == ({"question": "which one?"}, ["ordered"], [])
    graph.invoke(Command(resume={question.id: "the red one"}), CONFIG)
    assert "told the red one" in effects
    _approve(inbox, graph)
    assert effects.count("paid") == 1
    assert effects.count("told the red one") == 1
