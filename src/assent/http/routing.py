"""Routes that read JSON strictly: duplicate keys, NaN, lone surrogates and bottomless nesting are refused, and
integers stay exact, so that what a person later sees is what was sent."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.routing import APIRoute

from assent.domain import canonical
from assent.errors import InvalidJson
from assent.http.errors import Problem


class StrictRequest(Request):
    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            body = await self.body()
            try:
                self._json = canonical.parse(body, max_bytes=len(body))  # the boundary has limited it already
            except canonical.JsonError as error:
                raise InvalidJson(str(error)) from None
        return self._json


class StrictRoute(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            """Reads the body before FastAPI does, which would turn every failure to read it into the same 400."""
            request = StrictRequest(request.scope, request.receive)
            if await request.body() and "json" in request.headers.get("content-type", ""):
                await request.json()
            return await handle(request)

        return strict


def router(prefix: str, tag: str) -> APIRouter:
    problems: dict[int | str, dict[str, Any]] = {"4XX": {"model": Problem}, "5XX": {"model": Problem}}
    return APIRouter(prefix=prefix, tags=[tag], route_class=StrictRoute, responses=problems)


def add(app: FastAPI | APIRouter, routes: APIRouter) -> None:
    """Takes the routes as they are. To include a router would make every one of them a second time, when it is first
    looked through."""
    app.routes.extend(routes.routes)
