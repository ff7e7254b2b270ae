"""MCP over HTTP, streamable without sessions: every answer is JSON, and nothing is remembered between requests.

Host, credential and tenant are checked as for every route.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, Request, Response

from assent.errors import AssentError
from assent.identity.model.access import Principal
from assent.surfaces.http import jsonrpc
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.jsonrpc import INVALID_REQUEST, METHOD_NOT_FOUND, Message, RpcError
from assent.surfaces.http.limits.execution import Executing, Execution
from assent.surfaces.mcp import modern

Json = dict[str, Any]
Result = Callable[[Principal, Execution, Message], Awaitable[Json]]
VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Those with a handshake, newest first; `modern` has the one without."""

_ACCEPTED = ("application/json", "text/event-stream", "*/*")


def routes(
    paths: dict[str, bool], instructions: str, result: Result, *, check: Callable[[Request], None] | None = None
) -> APIRouter:
    """`paths`: each path, and whether it is documented. `result` answers `tools/list` and `tools/call`. `check` may
    refuse a request."""
    api = jsonrpc.router("mcp")

    async def post(request: Request, caller: Caller, executing: Executing) -> Response:
        """One JSON-RPC message: initialize, server/discover, ping, tools/list or tools/call."""
        if check is not None:
            check(request)
        try:
            _require_accept(request)
            message = await jsonrpc.message_of(request)
            if message.method is None and not message.is_response:
                raise RpcError(INVALID_REQUEST, "a message is a request, a response or a notification")
        except RpcError as error:
            return jsonrpc.answer(jsonrpc.failed(None, error), 400)
        if message.id is None or message.method is None:
            return Response(status_code=202)
        try:
            answer = _modern if modern.speaks(request, message, VERSIONS) else _result
        except RpcError as error:
            return jsonrpc.answer(jsonrpc.failed(message.id, error), 400)
        return await jsonrpc.answered(_answer(message, answer(result, instructions, caller, executing, message)))

    async def get(caller: Caller) -> Response:
        """There is no stream from the server: it never calls its clients."""
        return Response(status_code=405, headers={"Allow": "POST"})

    async def delete(caller: Caller) -> Response:
        """There are no sessions to end."""
        return Response(status_code=404)

    for path, documented in paths.items():
        options: Json = {"include_in_schema": documented}
        accepted: dict[int | str, Json] = {202: {"description": "A notification or a response was taken note of"}}
        api.add_api_route(path, post, methods=["POST"], openapi_extra=jsonrpc.DOCUMENTED, responses=accepted, **options)
        api.add_api_route(path, get, methods=["GET"], status_code=405, **options)
        api.add_api_route(path, delete, methods=["DELETE"], status_code=404, **options)
    return api


async def _answer(message: Message, work: Awaitable[Json]) -> Json:
    try:
        return jsonrpc.succeeded(message.id, await work)
    except RpcError as error:
        return jsonrpc.failed(message.id, error)
    except AssentError as error:
        return jsonrpc.failed(message.id, RpcError.of(error))


async def _modern(result: Result, instructions: str, caller: Principal, executing: Execution, message: Message) -> Json:
    if message.method == "initialize":
        raise RpcError(METHOD_NOT_FOUND, "Method not found: this version has no handshake")
    if message.method == "server/discover":
        return modern.complete(message.method, modern.discovered(_initialized({}, instructions), VERSIONS))
    answer = await _result(result, instructions, caller, executing, message)
    return modern.complete(message.method, answer)


async def _result(result: Result, instructions: str, caller: Principal, executing: Execution, message: Message) -> Json:
    if message.method == "initialize":
        return _initialized(message.params, instructions)
    if message.method == "ping":
        return {}
    if message.method in ("tools/list", "tools/call"):
        return await result(caller, executing, message)
    raise RpcError(METHOD_NOT_FOUND, f"Method not found: {message.method}")


def _initialized(params: Json, instructions: str) -> Json:
    requested = params.get("protocolVersion")
    return {
        "protocolVersion": requested if requested in VERSIONS else VERSIONS[0],
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": {"name": "Assent", "version": version("assent")},
        "instructions": instructions,
    }


def _require_accept(request: Request) -> None:
    accepted = request.headers.get("accept", "")
    if not any(kind in accepted for kind in _ACCEPTED):
        raise RpcError(INVALID_REQUEST, "Accept header must include application/json or text/event-stream")
