"""The connections that outlive a turn: one client per server and event loop, for all runs of this process.

To start a server takes a second or more, and a call that waits for a person is held by its client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assent.assistant.mcp.client import McpClient

_CLOSE_SECONDS = 5.0

_clients: dict[asyncio.AbstractEventLoop, dict[str, McpClient]] = {}


def shared(key: str, create: Callable[[], McpClient]) -> McpClient:
    """The client of the server with these settings."""
    for loop in [loop for loop in _clients if loop.is_closed()]:
        del _clients[loop]
    clients = _clients.setdefault(asyncio.get_running_loop(), {})
    if key not in clients:
        clients[key] = create()
    return clients[key]


async def close_all() -> None:
    """Closes the connections of the running event loop. A server that does not answer delays nobody for long."""
    clients = _clients.pop(asyncio.get_running_loop(), {}).values()
    with suppress(TimeoutError):
        async with asyncio.timeout(_CLOSE_SECONDS):
            await asyncio.gather(*(client.close() for client in clients))
