"""`/a2a/{assistant_id}`: JSON-RPC of A2A 1.0 and 0.3, and the cards of agents. Authenticated like every route."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from assent.errors import AssentError
from assent.identity.model.access import Principal
from assent.kernel import jsonable
from assent.surfaces.a2a import cards, wire
from assent.surfaces.a2a.agent import Agents
from assent.surfaces.http import jsonrpc
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.jsonrpc import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Message, RpcError
from assent.surfaces.http.limits.execution import Executing, Execution
from assent.surfaces.http.origins import address_of
from assent.threads.bus import FellBehind

Json = dict[str, Any]
_BEAT_SECONDS = 5.0
PUSH_NOT_SUPPORTED = -32003
_STREAMS = frozenset({"SendStreamingMessage", "SubscribeToTask"})
_METHODS = _STREAMS | {"SendMessage", "GetTask", "ListTasks", "CancelTask", "GetExtendedAgentCard"}
_UNWRAPPED = frozenset({"GetTask", "CancelTask"})
"""Their result is the task itself, in both versions."""


def routes(agents: Agents, public_url: str | None) -> APIRouter:
    api = jsonrpc.router("a2a")
    served = _A2a(agents, public_url)

    @api.post("/a2a/{assistant_id}", openapi_extra=jsonrpc.DOCUMENTED)
    async def send_to_agent(request: Request, caller: Caller, executing: Executing, assistant_id: str) -> Response:
        """One JSON-RPC request of A2A: a message, or a question about a task."""
        return await served.answer(request, caller, executing, assistant_id)

    @api.get("/a2a/{assistant_id}")
    @api.get("/a2a/{assistant_id}/.well-known/agent-card.json")
    async def get_agent_card(request: Request, caller: Caller, assistant_id: str) -> Response:
        return await served.card(request, caller, assistant_id)

    @api.get("/.well-known/agent-card.json")
    async def get_card_of(request: Request, caller: Caller, assistant_id: str | None = None) -> Response:
        """The card of the assistant in the query: a server has many agents."""
        return await served.card(request, caller, assistant_id)

    return api


class _A2a:
    def __init__(self, agents: Agents, public_url: str | None) -> None:
        self._agents = agents
        self._public = public_url

    async def card(self, request: Request, caller: Principal, assistant_id: str | None) -> Response:
        try:
            if not assistant_id:
                raise RpcError(INVALID_PARAMS, "Missing required query parameter: assistant_id")
            return JSONResponse(await self._card(request, caller, assistant_id))
        except RpcError as error:
            return JSONResponse({"error": jsonrpc.failed(None, error)["error"]}, 400)

    async def answer(self, request: Request, caller: Principal, executing: Execution, assistant_id: str) -> Response:
        try:
            message = await jsonrpc.message_of(request)
        except RpcError as error:
            return jsonrpc.answer(jsonrpc.failed(None, error))
        method = wire.METHODS.get(message.method or "", message.method)
        legacy = message.method in wire.METHODS
        try:
            if message.method is None or message.id is None:
                raise RpcError(INVALID_REQUEST, "not a JSON-RPC request: id and method are required")
            if method in wire.PUSH_METHODS:
                raise RpcError(PUSH_NOT_SUPPORTED, "Push notifications are not supported: subscribe to the task")
            if method not in _METHODS:
                raise RpcError(METHOD_NOT_FOUND, f"Method not found: {message.method}")
            if method in _STREAMS:
                return await self._streamed(caller, assistant_id, message, legacy=legacy)
        except RpcError as error:
            return jsonrpc.answer(jsonrpc.failed(message.id, error))
        except AssentError as error:
            return jsonrpc.answer(jsonrpc.failed(message.id, RpcError.of(error)))
        return await jsonrpc.answered(self._called(request, caller, executing, assistant_id, message))

    async def _called(
        self, request: Request, caller: Principal, executing: Execution, assistant_id: str, message: Message
    ) -> Json:
        method = wire.METHODS.get(str(message.method), message.method)
        try:
            if method == "GetExtendedAgentCard":
                return jsonrpc.succeeded(message.id, await self._card(request, caller, assistant_id))
            assistant = await self._agents.assistant(caller, assistant_id)
            if method == "SendMessage":
                result = await self._agents.send(caller, assistant, message.params, executing)
            elif method == "GetTask":
                result = await self._agents.get(caller, assistant, message.params)
            elif method == "ListTasks":
                result = await self._agents.list(caller, assistant, message.params)
            else:
                result = await self._agents.cancel(caller, assistant, message.params)
        except RpcError as error:
            return jsonrpc.failed(message.id, error)
        except AssentError as error:
            return jsonrpc.failed(message.id, RpcError.of(error))
        if message.method in wire.METHODS:
            result = wire.legacy_task(result) if method in _UNWRAPPED else wire.legacy(result)
        return jsonrpc.succeeded(message.id, result)

    async def _streamed(self, caller: Principal, assistant_id: str, message: Message, *, legacy: bool) -> Response:
        assistant = await self._agents.assistant(caller, assistant_id)
        stream = self._agents.subscribe if _is_subscription(message) else self._agents.stream
        events = await stream(caller, assistant, message.params)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        frames = _frames(events, message.id, legacy=legacy)
        return StreamingResponse(frames, media_type="text/event-stream", headers=headers)

    async def _card(self, request: Request, caller: Principal, assistant_id: str) -> Json:
        assistant = await self._agents.assistant(caller, assistant_id)
        schema = await self._agents.input_schema(caller, assistant)
        return cards.card(assistant, schema, (self._public or address_of(request) or "").rstrip("/"))


def _is_subscription(message: Message) -> bool:
    return wire.METHODS.get(str(message.method), message.method) == "SubscribeToTask"


async def _frames(events: AsyncIterator[Json], identity: Any, *, legacy: bool) -> AsyncIterator[bytes]:
    """Server-sent events, with a comment every few seconds of silence."""
    following = asyncio.ensure_future(anext(events))
    try:
        while True:
            done, _ = await asyncio.wait({following}, timeout=_BEAT_SECONDS)
            if not done:
                yield b": heartbeat\r\n\r\n"
                continue
            event = following.result()
            yield _frame(jsonrpc.succeeded(identity, wire.legacy(event) if legacy else event))
            following = asyncio.ensure_future(anext(events))
    except StopAsyncIteration:
        return
    except FellBehind:
        yield _frame(jsonrpc.failed(identity, RpcError(jsonrpc.INTERNAL_ERROR, "the stream was read too slowly")))
    except AssentError as error:
        yield _frame(jsonrpc.failed(identity, RpcError.of(error)))
    finally:
        following.cancel()


def _frame(body: Json) -> bytes:
    """JSON in one line; U+0085 and the like end a line for some readers, so they are escaped."""
    text = jsonable.dump(body)
    for character in ("\x85", "\u2028", "\u2029"):
        text = text.replace(character.encode(), f"\\u{ord(character):04x}".encode())
    return b"event: message\r\ndata: " + text + b"\r\n\r\n"
