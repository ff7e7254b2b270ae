"""Counts answered requests by route template: paths with ids would make unlimited labels."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assent.runs.metrics import Answered, Metrics

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class RequestCount:
    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._metrics.count(Answered(_method(scope), _path(scope), message["status"]))
            await send(message)

        await self.app(scope, receive, counted)


def _method(scope: Scope) -> str:
    return scope["method"] if scope["method"] in _METHODS else "other"


def _path(scope: Scope) -> str:
    """The route's template; `none` for requests that match no route."""
    return getattr(scope.get("route"), "path", None) or "none"
