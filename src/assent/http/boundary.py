"""What every request passes before a route sees it: a request id and a log line, the Host check, the size limit.

Plain ASGI, so that it holds for mounted apps and streams as well. Who is calling is settled in `authentication.py`.
"""

from __future__ import annotations

import logging
import re
import time
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assent import logs
from assent.domain.ids import new_id
from assent.errors import HostRefused, TooLarge
from assent.http import errors
from assent.settings import LOOPBACK_ORIGIN, Mode, Settings, is_loopback

log = logging.getLogger("assent.access")

_ACCEPTED_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestLog:
    """Takes the caller's `X-Request-Id` or makes one; it is in every log line, error body and response header."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        given = Headers(scope=scope).get("x-request-id", "")
        token = logs.request_id.set(given if _ACCEPTED_ID.fullmatch(given) else new_id())
        started, status = time.perf_counter(), 0

        async def tagged(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-Id"] = logs.request_id.get() or ""
            await send(message)

        try:
            await self.app(scope, receive, tagged)
        except Exception:  # the last boundary: anything a route did not expect becomes a 500 with an id
            log.exception("unhandled error", extra={"path": scope["path"]})
            if not status:
                await errors.unexpected(scope["path"])(scope, receive, tagged)
        finally:
            elapsed = round((time.perf_counter() - started) * 1000, 1)
            facts = {"method": scope["method"], "path": scope["path"], "status": status, "ms": elapsed}
            log.log(logging.DEBUG if scope["path"] == "/ok" else logging.INFO, "request", extra=facts)
            logs.request_id.reset(token)


class HostCheck:
    """Answers only for hosts it knows: a page that rebinds its DNS name to loopback gets nothing."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self._known = frozenset(_host(name) for name in (settings.host, *settings.allowed_hosts))
        self._any = "*" in settings.allowed_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket") and not self._knows(Headers(scope=scope).get("host", "")):
            return await errors.respond(scope["path"], HostRefused())(scope, receive, send)
        await self.app(scope, receive, send)

    def _knows(self, header: str) -> bool:
        host = _host(header)
        return self._any or host in self._known or is_loopback(host)


class BodyLimit:
    """Refuses bodies over the limit, by their header where it is honest and by counting where it is not."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self.app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        declared = Headers(scope=scope).get("content-length", "0")
        if declared.isdigit() and int(declared) > self._limit:
            return await errors.respond(scope["path"], self._refusal())(scope, receive, send)
        await self.app(scope, self._counting(receive), send)

    def _counting(self, receive: Receive) -> Receive:
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._limit:
                raise self._refusal()
            return message

        return counted

    def _refusal(self) -> TooLarge:
        return TooLarge(f"the body is larger than {self._limit} bytes", hint="see the setting max_body_bytes")


def _host(header: str) -> str:
    """The host of a Host header, without its port: `[::1]:2024` → `::1`."""
    bracketed = re.match(r"\[([^\]]*)\]", header)
    return (bracketed[1] if bracketed else header.partition(":")[0] if header.count(":") == 1 else header).lower()


def cors(settings: Settings) -> dict[str, Any]:
    """Which pages of other origins may call: those named, and in `dev` and `demo` any page on loopback.

    Cookies never travel across origins, so credentials stay off and `*` can be named safely.
    """
    return {
        "allow_origins": settings.cors_origins,
        "allow_origin_regex": None if settings.mode is Mode.SERVE else LOOPBACK_ORIGIN,
        "allow_methods": ["*"],
        "allow_headers": ["*"],
        "allow_private_network": True,
        "expose_headers": ["Location", "Content-Location", "X-Pagination-Total", "X-Pagination-Next", "X-Request-Id"],
    }
