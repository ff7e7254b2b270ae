"""Middleware for every request: a request id and a log line, the Host check, CORS, the size limit.

Plain ASGI, so that it covers mounted apps and streams as well. `authentication.py` authenticates the caller.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assent import logs
from assent.errors import AssentError, HostRefused, TooLarge
from assent.kernel.ids import new_id
from assent.runs import headers
from assent.runs.headers import HeaderRules
from assent.runs.project.manifest import Cors
from assent.settings import LOOPBACK_ORIGIN, Mode, Settings, is_loopback
from assent.surfaces.http import errors
from assent.surfaces.http.origins import host_of
from assent.surfaces.http.public import PublicRoutes

log = logging.getLogger("assent.access")

_ACCEPTED_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_PUBLIC_LIMIT = 16 * 1024
_EXPOSED = ("Location", "Content-Location", "X-Pagination-Total", "X-Pagination-Next", "X-Request-Id")


class RequestLog:
    """Takes the caller's `X-Request-Id` or makes one, for every log line, error body and response header."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        requested = Headers(scope=scope).get("x-request-id", "")
        token = logs.request_id.set(requested if _ACCEPTED_ID.fullmatch(requested) else new_id())
        started, status = time.perf_counter(), 0

        async def tagged(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                told = MutableHeaders(scope=message)
                told["X-Request-Id"] = logs.request_id.get() or ""
                told["X-Content-Type-Options"] = "nosniff"
            await send(message)

        try:
            await self.app(scope, receive, tagged)
        finally:
            elapsed = round((time.perf_counter() - started) * 1000, 1)
            facts = {"method": scope["method"], "path": scope["path"], "status": status, "ms": elapsed}
            log.log(logging.DEBUG if scope["path"] == "/ok" else logging.INFO, "request", extra=facts)
            logs.request_id.reset(token)


class HostCheck:
    """Refuses unknown hosts, against pages that rebind their DNS name to loopback."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self._allowed = frozenset(name.strip("[]").lower() for name in (settings.host, *settings.allowed_hosts))
        self._any = "*" in settings.allowed_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket") and not self._allows(host_of(HTTPConnection(scope))):
            return await errors.respond(scope["path"], HostRefused())(scope, receive, send)
        await self.app(scope, receive, send)

    def _allows(self, host: str) -> bool:
        return self._any or host in self._allowed or is_loopback(host)


class LastResort:
    """Turns unexpected errors into a 500 with an id. Inside CORS, so that pages of other origins can read it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        answered = False

        async def watched(message: Message) -> None:
            nonlocal answered
            answered = True
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except ClientDisconnect:
            log.info("client disconnected before the end of the request", extra={"path": scope["path"]})
        except Exception as error:  # noqa: BLE001 - the last boundary: a started response is cut off, otherwise 500
            response = errors.last_of(scope, error)
            if not answered:
                await response(scope, receive, send)


class BodyLimit:
    """Refuses bodies over the limit, by their declared length and by counting.

    Public routes have a small limit: an anonymous caller cannot make the server read and parse megabytes.
    """

    def __init__(self, app: ASGIApp, limit: int, public: PublicRoutes) -> None:
        self.app = app
        self._limit = limit
        self._public = public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._public.is_unread(scope):
            return await self.app(scope, receive, send)
        limit = min(self._limit, _PUBLIC_LIMIT) if self._public.match(scope) else self._limit
        if _declared_length(scope) > limit:
            return await errors.refuse(scope, _refusal(limit))(scope, receive, send)
        await self.app(scope, _counting(receive, limit), send)


def _counting(receive: Receive, limit: int) -> Receive:
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise _refusal(limit)
        return message

    return counted


def _refusal(limit: int) -> AssentError:
    hint = "sign in first" if limit == _PUBLIC_LIMIT else "see the setting max_body_bytes"
    return TooLarge(f"the body is larger than {limit} bytes", hint=hint)


def _declared_length(scope: Scope) -> int:
    """19 digits suffice to exceed the limit, and are cheap to parse."""
    digits = Headers(scope=scope).get("content-length", "0")[:19]
    return int(digits) if digits.isdecimal() else 0


def cors(settings: Settings, project: Cors) -> dict[str, Any]:
    """Allows pages of the origins in the settings and in the project's file, and in `dev` and `demo` any page on
    loopback.

    Cookies are not sent across origins, so credentials stay off and `*` is safe.
    """
    local = None if settings.mode is Mode.SERVE else LOOPBACK_ORIGIN
    patterns = [f"(?:{pattern})" for pattern in (local, project.origin_regex) if pattern]
    return {
        "allow_origins": [*settings.cors_origins, *project.origins],
        "allow_origin_regex": "|".join(patterns) or None,
        "allow_methods": list(project.methods),
        "allow_headers": list(project.headers),
        "allow_private_network": True,
        "expose_headers": [*_EXPOSED, *project.exposed],
        "max_age": project.max_age,
    }


def admits(origin: str, settings: Settings, project: Cors) -> bool:
    """Whether pages of this origin may call."""
    rules = cors(settings, project)
    pattern = rules["allow_origin_regex"]
    named = {"*", origin} & set(rules["allow_origins"])
    return bool(named) or (pattern is not None and re.fullmatch(pattern, origin) is not None)


class Prefix:
    """Serves every route below `http.mount_prefix` too. A path that is a route of its own keeps its meaning."""

    def __init__(self, app: ASGIApp, prefix: str, routes: Sequence[BaseRoute]) -> None:
        self.app = app
        self._prefix = prefix
        self._own = tuple(route for route in routes if getattr(route, "path", ""))  # the author's app is mounted at ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            path = scope["path"].removeprefix(self._prefix)
            is_below = path != scope["path"] and (not path or path.startswith("/"))
            if is_below and not any(route.matches(scope)[0] is Match.FULL for route in self._own):
                scope = {**scope, "path": path or "/", "raw_path": quote(path or "/").encode()}
        await self.app(scope, receive, send)


class ConfigurableHeaders:
    """Remembers the headers that the project selects, for the runs that this request starts."""

    def __init__(self, app: ASGIApp, rules: HeaderRules) -> None:
        self.app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self.app(scope, receive, send)
        token = headers.present.set(self._rules.chosen(scope["headers"]))
        try:
            await self.app(scope, receive, send)
        finally:
            headers.present.reset(token)
