"""A process of its own that runs an agent on a file, and dies where it is told to.

`go_on` says with what: the first input, what was decided, a bare approval, or nothing. `die` is when: after so many
transactions of the keeper, or `before` or `after` the effect. `gate` is ours, or LangChain's own. `server` is the URL
and the key of the server that keeps the gate's records, instead of a file: there, `die` may also be `send 2` or
`reply 2`, around a request.
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

from assent import ApprovalMiddleware, LocalInbox, RemoteInbox, current_grant
from assent.gate.records import Keeper, Records
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


class MortalElsewhere(RemoteInbox):
    """Dies right before it sends its n-th request, or right after the reply: for the server, the reply was lost."""

    def __init__(self, url: str, key: str, die: Any) -> None:
        super().__init__(url, key)
        self._die = die
        self._sent = 0

    def perform(self, step: Callable[[Records], Any]) -> Any:
        self._sent += 1
        if self._die == f"send {self._sent}":
            end()
        result = super().perform(step)
        if self._die == f"reply {self._sent}":
            end()
        return result


def end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(
    folder: str,
    go_on: str,
    die: int | str | None = None,
    gate: bool = True,
    idempotent: bool = False,
    server: tuple[str, str] | None = None,
) -> None:
    inbox = MortalElsewhere(*server, die) if server else Mortal(Path(folder) / "gate.db", die)
    config: Any = {"configurable": {"thread_id": folder}} if server else CONFIG

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
        result = _continued(agent, config, gate=gate) if go_on == "on" else None
        result = result or agent.invoke(_input(agent, go_on, inbox, config), config, durability="sync")
        asked = [interrupt.value for interrupt in result.get("__interrupt__", ())]
        told = json.dumps({"asked": asked, "said": [message.content for message in result["messages"]]})
        (Path(folder) / "told").write_text(told)


def _continued(agent: Any, config: Any, *, gate: bool) -> Any:
    """The result, from wherever the last process was killed."""
    state = agent.get_state(config)
    if not state.next:
        return {"messages": state.values["messages"]} if state.values else None
    approval = {question.id: {"type": "approve"} for question in state.interrupts}
    return agent.invoke(Command(resume=approval) if approval and not gate else None, config, durability="sync")


def _input(agent: Any, go_on: str, inbox: Keeper, config: Any) -> Any:
    if go_on == "decided" and isinstance(inbox, LocalInbox):
        return inbox.command("thread-1")
    if go_on == "approve":
        [question] = agent.get_state(config).interrupts
        return Command(resume={question.id: {"type": "approve"}})
    return None if go_on == "nothing" else {"messages": [("user", '[{"name": "send", "args": {"to": "bob"}}]')]}
