"""Settles who is calling before any route runs. Everything is refused unless a path is named as public below.

Order: an API key (`x-api-key`, then bearer), the session cookie, then, in `dev` and `demo` only, the keyless caller on
loopback, who is the principal `local-agent` and can never decide.
"""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import quote, urlsplit

from fastapi import Depends, Request
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from assent.domain.access import Principal, local_agent
from assent.domain.keys import PREFIX
from assent.errors import AssentError, OriginRefused, Unauthenticated
from assent.http import errors
from assent.services.access import Access
from assent.settings import LOOPBACK_ORIGIN, Mode, Settings, is_loopback

SESSION_COOKIE = "assent_session"


PUBLIC = re.compile(r"/(ok|info|login|static/.*|api/session|docs|openapi\.json|favicon\.ico)?")
"""Paths that answer without a credential. They tell nothing that belongs to a tenant."""

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class Authentication:
    def __init__(self, app: ASGIApp, access: Access, settings: Settings) -> None:
        self.app = app
        self._access = access
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self.app(scope, receive, send)
        connection = HTTPConnection(scope)
        try:
            if not PUBLIC.fullmatch(scope["path"]):
                scope.setdefault("state", {})["principal"] = await self._principal(connection)
        except AssentError as error:
            return await _refuse(connection, error)(scope, receive, send)
        await self.app(scope, receive, send)

    async def _principal(self, connection: HTTPConnection) -> Principal:
        key = _key(connection.headers)
        if key and (key.startswith(f"{PREFIX}_") or not self._keyless_allowed(connection)):
            return await self._access.by_key(key)
        if session := connection.cookies.get(SESSION_COOKIE):
            require_same_origin(connection)
            return await self._access.by_session(session)
        if self._keyless_allowed(connection):
            return local_agent()
        raise Unauthenticated()

    def _keyless_allowed(self, connection: HTTPConnection) -> bool:
        """Loopback in every respect: the setting, the peer, the Host it asked for, the page it comes from."""
        if self._settings.mode is Mode.SERVE or connection.client is None or not is_loopback(connection.client.host):
            return False
        origin = connection.headers.get("origin")
        from_known_page = origin is None or origin in self._settings.cors_origins or _is_loopback_origin(origin)
        return from_known_page and is_loopback(connection.url.hostname or "")


def require_same_origin(connection: HTTPConnection) -> None:
    """A cookie travels by itself, so what it changes must come from a page of ours."""
    if connection.scope.get("method", "GET") in _SAFE_METHODS:
        return
    origin = connection.headers.get("origin")
    cross_site = connection.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
    if cross_site or (origin is not None and urlsplit(origin).netloc != connection.headers.get("host")):
        raise OriginRefused()


def _key(headers: Headers) -> str | None:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return headers.get("x-api-key") or (token.strip() if scheme.lower() == "bearer" else None)


def _is_loopback_origin(origin: str) -> bool:
    return re.fullmatch(LOOPBACK_ORIGIN, origin) is not None


def _refuse(connection: HTTPConnection, error: AssentError) -> Response:
    """A person who opens a page is sent to sign in; a program gets the error."""
    path = connection.url.path
    wants_page = "text/html" in connection.headers.get("accept", "") and not path.startswith("/api")
    if isinstance(error, Unauthenticated) and wants_page and connection.scope.get("method") == "GET":
        return RedirectResponse(f"/login?next={quote(path)}", 303)
    return errors.respond(path, error)


def _caller(request: Request) -> Principal:
    principal: Principal = request.state.principal
    return principal


Caller = Annotated[Principal, Depends(_caller)]
"""The authenticated principal, as a route parameter."""
