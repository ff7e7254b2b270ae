"""Assembles `assistant-mcp`, as a server of its own or inside another application.

It imports FastMCP, which is slow: import it only to serve a calendar.
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

from assent.assistant.calendar import choice, maps, pages
from assent.assistant.calendar.booking import RoomTools
from assent.assistant.calendar.database import Database, database_file
from assent.assistant.calendar.faults import Arguments
from assent.assistant.calendar.guard import LoginGuard
from assent.assistant.calendar.login import Login
from assent.assistant.calendar.stores.file import FileStore
from assent.assistant.calendar.tools import CalendarTools
from assent.errors import ConfigError
from assent.settings import CaldavServer

NAME = "assistant-mcp"
ENDPOINT = "/mcp"
MOUNTED_AT = "/calendar"

_TIMES = "Times are ISO 8601; without an offset they are UTC."
_INSTRUCTIONS = f"A calendar, and a map of Marenby, a town that does not exist. {_TIMES}"
_INSTRUCTIONS_CALDAV = f"A person's calendar. {_TIMES} Events that repeat are listed, but cannot be changed."
_REVOKES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)


def create_server(
    database: str | Path, *, login: bool = False, url: str | None = None, caldav: CaldavServer | None = None
) -> FastMCP:
    """The server over a calendar's file, which is created if it does not exist.

    With `login`, the calendar's tools require a login. `url` is the address of its pages; by default the address that
    the call was sent to, which is trustworthy only with `host_origin_protection`.

    With `caldav`, the events are on that server, and the file has only the results of idempotency keys. The
    invented parts are left out then: rooms, the map and the login.
    """
    if login and caldav:
        raise ConfigError("the login is for the built-in calendar", hint="omit it, or ASSISTANT_CALDAV_URL")
    _use_our_logging()
    file = Database(database_file(database))
    instructions = _INSTRUCTIONS_CALDAV if caldav else _INSTRUCTIONS
    server = FastMCP(NAME, instructions, version=version("assent"), mask_error_details=True)
    server.add_middleware(Arguments())
    store = choice.store(file, caldav)
    tools = CalendarTools(store).add_to(server)
    if isinstance(store, FileStore):
        tools |= RoomTools(store).add_to(server)
        maps.add_to(server)
    pages.add_health_to(server)
    if login:
        _add_login(server, Login(file), tools, url)
    return server


def http_app(
    server: FastMCP, *, allowed_hosts: Sequence[str] = (), allowed_origins: Sequence[str] = ()
) -> StarletteWithLifespan:
    """MCP at `/mcp`, the login at `/auth/…`. Its lifespan must run while it serves.

    Accepts only Host and Origin headers that name this machine or are listed, against pages that rebind their DNS name
    to loopback.
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
    """Mounts the server in another application, as `/calendar/mcp`, and runs its lifespan. Enter it before serving."""
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


def _use_our_logging() -> None:
    """Sends FastMCP's log lines to our handlers instead of its own."""
    logger = logging.getLogger("fastmcp")
    logger.handlers, logger.propagate = [], True
