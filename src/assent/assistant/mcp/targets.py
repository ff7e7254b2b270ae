"""The ways to reach an MCP server, as targets of FastMCP's client."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assent.assistant.mcp.client import Target
from assent.assistant.mcp.login.desk import credentials
from assent.settings import CaldavServer


def server_at(url: str, headers: Mapping[str, str], *, sse: bool = False) -> Target:
    def target() -> Any:
        from fastmcp.client.transports import SSETransport, StreamableHttpTransport

        from assent.assistant.mcp.login.credentials import Credentials

        transport = SSETransport if sse else StreamableHttpTransport
        own = any(name.lower() == "authorization" for name in headers)
        return transport(url, headers=dict(headers), auth=Credentials(url) if own else credentials(url))

    return target


def server_of(command: str, args: list[str], environment: Mapping[str, str], folder: Path | None = None) -> Target:
    """A server that this process starts and that uses its standard streams. It gets `environment` and the few variables
    that every program needs."""

    def target() -> Any:
        from fastmcp.client.transports import StdioTransport

        return StdioTransport(
            command, args, env=dict(environment), cwd=str(folder) if folder else None, keep_alive=False
        )

    return target


def calendar(file: Path, caldav: CaldavServer | None = None) -> Target:
    """The calendar, in this process."""

    def target() -> Any:
        from assent.assistant.calendar.server import create_server

        return create_server(file, caldav=caldav)

    return target
