"""The configured MCP servers, as one.

If several servers have a tool or a prompt of the same name, it gets the server's name as a prefix. A server that is
down takes only its own away.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from assent.assistant.failures import LoginRequired, McpFailed, McpRefused
from assent.assistant.mcp.client import McpClient
from assent.assistant.mcp.prompts import Prompt
from assent.assistant.mcp.questions import Answers, PausedCall
from assent.assistant.mcp.results import Result
from assent.assistant.tools import Tool
from assent.errors import NotFound
from assent.kernel.canonical import Json

Named = TypeVar("Named", Tool, Prompt)

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


class McpServers:
    """`clients` by the names of their servers. The tools are listed once; again for a request while a server fails."""

    def __init__(self, clients: Mapping[str, McpClient]) -> None:
        self._clients = clients
        self._listed: dict[str, list[Tool]] | None = None
        self._failures: dict[str, McpFailed] = {}

    async def tools(self) -> list[Tool]:
        if self._listed is None:
            self._listed = await self._all_listed()
        return [replace(tool, name=name) for name, (_, tool) in self._by_name.items()]

    async def login(self, declined: Collection[str]) -> tuple[str, PausedCall] | None:
        """The first server that wants a person to sign in, and its question. Servers that failed are tried again."""
        if self._failures:
            self._listed = None
        with suppress(McpFailed):  # the next node reports it
            await self.tools()
        wanting = (server for server, failure in self._failures.items() if isinstance(failure, LoginRequired))
        for server in wanting:
            if server not in declined:
                with suppress(McpRefused):  # it offers no page for it
                    return server, await self._clients[server].login()
        return None

    async def ready(self, name: str, paused: PausedCall | None = None) -> None:
        """Opens the connection for a call of this tool, before anything is marked as started."""
        client, tool = await self._place_of(name)
        await client.ready(tool.name, paused)

    async def call(
        self, name: str, args: Mapping[str, Json], paused: PausedCall | None = None, answers: Answers | None = None
    ) -> Result:
        client, tool = await self._place_of(name)
        return await client.call(tool.name, args, paused, answers)

    async def prompts(self) -> tuple[list[Prompt], list[McpFailed]]:
        """The prompts of all servers, and the failures of those that cannot be reached."""
        placed, failures = await self._prompts()
        return [replace(prompt, name=name) for name, (_, prompt) in placed.items()], failures

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        placed, failures = await self._prompts()
        if name not in placed:
            raise failures[0] if failures else NotFound(f"no server has a prompt {name!r}")
        server, prompt = placed[name]
        return await self._clients[server].prompt(prompt.name, arguments)

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()

    async def missing(self, name: str) -> McpFailed | None:
        """The failure of a server that may have this tool."""
        await self.tools()
        return next(iter(self._failures.values()), None) if name not in self._by_name else None

    async def _all_listed(self) -> dict[str, list[Tool]]:
        listed, self._failures = await self._of_each(lambda client: client.tools())
        if self._failures and not listed:
            raise next(iter(self._failures.values()))
        return listed

    async def _prompts(self) -> tuple[dict[str, tuple[str, Prompt]], list[McpFailed]]:
        listed, failures = await self._of_each(lambda client: client.prompts())
        return named(listed), list(failures.values())

    async def _of_each(
        self, ask: Callable[[McpClient], Awaitable[list[Named]]]
    ) -> tuple[dict[str, list[Named]], dict[str, McpFailed]]:
        """The answers of the servers by name, and the failures of the others."""
        answers = await asyncio.gather(*map(ask, self._clients.values()), return_exceptions=True)
        listed: dict[str, list[Named]] = {}
        failures: dict[str, McpFailed] = {}
        for server, answer in zip(self._clients, answers, strict=True):
            if isinstance(answer, McpFailed):
                failures[server] = answer
            elif isinstance(answer, BaseException):
                raise answer
            else:
                listed[server] = answer
        return listed, failures

    async def _place_of(self, name: str) -> tuple[McpClient, Tool]:
        await self.tools()
        server, tool = self._by_name[name]
        return self._clients[server], tool

    @property
    def _by_name(self) -> dict[str, tuple[str, Tool]]:
        return named(self._listed or {})


def named(listed: Mapping[str, Sequence[Named]]) -> dict[str, tuple[str, Named]]:
    """The server and the tool or prompt behind each name."""
    uses = Counter(part.name for parts in listed.values() for part in parts)
    return {
        part.name if uses[part.name] == 1 else prefixed(server, part.name): (server, part)
        for server, parts in listed.items()
        for part in parts
    }


def prefixed(server: str, name: str) -> str:
    return f"{_NOT_IN_NAMES.sub('_', server)}_{name}"
