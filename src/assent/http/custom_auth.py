"""What an `@auth.authenticate` handler may ask of a request, by the names of its parameters.

A handler runs before any route does, so the path's parameters are looked up among the routes, and a body that the
handler reads is kept for the route, which reads it again.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from fastapi import FastAPI, routing
from starlette.datastructures import QueryParams
from starlette.requests import HTTPConnection, Request
from starlette.routing import compile_path
from starlette.types import Message, Receive

from assent.domain.access import Principal
from assent.errors import HandlerRefused
from assent.services.custom_auth import CustomAuth


class Replay:
    """A request's messages, which can be read once by the handler and once more by the route."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._seen: list[Message] = []

    async def read(self) -> Message:
        message = await self._receive()
        self._seen.append(message)
        return message

    async def read_again(self) -> Message:
        return self._seen.pop(0) if self._seen else await self._receive()


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
            return scope.get("method", "GET")  # a web socket begins as one
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
        raise HandlerRefused("the auth handler asks for a request, which a web socket is not")
    return request


async def _body(request: Request) -> Any:
    """None where there is nothing that can be read: the route will say so."""
    sent = await request.body()
    try:
        return json.loads(sent) if sent else {}
    except ValueError:
        return None


def _path_params(connection: HTTPConnection) -> dict[str, str]:
    for methods, pattern in _patterns(connection.scope["app"]):
        if connection.scope.get("method", "GET") in methods and (found := pattern.fullmatch(connection.scope["path"])):
            return found.groupdict()
    return {}


@lru_cache(maxsize=4)
def _patterns(app: FastAPI) -> list[tuple[frozenset[str], re.Pattern[str]]]:
    """Every route with its methods, those of included routers too. Which way these are kept depends on FastAPI."""
    each: Any = getattr(routing, "iter_route_contexts", iter)
    routes = [route for route in each(app.routes) if getattr(route, "methods", None)]
    return [(frozenset(route.methods), compile_path(route.path)[0]) for route in routes]
