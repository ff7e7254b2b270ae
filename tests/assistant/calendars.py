"""Calendar servers for tests, and clients that speak to them in either era of the protocol."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from fastmcp import Client, FastMCP
from mcp_types import CallToolResult
from starlette.types import ASGIApp

from assent.assistant.calendar.server import create_server
from tests.servers import ServerProcess
from tests.waiting import wait_until

LEGACY = "legacy"
MODERN = "2026-07-28"
ERAS = (LEGACY, MODERN)
DAY = "2026-11-17"


class Asked:
    """A person at the client: gives the answer, or does what it takes to find it, and remembers what was asked."""

    def __init__(self, answer: Any) -> None:
        self.questions: list[Any] = []
        self._answer = answer

    async def __call__(self, message: str, kind: Any, params: Any, context: Any) -> Any:
        self.questions.append(params)
        return await self._answer() if callable(self._answer) else self._answer


async def raw(
    target: Any, tool: str, *, era: str = MODERN, person: Asked | None = None, **arguments: Any
) -> CallToolResult:
    """One call by a client of its own. A protocol error is raised; a tool error is a result."""
    async with Client(target, mode=era, elicitation_handler=person) as client:
        result: CallToolResult = await client.call_tool_mcp(tool, arguments)
        return result


async def call(target: Any, tool: str, **arguments: Any) -> Any:
    result = await raw(target, tool, **arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def refused(target: Any, tool: str, **arguments: Any) -> str:
    """The text of the tool error that the call ends with."""
    result = await raw(target, tool, **arguments)
    assert result.is_error, result.structured_content
    (content,) = result.content
    assert content.type == "text"
    return content.text


async def create(server: FastMCP, start: str, name: str, **more: Any) -> Any:
    return await call(server, "create_event", start=start, name=name, **more)


async def listed(server: FastMCP, start_time: str = DAY, **more: Any) -> list[Any]:
    events: list[Any] = (await call(server, "list_events", start_time=start_time, **more))["events"]
    return events


async def names(server: FastMCP, start_time: str = DAY, **more: Any) -> list[str]:
    return [event["name"] for event in await listed(server, start_time, **more)]


def calendar(folder: Path, **options: Any) -> FastMCP:
    return create_server(folder / "calendar.db", **options)


def calendar_process(database: Path, *options: str) -> ServerProcess:
    command = [sys.executable, "-m", "assent", "calendar", "--port", "0", "--database", str(database), *options]
    return ServerProcess(command)


@contextmanager
def served(app: ASGIApp, *, lifespan: bool = True) -> Iterator[str]:
    """The application behind a real socket, in a thread of its own."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(app, log_config=None, lifespan="on" if lifespan else "off", ws="none")
        config.timeout_graceful_shutdown = 1
        server = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True)
        thread.start()
        wait_until(lambda: server.started or not thread.is_alive(), "the server does not start")
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)
