"""`assent calendar`: the MCP server of the reference assistant, as a process of its own."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assent.cli import output
from assent.cli.options import address, settings
from assent.errors import ConfigError
from assent.settings import Settings

if TYPE_CHECKING:
    from fastmcp import FastMCP

PORT = 8001
FILE = Path(".assent/calendar.db")


class Switch(StrEnum):
    ON = "on"
    OFF = "off"


def add_to(app: typer.Typer) -> None:
    app.command()(calendar)


def calendar(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.")] = PORT,
    database: Annotated[str, typer.Option(help="The calendar's own SQLite file.", metavar="PATH")] = str(FILE),
    stdio: Annotated[bool, typer.Option("--stdio", help="Speak MCP on standard input and output instead.")] = False,
    login: Annotated[Switch, typer.Option(help="Whether the calendar's tools ask for a login first.")] = Switch.OFF,
) -> None:
    """Serve a calendar and a small map as MCP tools, for the reference assistant."""
    if stdio and login is Switch.ON:
        raise ConfigError("a login needs a page in a browser, which --stdio does not serve", hint="leave out --stdio")
    found = settings(host=host, port=port)

    from assent.assistant.calendar.server import create_server  # takes a while, and no other command needs it

    server = create_server(database, login=login is Switch.ON)
    asyncio.run(server.run_stdio_async(show_banner=False) if stdio else _serve(server, found, database))


async def _serve(calendar: FastMCP, found: Settings, database: str) -> None:
    import uvicorn

    from assent.assistant.calendar.server import ENDPOINT, http_app
    from assent.cli import server

    app = http_app(calendar, allowed_hosts=found.allowed_hosts, allowed_origins=found.cors_origins)
    listener = server.bind(found)
    url = address(found, listener.getsockname()[1])
    lines = {"listening": url, "MCP": f"{url}{ENDPOINT}", "data": database}
    if not found.on_loopback:
        lines["open"] = "whoever can reach it can use it: there are no keys here"
    output.say("\nAssent calendar\n" + "\n".join(f"  {name:<13}{value}" for name, value in lines.items()) + "\n")
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="on",
        ws="none",
        server_header=False,
        proxy_headers=bool(found.trusted_proxies),
        forwarded_allow_ips=list(found.trusted_proxies),
        timeout_graceful_shutdown=5,
    )
    await server.Server(config).serve(sockets=[listener])
