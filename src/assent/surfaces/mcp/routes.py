"""`/mcp`: streamable HTTP without sessions, as LangGraph's server has it: every answer is JSON, and nothing is
remembered between requests. Host, origin, credential and tenant are checked as for every route."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, Request, Response

from assent.errors import AssentError
from assent.identity.model.access import Principal
from assent.runs.assistants.assistants import Assistants
from assent.runs.calls import Begun, Calls, Ended
from assent.surfaces.http import jsonrpc
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.jsonrpc import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Message, RpcError
from assent.surfaces.http.limits.execution import Executing, Execution
from assent.surfaces.mcp import results, tools
from assent.threads.model.threads import Lifetime
from assent.threads.run_requests import RunRequest

Json = dict[str, Any]
VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Newest first. Clients of newer versions fall back to the handshake of these."""

KEPT = Lifetime(timedelta(days=7) / timedelta(minutes=1))
"""How long the thread of a paused call is stored, so that its result can still be read after a person's decision."""

_ACCEPTED = ("application/json", "text/event-stream", "*/*")
_INSTRUCTIONS = (
    "Each tool runs an agent. A call can pause, because the agent asks something or a person must approve an action; "
    f"its result then has the status 'waiting' and says how to continue with {tools.CONTINUE}."
)


def routes(assistants: Assistants, calls: Calls) -> APIRouter:
    api = jsonrpc.router("mcp")
    served = _Mcp(assistants, calls)

    async def post(request: Request, caller: Caller, executing: Executing) -> Response:
        """One JSON-RPC message: initialize, ping, tools/list or tools/call."""
        try:
            _require_accept(request)
            message = await jsonrpc.message_of(request)
            if message.method is None and not message.is_response:
                raise RpcError(INVALID_REQUEST, "a message is a request, a response or a notification")
        except RpcError as error:
            return jsonrpc.answer(jsonrpc.failed(None, error), 400)
        if message.id is None or message.method is None:
            return Response(status_code=202)
        return await jsonrpc.answered(served.answer(caller, executing, message))

    async def get(caller: Caller) -> Response:
        """There is no stream from the server: it never calls its clients."""
        return Response(status_code=405, headers={"Allow": "POST"})

    async def delete(caller: Caller) -> Response:
        """There are no sessions to end."""
        return Response(status_code=404)

    for path, documented in (("/mcp", True), ("/mcp/", False)):
        options: Json = {"include_in_schema": documented}
        accepted: dict[int | str, Json] = {202: {"description": "A notification or a response was taken note of"}}
        api.add_api_route(path, post, methods=["POST"], openapi_extra=jsonrpc.DOCUMENTED, responses=accepted, **options)
        api.add_api_route(path, get, methods=["GET"], status_code=405, **options)
        api.add_api_route(path, delete, methods=["DELETE"], status_code=404, **options)
    return api


class _Mcp:
    def __init__(self, assistants: Assistants, calls: Calls) -> None:
        self._assistants = assistants
        self._calls = calls

    async def answer(self, caller: Principal, executing: Execution, message: Message) -> Json:
        try:
            return jsonrpc.succeeded(message.id, await self._result(caller, executing, message))
        except RpcError as error:
            return jsonrpc.failed(message.id, error)
        except AssentError as error:
            return jsonrpc.failed(message.id, RpcError.of(error))

    async def _result(self, caller: Principal, executing: Execution, message: Message) -> Json:
        if message.method == "initialize":
            return _initialized(message.params)
        if message.method == "ping":
            return {}
        if message.method == "tools/list":
            return await self._list(caller, message.params)
        if message.method == "tools/call":
            return await self._call(caller, executing, message.params)
        raise RpcError(METHOD_NOT_FOUND, f"Method not found: {message.method}")

    async def _list(self, caller: Principal, params: Json) -> Json:
        cursor = str(params.get("cursor") or "0")
        if not cursor.isdecimal() or len(cursor) > 9:
            raise RpcError(INVALID_PARAMS, "cursor: not one of this server")
        listed, following = await tools.listed(self._assistants, caller, int(cursor))
        return {"tools": listed, **({"nextCursor": str(following)} if following is not None else {})}

    async def _call(self, caller: Principal, executing: Execution, params: Json) -> Json:
        name, arguments, context = params.get("name"), params.get("arguments"), params.get("context")
        if not isinstance(name, str) or not name:
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {name}")
        if not isinstance(arguments, dict | None) or not isinstance(context, dict | None):
            raise RpcError(INVALID_PARAMS, "arguments and context must be objects")
        if name == tools.CONTINUE:
            return await self._continued(caller, executing, arguments or {})
        matches = await tools.named(self._assistants, caller, name)
        if len(matches) != 1:
            raise RpcError(
                INVALID_PARAMS, "Multiple tools found with the same name." if matches else f"Unknown tool: {name}"
            )
        request = RunRequest(matches[0].id, input=arguments or {}, context=context, keep_thread=True, lifetime=KEPT)
        try:
            ended = await self._ended(caller, executing, await self._calls.begin(caller, None, request))
        except AssentError as error:
            return results.refused(error)
        if ended.pause is None:
            with suppress(AssentError):  # its lifetime ends it otherwise
                await self._calls.discard(caller, ended.thread_id)
        return results.result(ended)

    async def _continued(self, caller: Principal, executing: Execution, arguments: Json) -> Json:
        thread_id, answers = arguments.get("thread_id"), arguments.get("answers")
        if not isinstance(thread_id, str) or not isinstance(answers, dict | None):
            raise RpcError(INVALID_PARAMS, "thread_id must be a string and answers an object of answers by question id")
        try:
            begun = await self._calls.resume(caller, thread_id, answers)
            ended = begun if isinstance(begun, Ended) else await self._ended(caller, executing, begun)
        except AssentError as error:
            return results.refused(error)
        return results.result(ended)

    async def _ended(self, caller: Principal, executing: Execution, begun: Begun) -> Ended:
        executing.end()
        return await self._calls.end(caller, begun)


def _initialized(params: Json) -> Json:
    requested = params.get("protocolVersion")
    return {
        "protocolVersion": requested if requested in VERSIONS else VERSIONS[0],
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": {"name": "Assent", "version": version("assent")},
        "instructions": _INSTRUCTIONS,
    }


def _require_accept(request: Request) -> None:
    accepted = request.headers.get("accept", "")
    if not any(kind in accepted for kind in _ACCEPTED):
        raise RpcError(INVALID_REQUEST, "Accept header must include application/json or text/event-stream")
