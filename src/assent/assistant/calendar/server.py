"""Puts `assistant-mcp` together, and into another application where it is not a process of its own.

Whoever imports this imports FastMCP, which takes its time: import it where a calendar is really served.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path

from fastmcp import FastMCP
from fastmcp.server.http import StarletteWithLifespan
from mcp_types import ToolAnnotations
from starlette.applications import Starlette

from assent.assistant.calendar import maps, pages
from assent.assistant.calendar.database import Database, database_file
from assent.assistant.calendar.faults import Arguments
from assent.assistant.calendar.guard import LoginGuard
from assent.assistant.calendar.login import Login
from assent.assistant.calendar.tools import CalendarTools

NAME = "assistant-mcp"
ENDPOINT = "/mcp"
MOUNTED_AT = "/calendar"

_INSTRUCTIONS = (
    "A calendar, and a map of Marenby, a town that does not exist. Times are ISO 8601; without an offset they are UTC."
)
_REVOKES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)


def create_server(database: str | Path, *, login: bool = False, url: str | None = None) -> FastMCP:
    """The server over a calendar's file, which is made where there is none.

    With `login`, the calendar's tools ask for a login first. `url` is where people reach its pages; without it, the
    address that the call came to, which needs `host_origin_protection` to be worth anything.
    """
    _log_as_we_do()
    file = Database(database_file(database))
    server = FastMCP(NAME, _INSTRUCTIONS, version=version("assent"), mask_error_details=True)
    server.add_middleware(Arguments())
    calendar = CalendarTools(file).add_to(server)
    maps.add_to(server)
    pages.add_health_to(server)
    if login:
        _add_login(server, Login(file), calendar, url)
    return server


def http_app(
    server: FastMCP, *, allowed_hosts: Sequence[str] = (), allowed_origins: Sequence[str] = ()
) -> StarletteWithLifespan:
    """MCP at `/mcp`, the login at `/auth/…`. Its lifespan has to run while it serves.

    Answers only to Host and Origin headers that name this machine or are listed: a page on the internet must not reach
    a calendar on loopback by a name that it had resolved to there.
    """
    return server.http_app(
        path=ENDPOINT,
        host_origin_protection=True,
        allowed_hosts=list(allowed_hosts),
        allowed_origins=list(allowed_origins),
    )


@asynccontextmanager
async def mounted(
    parent: Starlette,
    server: FastMCP,
    *,
    at: str = MOUNTED_AT,
    allowed_hosts: Sequence[str] = (),
    allowed_origins: Sequence[str] = (),
) -> AsyncIterator[None]:
    """Puts the server into another application, as `/calendar/mcp`, and runs it until left. Enter it before serving."""
    app = http_app(server, allowed_hosts=allowed_hosts, allowed_origins=allowed_origins)
    parent.mount(at, app)
    async with app.lifespan(app):
        yield


def _add_login(server: FastMCP, login: Login, tools: frozenset[str], url: str | None) -> None:
    def revoke_login() -> dict[str, bool]:
        """Disconnect the calendar: its tools ask for a login again."""
        return {"revoked": login.revoke()}

    server.tool(revoke_login, annotations=_REVOKES, tags={"login"})
    server.add_middleware(LoginGuard(login, tools, url))
    pages.add_login_to(server, login)


def _log_as_we_do() -> None:
    """FastMCP prints its own boxes and colours; here its lines go where all others do."""
    logger = logging.getLogger("fastmcp")
    logger.handlers, logger.propagate = [], True
