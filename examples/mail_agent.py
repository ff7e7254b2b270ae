"""An agent that looks up addresses freely, and sends an email only after a person approved it.

Library mode, without a server: `python -m examples.mail_agent "Write to Ann that I am late"` asks in the terminal.
It needs a model's package and key (`OPENAI_API_KEY` and langchain-openai, or another: `MODEL=anthropic:…`).
"""

from __future__ import annotations

import os
import sys
from typing import Any

from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver

from assent import ApprovalMiddleware, LocalInbox, current_grant

outbox: list[dict[str, str]] = []
"""Simulates a mail server that detects a repeated message by its idempotency key."""


def find_address(name: str) -> str:
    """Looks up someone's email address."""
    return f"{name.lower()}@example.org"


def send_email(to: str, subject: str, body: str) -> str:
    """Sends an email."""
    grant = current_grant()
    assert grant is not None, "a gated tool runs only with a grant"
    outbox.append({"to": to, "subject": subject, "body": body, "key": grant.id})
    return f"Sent to {to}."


def make_agent(model: Any, inbox: LocalInbox) -> Any:
    """`find_address` runs freely; `send_email`, and any tool added later, needs approval."""
    gate = ApprovalMiddleware({"find_address": False}, inbox=inbox, idempotent=["send_email"])
    return create_agent(model, [find_address, send_email], middleware=[gate], checkpointer=InMemorySaver())


def main(request: str) -> None:
    inbox = LocalInbox()
    agent = make_agent(os.environ.get("MODEL", "openai:gpt-5-mini"), inbox)
    config = {"configurable": {"thread_id": "terminal"}}
    result = agent.invoke({"messages": [("user", request)]}, config, durability="sync")
    while result.get("__interrupt__"):
        for item in inbox.items():
            print(f"\n{item.tool}\n{item.args_text}")
            verb: Any = "approve" if input("Approve? [y/N] ").strip().lower() == "y" else "reject"
            inbox.decide(item.id, verb, revision=item.revision, hash=item.hash, by=os.environ.get("USER", "me"))
        result = agent.invoke(inbox.command("terminal"), config, durability="sync")
    print(result["messages"][-1].text)


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or "Write to Ann that I am late.")
