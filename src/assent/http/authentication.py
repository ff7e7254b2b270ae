"""Settles who is calling before any route runs. Everything is refused unless a path is named as public below.

Order: an API key of ours (`x-api-key` or bearer), the session cookie, then, in `dev` and `demo` only, the keyless
caller on loopback, who is the principal `local-agent` and can never decide; only in `demo`, only where they talk to the
assistant, and never from a browser, they are the person at this machine. A project with an auth file has no keyless
callers: whoever comes without a credential of ours is sent to its handler. `x-auth-scheme: langsmith` opens nothing.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

from fastapi import Depends, Request
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from assent.domain.access import Principal, local_agent
from assent.errors import AssentError, Unauthenticated
from assent.http import errors
from assent.http.origins import is_local, is_loopback_origin, port_of, require_same_origin
from assent.services.access import Access, is_key
from assent.settings import Mode, Settings

if TYPE_CHECKING:
    from assent.services.custom_auth import CustomAuth

_PUBLIC = re.compile(r"/(ok|info|health-check|login|logout|static/.*|api/session|docs|openapi\.json|favicon\.ico)?")
"""Paths that answer without a credential. They tell nothing that belongs to a tenant."""

_CREDENTIALS = ("x-api-key", "authorization")
_PAGES = re.compile(r"/inbox(/.*)?")
"""Paths for people: without a session they lead to the sign-in page, also where a program would need no key."""


_TALKS = frozenset({"/run", "/resume"})
"""Where one talks to the assistant: in the demo whoever is at this machine needs no key for that."""

_BROWSERS = ("origin", "sec-fetch-site")
"""Headers that browsers add by themselves. A page must not speak in the name of who happens to look at it."""


def session_cookie(connection: HTTPConnection) -> str:
    """Browsers send a cookie to every port of a host, so the name tells the port: two servers on one machine do not
    sign each other's people out."""
    return "_".join(filter(None, ("assent_session", port_of(connection))))


def is_public(path: str) -> bool:
    return _PUBLIC.fullmatch(path) is not None


class Authentication:
    def __init__(
        self,
        app: ASGIApp,
        access: Access,
        settings: Settings,
        custom_auth: CustomAuth | None = None,
        local_person: Callable[[], Awaitable[Principal | None]] | None = None,
    ) -> None:
        self.app = app
        self._local_person = local_person
        self._access = access
        self._settings = settings
        self._custom_auth = custom_auth

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self.app(scope, receive, send)
        connection = HTTPConnection(scope)
        try:
            if not is_public(scope["path"]):
                principal, receive = await self._identify(connection, receive)
                scope.setdefault("state", {})["principal"] = principal
        except AssentError as error:
            return await _refuse(connection, error)(scope, receive, send)
        await self.app(scope, receive, send)

    async def _identify(self, connection: HTTPConnection, receive: Receive) -> tuple[Principal, Receive]:
        """Who calls, and where the request is to be read from now on."""
        if self._custom_auth is None or _PAGES.fullmatch(connection.scope["path"]) or _is_ours(connection):
            return await self._principal(connection), receive
        from assent.http.custom_auth import Replay, principal

        replay = Replay(receive)
        return await principal(self._custom_auth, connection, replay), replay.read_again

    async def _principal(self, connection: HTTPConnection) -> Principal:
        key = _key(connection.headers)
        if key and (is_key(key) or not self._keyless_allowed(connection)):
            return await self._access.by_key(key)
        if session := connection.cookies.get(session_cookie(connection)):
            require_same_origin(connection)
            return await self._access.by_session(session)
        if self._keyless_allowed(connection):
            return await self._keyless(connection)
        raise Unauthenticated()

    async def _keyless(self, connection: HTTPConnection) -> Principal:
        if self._settings.mode is not Mode.DEMO or connection.scope["path"] not in _TALKS:
            return local_agent()
        if any(name in connection.headers for name in _CREDENTIALS):
            return local_agent()  # who shows something, and be it wrong, is not the person who needs to show nothing
        if any(name in connection.headers for name in _BROWSERS):
            raise Unauthenticated("a page in a browser needs a key here")
        person = await self._local_person() if self._local_person else None
        return person or local_agent()

    def _keyless_allowed(self, connection: HTTPConnection) -> bool:
        """Loopback in every respect: the setting, the peer, the Host it asked for, the page it comes from."""
        if self._settings.mode is Mode.SERVE or _PAGES.fullmatch(connection.scope["path"]):
            return False
        return is_local(connection) and self._is_known_page(connection.headers.get("origin"))

    def _is_known_page(self, origin: str | None) -> bool:
        return origin is None or origin in self._settings.cors_origins or is_loopback_origin(origin)


def _is_ours(connection: HTTPConnection) -> bool:
    """Whether the request carries a credential of ours: a key, or a session and no other key."""
    key = _key(connection.headers)
    other = key is not None or "authorization" in connection.headers
    return is_key(key) if key else session_cookie(connection) in connection.cookies and not other


def _key(headers: Headers) -> str | None:
    """The API key of a request. One of ours counts before one that a client sends along for another service."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    sent = [headers.get("x-api-key", ""), token.strip() if scheme.lower() == "bearer" else ""]
    return next((key for key in sent if is_key(key)), sent[0] or sent[1] or None)


def _refuse(connection: HTTPConnection, error: AssentError) -> Response:
    """A person who opens a page is sent to sign in; a program gets the error."""
    path, query = connection.scope["path"], connection.url.query
    if isinstance(error, Unauthenticated) and _PAGES.fullmatch(path) and _opens_page(connection):
        there = path if connection.scope.get("method") == "GET" else path.rpartition("/")[0]
        return RedirectResponse(f"/login?next={quote(f'{there}?{query}' if query else there)}", 303)
    return errors.respond(path, error)


def _opens_page(connection: HTTPConnection) -> bool:
    """Also by a form, or by the page's own script: after signing in they are back where it stood."""
    return "text/html" in connection.headers.get("accept", "") or "assent-part" in connection.headers


async def _caller(request: Request) -> Principal:  # async, or FastAPI would send it to a thread for every request
    principal: Principal = request.state.principal
    return principal


Caller = Annotated[Principal, Depends(_caller)]
"""The authenticated principal, as a route parameter."""
