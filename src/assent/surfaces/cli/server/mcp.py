"""`assent mcp`: the inbox's MCP server over standard input and output, for clients that start their servers.

Each line is a message, which goes to the server as it is, and so does its answer: the tools and their errors exist
once, in `surfaces/mcp`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from threading import Thread
from typing import Any

import typer

from assent.errors import AssentError
from assent.surfaces.cli.profiles import Profile
from assent.surfaces.cli.remote import Key, Remote, Url, credentials

_PATH = "/api/mcp"
_PARSE_ERROR, _SERVER_ERROR = -32700, -32000
Lines = asyncio.Queue[bytes]


def add_to(app: typer.Typer) -> None:
    app.command()(mcp)


def mcp(url: Url = None, key: Key = None, profile: Profile = None) -> None:
    """Serve the inbox's MCP tools over stdio, for one server and key."""
    address, secret = credentials(url, key, profile)
    asyncio.run(_serve(address, secret or None))


async def _serve(url: str, key: str | None) -> None:
    """Ends with the input. A server or key that does not work is told at the start, where clients show it."""
    async with Remote(url, key, via="cli") as server:
        await server.get("/api/me")
        lines = _standard_input()
        async with asyncio.TaskGroup() as calls:
            while line := await lines.get():
                if line.strip():
                    calls.create_task(_pass_on(server, line))


def _standard_input() -> Lines:
    """The lines, and an empty one at the end. Read in a thread that does not delay the exit."""
    lines, loop = Lines(), asyncio.get_running_loop()

    def read() -> None:
        while line := sys.stdin.buffer.readline():
            loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, b"")

    Thread(target=read, daemon=True).start()
    return lines


async def _pass_on(server: Remote, line: bytes) -> None:
    answer = await _answer(server, line)
    if answer:
        sys.stdout.buffer.write(answer + b"\n")
        sys.stdout.buffer.flush()


async def _answer(server: Remote, line: bytes) -> bytes:
    """The answer to a message in one line; empty for a notification."""
    try:
        message = json.loads(line)
    except ValueError as error:
        return _failed(None, _PARSE_ERROR, f"Invalid JSON: {error}")
    identity = message.get("id") if isinstance(message, dict) else None
    try:
        response = await server.exchange(_PATH, line)
        body = json.loads(response.content) if response.content.strip() else None
        if isinstance(body, dict) and "jsonrpc" not in body:
            raise server.raised(response)
    except (AssentError, ValueError) as error:
        hint = getattr(error, "hint", None)
        told = f"{error} ({hint})" if hint else str(error)
        return b"" if identity is None else _failed(identity, _SERVER_ERROR, told)
    return b"" if body is None else json.dumps(body).encode()


def _failed(identity: Any, code: int, message: str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": identity, "error": {"code": code, "message": message}}).encode()
