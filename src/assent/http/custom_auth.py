"""What an `@auth.authenticate` handler may ask of a request, by the names of its parameters.

A handler runs before any route does, so the path's parameters are looked up among the routes, and a body that the
handler reads is kept for the route, which reads it again.
"""

from __future__ import annotations

import json
from typing import Any

from starlette.datastructures import QueryParams
from starlette.requests import HTTPConnection, Request
from starlette.routing import Match
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
    return await auth.authenticate({name: await _argument(name, connection, replay) for name in auth.parameters})


async def _argument(name: str, connection: HTTPConnection, replay: Replay) -> Any:  # noqa: C901 - one line per name
    scope = connection.scope
    match name:
        case "request":
            return _request(connection, replay)
        case "body":
            return await _body(connection, replay)
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


def _request(connection: HTTPConnection, replay: Replay) -> Request:
    if connection.scope["type"] != "http":
        raise HandlerRefused("the auth handler asks for a request, which a web socket is not")
    return Request(connection.scope, replay.read)


async def _body(connection: HTTPConnection, replay: Replay) -> Any:
    """None where there is nothing that can be read: the route will say so."""
    if connection.scope["type"] != "http":
        return None
    sent = await Request(connection.scope, replay.read).body()
    try:
        return json.loads(sent) if sent else {}
    except ValueError:
        return None


def _path_params(connection: HTTPConnection) -> dict[str, Any]:
    for route in connection.scope["app"].routes:
        match, found = route.matches(connection.scope)
        if match is Match.FULL:
            params: dict[str, Any] = found.get("path_params", {})
            return params
    return {}
