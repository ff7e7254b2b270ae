"""A process of its own that runs the assistant on files, and dies where it is told to.

`step` says what it does: the first request, going on with what was decided, or going on with nothing. `die` is when:
after so many transactions of the keeper, or `before` or `after` the tool's effect.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastmcp import FastMCP
from fastmcp.server.middleware import Middleware
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from assent import LocalInbox
from assent.assistant.calendar.server import create_server
from tests.assistant.desk import Desk, nodes_of
from tests.assistant.models import call, calls

EVENT = {"start": "2030-01-01T09:00:00+00:00", "name": "Standup"}


class Mortal(LocalInbox):
    """Dies right after its n-th transaction is durable."""

    left = -1

    async def arun(self, function: Callable[..., Any]) -> Any:
        result = await super().arun(function)
        self.left -= 1
        if self.left == 0:
            end()
        return result


class Cut(Middleware):
    def __init__(self, die: str) -> None:
        self._die = die

    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        if self._die == "before":
            end()
        result = await call_next(context)
        if self._die == "after":
            end()
        return result


def end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def server_in(folder: Path, die: str = "") -> FastMCP:
    server = create_server(folder / "calendar.db")
    server.add_middleware(Cut(die))
    return server


async def main(folder: Path, step: str, die: str) -> None:
    inbox = Mortal(folder / "gate.db")
    made = [calls(call("create_event", "c1", **EVENT))] if step == "say" else []
    async with AsyncSqliteSaver.from_conn_string(str(folder / "checkpoints.db")) as saver:
        there = Desk(folder / "gate.db", nodes_of(server_in(folder, die), inbox, *made, types=["calendar"]), saver)
        inbox.left = int(die) if die.isdecimal() else -1
        if step == "say":
            await there.say("add it")
            inbox.left = -1
            there.decide_all()
        elif step == "decided":
            await there.go_on(heard=False)
        else:
            await there._ran(None)
        told = {"asked": there.asked, "said": [message.text for message in there.messages] if step != "say" else []}
        (folder / "told").write_text(json.dumps(told))
        await there.nodes.client.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else ""))
