"""One open connection to an MCP server."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from assent.assistant.mcp import upstream
from assent.assistant.mcp.calls import OpenCall
from assent.assistant.mcp.questions import elicited, value_of

if TYPE_CHECKING:
    from fastmcp import Client
    from mcp_types import ElicitResult

CONNECT_SECONDS = 15.0
START_SECONDS = 60.0
"""For a server that is started first: `npx` may have to fetch it."""
_FRESH_SECONDS = 1.0
"""How long an answer proves that the session exists."""
_PAUSE_SECONDS = 30 * 24 * 3600.0
"""No request ends by itself before that: a person may take days. Each call has its own time limit."""


def may_have(client: Client[Any], what: str) -> bool:
    """Whether a server may have `resources` or `prompts`. With a protocol that the settings name, it has not been asked
    for its capabilities, and all of them are empty."""
    told = client.server_capabilities
    return told is None or told.tools is None or getattr(told, what) is not None


class Connection:
    """`asking` is the call that the server's questions belong to. `users` counts the calls of a shared connection."""

    def __init__(self, target: Any, mode: str, connect_seconds: float = CONNECT_SECONDS) -> None:
        from fastmcp import Client

        self.asking: OpenCall | None = None
        self.users = 0
        self._connect_seconds = connect_seconds
        self._answered_at = float("-inf")
        self._client: Client[Any] = Client(
            target,
            mode=mode,
            elicitation_handler=self._elicit,
            timeout=_PAUSE_SECONDS,
            init_timeout=connect_seconds,
        )

    async def open(self) -> None:
        async with asyncio.timeout(self._connect_seconds):
            await self._client.__aenter__()  # type: ignore[no-untyped-call]

    @property
    def client(self) -> Client[Any]:
        return self._client

    @property
    def is_modern(self) -> bool:
        """Whether the server asks in rounds, so that several calls can share the connection."""
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        return self._client.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def is_alive(self) -> bool:
        """Whether a call could be sent. A server may have restarted, and have forgotten the session."""
        if not self._client.is_connected() or upstream.is_closed(self._client):
            return False
        if self.is_modern or time.monotonic() - self._answered_at < _FRESH_SECONDS:
            return True
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._client.ping()
        except Exception:  # noqa: BLE001 - the transports raise whatever they like
            return False
        self._answered_at = time.monotonic()
        return True

    async def close(self) -> None:
        with suppress(Exception):  # it is gone either way
            await self._client.close()  # type: ignore[no-untyped-call]

    async def _elicit(self, message: str, kind: Any, params: Any, context: Any) -> ElicitResult:
        from mcp_types import ElicitResult

        if self.asking is None:
            return ElicitResult(action="cancel")
        return elicited(await self.asking.ask(value_of(params)))
