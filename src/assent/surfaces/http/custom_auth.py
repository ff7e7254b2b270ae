"""Passes parts of the request to an `@auth.authenticate` handler, by the names of its parameters.

The handler runs before routing, so the path's parameters are looked up among the routes, and a body that the handler
reads is stored for the route, which reads it again.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from fastapi import FastAPI, routing
from starlette.datastructures import QueryParams
from starlette.requests import HTTPConnection, Request
from starlette.routing import compile_path
from starlette.types import Message, Receive

from assent.errors import HandlerRefused
from assent.identity.custom_auth import CustomAuth
from assent.identity.model.access import Principal
from assent.kernel import canonical
from assent.surfaces.http.routing import read


class Replay:
    """A request's messages: the handler reads them from `first`; the route reads them again, then the rest from
    `rest`."""

    def __init__(self, first: Receive, rest: Receive) -> None:
        self._first = first
        self._rest = rest
        self._seen: list[Message] = []

    async def read(self) -> Message:
        message = await self._first()
        self._seen.append(message)
        return message

    async def read_again(self) -> Message:
        return self._seen.pop(0) if self._seen else await self._rest()


async def principal(auth: CustomAuth, connection: HTTPConnection, replay: Replay) -> Principal:
    request = Request(connection.scope, replay.read) if connection.scope["type"] == "http" else None
    return await auth.authenticate({name: await _argument(name, connection, request) for name in auth.parameters})


async def _argument(  # noqa: C901 - one line per name
    name: str, connection: HTTPConnection, request: Request | None
) -> Any:
    scope = connection.scope
    match name:
        case "request":
            return _required(request)
        case "body":
            return await _body(_required(request))
        case "path":
            return scope["path"]
        case "method":
            return scope.get("method", "GET")  # a web socket begins as a GET
        case "path_params":
            return _path_params(connection)
        case "query_params":
            return QueryParams(scope.get("query_string", b""))
        case "headers":
            return dict(scope["headers"])
        case "authorization":
            return connection.headers.get("authorization")
        case "scope":
            return scope
        case "scopes":
            return []
        case _:  # "user": there is none yet
            return None


def _required(request: Request | None) -> Request:
    if request is None:
        raise HandlerRefused("the auth handler has the parameter `request` or `body`, which a web socket does not have")
    return request


async def _body(request: Request) -> Any:
    """The parsed body; None if it is not JSON, which the route reports."""
    sent = await request.body()
    try:
        return await read(sent) if sent else {}
    except canonical.JsonError:
        return None


def _path_params(connection: HTTPConnection) -> dict[str, str]:
    for methods, pattern in _patterns(connection.scope["app"]):
        if connection.scope.get("method", "GET") in methods and (match := pattern.fullmatch(connection.scope["path"])):
            return match.groupdict()
    return {}


@lru_cache(maxsize=4)
def _patterns(app: FastAPI) -> list[tuple[frozenset[str], re.Pattern[str]]]:
    """Every route with its methods, including those of included routers, whose storage depends on FastAPI's version."""
    each: Any = getattr(routing, "iter_route_contexts", iter)
    routes = [route for route in each(app.routes) if getattr(route, "methods", None)]
    return [(frozenset(route.methods), compile_path(route.path)[0]) for route in routes]
