"""JSON-RPC 2.0 over POST, for MCP and A2A: bodies are parsed as strictly as everywhere, errors are the protocol's.

A long call keeps its connection alive with white space before the JSON, which every parser skips.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, NamedTuple

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from assent.errors import AssentError, Forbidden, HandlerRefused, InvalidJson, NotFound
from assent.kernel import fair_threads, jsonable
from assent.surfaces.http.limits.execution import executed
from assent.surfaces.http.routing import DeferredRoute, StrictRequest, as_json, holds_nul, require_declared

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

MEDIA = "application/json"
_SOON_SECONDS = 1.0
_BEAT_SECONDS = 5.0
_MESSAGE = {
    "type": "object",
    "required": ["jsonrpc", "method"],
    "properties": {
        "jsonrpc": {"const": "2.0"},
        "id": {"type": ["string", "integer", "null"]},
        "method": {"type": "string"},
        "params": {"type": "object"},
    },
}
DOCUMENTED: dict[str, Any] = {"requestBody": {"required": True, "content": {MEDIA: {"schema": _MESSAGE}}}}
"""The body in the OpenAPI document. Routes read it themselves: its errors are the protocol's."""


_FAILURES: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "Refused before the protocol's own errors, which are 200"},
    "5XX": {"description": "Failed"},
}


class RpcError(Exception):
    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    @classmethod
    def of(cls, error: AssentError) -> RpcError:
        """An error of a use case, with our stable code as its data."""
        told = f"{error.message} ({error.hint})" if error.hint else error.message
        wrong = error.status < 500 or isinstance(error, Forbidden | HandlerRefused | NotFound)
        return cls(INVALID_PARAMS if wrong else INTERNAL_ERROR, told, {"code": error.code, "status": error.status})


class Message(NamedTuple):
    """A request, or a notification if it has no id."""

    id: str | int | float | None
    method: str | None
    params: dict[str, Any]
    is_response: bool = False


class RpcRoute(DeferredRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def read(request: Request) -> Response:
            if await request.body():
                require_declared(request)
            return await handle(request)

        async def strict(request: Request) -> Response:
            return await executed(StrictRequest(as_json(request.scope), request.receive), read)

        return strict


def router(tag: str) -> APIRouter:
    return APIRouter(tags=[tag], route_class=RpcRoute, responses=dict(_FAILURES))


async def message_of(request: Request) -> Message:
    try:
        body = await request.json()
    except InvalidJson as error:
        raise RpcError(PARSE_ERROR, f"Invalid JSON: {error.message}") from None
    if not isinstance(body, dict) or body.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, 'not a JSON-RPC message: an object with "jsonrpc": "2.0" is expected')
    if b"\\u0000" in await request.body() and await fair_threads.beside(holds_nul, body):
        raise RpcError(INVALID_PARAMS, "a text in the body contains the character U+0000, which cannot be stored")
    identity, method, params = body.get("id"), body.get("method"), body.get("params")
    if isinstance(identity, bool) or not isinstance(identity, str | int | float | None):
        raise RpcError(INVALID_REQUEST, "id must be a string or a number")
    if method is not None and not isinstance(method, str):
        raise RpcError(METHOD_NOT_FOUND, "Method not found: method must be a string")
    if params is not None and not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "params must be an object")
    return Message(identity, method, params or {}, "result" in body or "error" in body)


def succeeded(identity: Any, result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identity, "result": result}


def failed(identity: Any, error: RpcError) -> dict[str, Any]:
    told = {"code": error.code, "message": error.message}
    return {
        "jsonrpc": "2.0",
        "id": identity,
        "error": told if error.data is None else {**told, "data": error.data},
    }


def answer(body: dict[str, Any], status: int = 200) -> Response:
    return Response(jsonable.dump(body), status, media_type=MEDIA)


async def answered(work: Coroutine[Any, Any, dict[str, Any]]) -> Response:
    """The body that `work` returns: at once if it is short, else as a stream that stays alive."""
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=_SOON_SECONDS)
    except BaseException:
        task.cancel()
        raise
    return answer(task.result()) if done else StreamingResponse(_kept_alive(task), media_type=MEDIA)


async def _kept_alive(task: asyncio.Future[dict[str, Any]]) -> AsyncIterator[bytes]:
    try:
        while not task.done():
            yield b"\n"
            await asyncio.wait({task}, timeout=_BEAT_SECONDS)
        yield jsonable.dump(task.result())
    finally:
        task.cancel()
