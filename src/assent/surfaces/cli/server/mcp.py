"""`assent mcp`: the inbox's MCP server over standard input and output, for clients that start their servers."""

from __future__ import annotations

import asyncio
import logging

import typer

from assent.surfaces.cli.profiles import Profile
from assent.surfaces.cli.remote import Key, Url, credentials


def add_to(app: typer.Typer) -> None:
    app.command()(mcp)


def mcp(url: Url = None, key: Key = None, profile: Profile = None) -> None:
    """Serve the inbox's MCP tools over stdio, for one server and key."""
    address, secret = credentials(url, key, profile)
    asyncio.run(_serve(f"{address.rstrip('/')}/api/mcp", {"x-api-key": secret} if secret else {}))


async def _serve(address: str, headers: dict[str, str]) -> None:
    """Passes every message on to the server: its tools exist once."""
    from fastmcp.client.transports import StreamableHttpTransport
    from fastmcp.server import create_proxy

    logging.getLogger("fastmcp").handlers = []  # our own handlers write its lines
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    transport = StreamableHttpTransport(address, headers=headers)
    proxy = create_proxy(transport, mode="legacy", name="assent-inbox")  # the handshake that the server has
    await proxy.run_stdio_async(show_banner=False)
