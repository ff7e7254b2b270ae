"""`assent calendar`: the reference assistant's MCP server as a separate process."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assent.errors import ConfigError
from assent.extras import require
from assent.settings import Settings, read_assistant_settings
from assent.surfaces.cli import output
from assent.surfaces.cli.options import address, settings

if TYPE_CHECKING:
    from fastmcp import FastMCP

PORT = 8000
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
    stdio: Annotated[bool, typer.Option("--stdio", help="Use standard input and output instead of HTTP.")] = False,
    login: Annotated[Switch, typer.Option(help="Require a login before the calendar's tools.")] = Switch.OFF,
) -> None:
    """Serve a calendar and a small map as MCP tools, for the assistant. ASSISTANT_CALDAV_URL serves a real one."""
    require("assistant", "the calendar")
    if stdio and login is Switch.ON:
        raise ConfigError("a login needs a page in a browser, which --stdio does not serve", hint="omit --stdio")
    conf, caldav = settings(host=host, port=port), read_assistant_settings().caldav

    if caldav:
        from assent.assistant.calendar.choice import require_calendar

        require_calendar(caldav)

    from assent.assistant.calendar.server import create_server  # slow to import

    server = create_server(database, login=login is Switch.ON, caldav=caldav)
    data = f"{caldav.url}, keys in {database}" if caldav else database
    asyncio.run(server.run_stdio_async(show_banner=False) if stdio else _serve(server, conf, data))


async def _serve(calendar: FastMCP, conf: Settings, data: str) -> None:
    import uvicorn

    from assent.assistant.calendar.server import ENDPOINT, http_app
    from assent.surfaces.cli.server import server

    app = http_app(calendar, allowed_hosts=conf.allowed_hosts, allowed_origins=conf.cors_origins)
    listener = server.bind(conf)
    url = address(conf, listener.getsockname()[1])
    lines = {"listening": url, "MCP": f"{url}{ENDPOINT}", "data": data}
    if not conf.on_loopback:
        lines["open"] = "everyone who can reach it can use it: it has no keys"
    output.say("\nAssent calendar\n" + "\n".join(f"  {name:<13}{value}" for name, value in lines.items()) + "\n")
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="on",
        ws="none",
        server_header=False,
        proxy_headers=bool(conf.trusted_proxies),
        forwarded_allow_ips=list(conf.trusted_proxies),
        timeout_graceful_shutdown=5,
    )
    await server.Server(config).serve(sockets=[listener])
