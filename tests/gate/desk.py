"""Library mode for tests: an agent with gated tools, a thread, and a person at the local inbox."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from assent import ApprovalMiddleware
from assent.gate import task
from assent.gate.inbox import LocalItem
from assent.gate.keeper import current_grant
from assent.gate.task import Task
from assent.gate.upstream import interrupt_id
from assent.review.model.grants import Grant
from assent.review.rows import grants, items
from assent.testing import Inbox
from tests.graphs.agents import ScriptedModel

THREAD = "thread-1"
CONFIG: RunnableConfig = {"configurable": {"thread_id": THREAD}}


class Desk:
    """`ran` is what the tools have done, in order."""

    def __init__(self, folder: Path, empty: Path | None = None) -> None:
        self.file = folder / "gate.db"
        if empty is not None:
            shutil.copy(empty, self.file)
        self.inbox = Inbox(self.file, by="ana")
        self.ran: list[Any] = []
        self.under: list[Grant | None] = []

    def send(self, to: str, body: str) -> str:
        """Sends a message."""
        self.ran.append(("send", {"to": to, "body": body}))
        self.under.append(current_grant())
        return f"sent to {to}"

    def pay(self, amount: int) -> str:
        """Pays an amount."""
        self.ran.append(("pay", {"amount": amount}))
        self.under.append(current_grant())
        return f"paid {amount}"

    def agent(self, *middleware: AgentMiddleware[Any, Any, Any], tools: Sequence[Any] = ()) -> Any:
        chosen = middleware or (ApprovalMiddleware(inbox=self.inbox),)
        return create_agent(
            ScriptedModel(), list(tools) or [self.send, self.pay], middleware=chosen, checkpointer=InMemorySaver()
        )

    def gate(self, *args: Any, **kwargs: Any) -> ApprovalMiddleware:
        return ApprovalMiddleware(*args, inbox=self.inbox, **kwargs)

    def item(self, tool: str | None = None) -> LocalItem:
        return self.inbox.waiting(tool)

    def decide(self, verb: Any = "approve", item: LocalItem | None = None, **said: Any) -> LocalItem:
        seen = item or self.item()
        return self.inbox.decide(seen.id, verb, revision=seen.revision, hash=seen.hash, by="ana", **said)

    def go_on(self, agent: Any) -> Any:
        return agent.invoke(self.inbox.command(THREAD), CONFIG)

    def grants(self, item_id: str) -> list[Grant]:
        return self.inbox.run(lambda tx: grants.of_item(tx, item_id))

    def hurry(self, item_id: str, **columns: Any) -> None:
        """Changes an item behind everybody's back."""

        def write(tx: Any) -> None:
            stored_item = items.get(tx, item_id)
            assert stored_item is not None
            items.change(tx, stored_item, **columns)

        self.inbox.run(write)


def by_position(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the gate ask like any other code, so that LangGraph hands its answers out by position."""
    monkeypatch.setattr(task, "question_id", lambda call, answered: interrupt_id(call.task, answered))
    monkeypatch.setattr(Task, "hide", lambda task, questions: None)


def script(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """The input that makes the model call these tools in one turn."""
    return {"messages": [("user", json.dumps([{"name": name, "args": args} for name, args in calls]))]}


Call = tuple[str, dict[str, Any]]
SEND: Call = ("send", {"to": "bob", "body": "hello"})
PAY: Call = ("pay", {"amount": 5})


def asked(result: Any) -> list[Any]:
    return [interrupt.value for interrupt in result.get("__interrupt__", ())]


def ids(result: Any) -> list[str]:
    return [interrupt.id for interrupt in result["__interrupt__"]]


def answers(result: Any) -> list[ToolMessage]:
    return [message for message in result["messages"] if isinstance(message, ToolMessage)]
