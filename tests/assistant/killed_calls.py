"""A person and an assistant in a process of their own, which is killed: what was done before it goes on after it.

`converse` starts a thread, or goes on wherever it stands, until nothing is left to ask. Its progress is sent to the
process that kills it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from assent import LocalInbox
from assent.assistant.failures import McpLost
from assent.assistant.mcp.client import McpClient, Target
from assent.assistant.mcp.servers import McpServers
from assent.assistant.mcp.targets import server_at, server_of
from assent.review.model.questions import Verb, Verdict
from assent.review.rows import gate
from tests.assistant.desk import CONFIG, THREAD, Desk, nodes_of
from tests.assistant.models import call, calls
from tests.assistant.register import Register, started_by

_MOST_STEPS = 30
_ACCEPT = Verdict("0", Verb.ACCEPT, args={"value": 3})


@dataclass(frozen=True)
class Case:
    """One conversation: the call of a tool over one transport. `again`: calls are repeated with their answers."""

    folder: Path
    name: str
    tool: str
    mode: str
    url: str | None
    forking: Path
    effects: Path
    again: bool = False

    @property
    def target(self) -> Target:
        if self.url:
            return server_at(self.url, {})
        command, *args = started_by(self.forking, self.effects)
        return server_of(command, args, {})


class Repeating(McpClient):
    """Makes every call from its beginning, as a client that holds none."""

    async def call(self, name: str, args: Any, paused: Any = None, answers: Any = None) -> Any:
        return await super().call(name, args, None, answers)


def converse(case: Case, progress: Any) -> None:
    asyncio.run(_converse(case, progress.send))


async def _converse(case: Case, tell: Callable[[str], None]) -> None:
    client = (Repeating if case.again else McpClient)(case.target, name="register", mode=case.mode)
    async with AsyncSqliteSaver.from_conn_string(str(case.folder / "checkpoints.db")) as saver:
        model = calls(call(case.tool, "c", name=case.name))
        nodes = nodes_of(Register(case.effects).server, LocalInbox(case.folder / "gate.db"), model)
        there = Desk(case.folder / "gate.db", replace(nodes, client=McpServers({"register": client})), saver)
        begun = (await there.graph.aget_state(CONFIG)).values
        if any(message.type == "ai" for message in begun.get("messages", ())):
            there.model.script.clear()  # the model has asked for its call
        await _step(there, there.run_again() if begun else there.say("enter"))
        for _ in range(_MOST_STEPS):
            if there.asked is None and not (await there.graph.aget_state(CONFIG)).next:
                await client.close()
                return tell("ended")
            tell(str(there.asked and there.asked["kind"]))
            await _go_on(there, tell)
    raise AssertionError("the conversation does not end")


async def _go_on(there: Desk, tell: Callable[[str], None]) -> None:
    if there.asked is None:
        return await _step(there, there.run_again())
    if there.asked["kind"] == "assent.in_doubt":
        there.settle("abandon")
        return await _step(there, there.run_again())
    [pause] = there.result["__interrupt__"]
    assert isinstance(there.inbox, LocalInbox)
    answers = there.inbox.run(lambda tx: gate.decided_answers(tx, THREAD))
    if pause.id not in answers:
        there.decide(Verdict("0", Verb.APPROVE) if there.asked["kind"] == "confirmation" else _ACCEPT)
        answers = there.inbox.run(lambda tx: gate.decided_answers(tx, THREAD))
    tell("decided")
    await _step(there, there._ran(Command(resume={pause.id: answers[pause.id]})))


async def _step(there: Desk, running: Any) -> None:
    try:
        await running
    except McpLost:
        there.result = {}
