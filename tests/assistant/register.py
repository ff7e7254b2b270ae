"""An MCP server whose tools have an effect before and after their question: each effect is a line of a file.

`python -m tests.assistant.register SOCKET` is a process that forks such servers: FastMCP takes seconds to import.
`started_by` is the command that starts one over standard streams.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
from pathlib import Path
from typing import NoReturn

from fastmcp import Context, FastMCP
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult, ToolAnnotations

SCHEMA = {"type": "object", "properties": {"value": {"type": "integer"}}, "required": ["value"]}
TAGS = {"birds"}


class Register:
    def __init__(self, file: Path) -> None:
        self.file = file
        self.server = FastMCP("register")
        for tool in (self.pushes, self.twice, self.plain, self.rounds):
            self.server.tool(tool, tags=TAGS)
        self.server.tool(self.look, tags=TAGS, annotations=ToolAnnotations(read_only_hint=True))

    @property
    def effects(self) -> list[str]:
        return self.file.read_text().split() if self.file.exists() else []

    async def pushes(self, ctx: Context, name: str) -> str:
        """Enter a name; asks in the middle of its work."""
        self._happens(f"{name}-before")
        answer = await ctx.elicit("How many?", int)
        self._happens(f"{name}-after")
        return f"{name}: {answer}"

    async def twice(self, ctx: Context, name: str) -> str:
        """Enter a name; asks the same question two times."""
        self._happens(f"{name}-before")
        numbers = [await ctx.elicit("How many?", int) for _ in range(2)]
        return f"{name}: {numbers}"

    async def rounds(self, ctx: Context, name: str) -> str | InputRequiredResult:
        """Enter a name; asks by ending the call, as the protocol of 2026-07-28 wants it."""
        said = (ctx.input_responses or {}).get("size")
        if not isinstance(said, ElicitResult):
            self._happens(f"{name}-before")
            question = ElicitRequest(params=ElicitRequestFormParams(message="How many?", requested_schema=SCHEMA))
            return InputRequiredResult(input_requests={"size": question}, request_state=f"entered {name}")
        assert ctx.request_state == f"entered {name}"
        self._happens(f"{name}-after")
        return f"{name}: {said.content}"

    def plain(self, name: str) -> str:
        """Enter a name."""
        self._happens(f"{name}-plain")
        return name

    def look(self) -> str:
        """Read the register."""
        return " ".join(self.effects)

    def _happens(self, effect: str) -> None:
        with self.file.open("a") as file:
            file.write(f"{effect}\n")


_CLIENT = """
import socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
    connection.connect(sys.argv[1])
    socket.send_fds(connection, [sys.argv[2].encode()], [0, 1, 2])
    connection.recv(1)
"""


def started_by(address: Path, effects: Path) -> list[str]:
    return [sys.executable, "-SE", "-c", _CLIENT, str(address), str(effects)]


def fork_at(address: str) -> None:
    """Until the standard input is closed: the process that started this one is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.freeze()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address)
        listener.listen()
        print("ready", flush=True)
        while sys.stdin not in select.select([sys.stdin, listener], [], [])[0]:
            connection, _ = listener.accept()
            if os.fork() == 0:
                _serve(connection)
            connection.close()


def _serve(connection: socket.socket) -> NoReturn:
    """In the child, which keeps the connection open until it ends."""
    effects, files, *_ = socket.recv_fds(connection, 1 << 16, 3)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    Register(Path(effects.decode())).server.run(show_banner=False, log_level="error")
    os._exit(0)


if __name__ == "__main__":
    import mcp.server.stdio  # noqa: F401 - once, for all children

    fork_at(sys.argv[1])
