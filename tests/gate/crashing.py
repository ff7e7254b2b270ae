"""A process of its own that runs an agent on a file, and dies where it is told to.

`go_on` says with what: the first input, what was decided, a bare approval, or nothing. `die` is when: after so many
transactions of the keeper, or `before` or `after` the effect. `gate` is ours, or LangChain's own.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from assent import ApprovalMiddleware, LocalInbox, current_grant
from tests.graphs.agents import ScriptedModel

CONFIG: Any = {"configurable": {"thread_id": "thread-1"}}


class Mortal(LocalInbox):
    """Dies right after its n-th transaction is durable."""

    def __init__(self, path: Path, die: Any) -> None:
        super().__init__(path)
        self._left = die if isinstance(die, int) else -1

    def run(self, function: Callable[..., Any]) -> Any:
        result = super().run(function)
        self._left -= 1
        if self._left == 0:
            end()
        return result


def end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(folder: str, go_on: str, die: int | str | None = None, gate: bool = True, idempotent: bool = False) -> None:
    inbox = Mortal(Path(folder) / "gate.db", die)

    def send(to: str) -> str:
        """Sends."""
        if die == "before":
            end()
        grant = current_grant()
        with (Path(folder) / "effects").open("a") as effects:
            effects.write(f"{to} {grant.id if grant else '-'}\n")
        if die == "after":
            end()
        return f"sent to {to}"

    ours = ApprovalMiddleware(inbox=inbox, idempotent=["send"] if idempotent else [])
    stock: Any = HumanInTheLoopMiddleware({"send": True}, interrupt_mode="per_call")
    with SqliteSaver.from_conn_string(f"{folder}/checkpoints.db") as saver:
        agent = create_agent(ScriptedModel(), [send], middleware=[ours if gate else stock], checkpointer=saver)
        result = agent.invoke(_input(agent, go_on, inbox), CONFIG, durability="sync")
        asked = [interrupt.value for interrupt in result.get("__interrupt__", ())]
        told = json.dumps({"asked": asked, "said": [message.content for message in result["messages"]]})
        (Path(folder) / "told").write_text(told)


def _input(agent: Any, go_on: str, inbox: LocalInbox) -> Any:
    if go_on == "decided":
        return inbox.command("thread-1")
    if go_on == "approve":
        [question] = agent.get_state(CONFIG).interrupts
        return Command(resume={question.id: {"type": "approve"}})
    return None if go_on == "nothing" else {"messages": [("user", '[{"name": "send", "args": {"to": "bob"}}]')]}
