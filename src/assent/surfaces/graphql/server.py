"""Executes operations over HTTP, server-sent events and web sockets. Limits are checked before strawberry sees a
document; a web socket carries subscriptions only, because rights are checked anew for each request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import Request, Response, WebSocket
from fastapi.responses import StreamingResponse
from graphql import OperationType
from pydantic import Field

from assent.errors import AssentError, Invalid
from assent.identity.model.passkeys import Proof
from assent.kernel import jsonable
from assent.review.watchers import HEARTBEAT
from assent.surfaces.api.schemas import Body
from assent.surfaces.graphql import documents, errors
from assent.surfaces.graphql.context import Context, Sources
from assent.surfaces.graphql.inputs import checked
from assent.surfaces.graphql.persisted import PersistedQueries
from assent.surfaces.graphql.schema import schema, types
from assent.surfaces.graphql.sockets import Socket
from assent.surfaces.http.passkey_origins import Relying

T = TypeVar("T")
MEDIA, EVENTS = "application/json", "text/event-stream"
_SSE = {"cache-control": "no-store", "x-accel-buffering": "no"}


class OperationIn(Body):
    query: str | None = None
    variables: dict[str, Any] | None = None
    operationName: str | None = Field(None, max_length=200)
    extensions: dict[str, Any] | None = None


@dataclass(slots=True)
class Server:
    sources: Sources
    relying: Relying
    persisted: PersistedQueries

    async def post(self, request: Request, sent: Any) -> Response:
        try:
            operation = checked(OperationIn, sent if isinstance(sent, dict) else {"query": sent})
            query, kind = await self._admitted(request, operation)
            if kind is OperationType.SUBSCRIPTION:
                return self._subscribed(request, query, operation)
        except AssentError as error:
            return Response(jsonable.dump(errors.refused(error)), 400, media_type=MEDIA)
        result = await schema().execute(
            query, operation.variables, context_value=self.context(request), operation_name=operation.operationName
        )
        body = {"data": result.data, **_errors(result.errors)}
        executed = result.data is not None or not result.errors or any(error.path for error in result.errors)
        return Response(jsonable.dump(body), 200 if executed else 400, media_type=MEDIA)

    async def socket(self, socket: WebSocket) -> None:
        await Socket(schema(), self.context(socket), socket.app.state.admission).run(socket)

    def context(self, connection: Request | WebSocket) -> Context:
        def proof(assertion: dict[str, Any] | None) -> Proof | None:
            return None if assertion is None else Proof(assertion, self.relying.party(connection))

        key = connection.headers.get("idempotency-key")
        return Context(connection.state.principal, self.sources, key, proof)

    async def _admitted(self, request: Request, operation: OperationIn) -> tuple[str, OperationType]:
        tenant = request.state.principal.tenant
        named = (operation.extensions or {}).get("persistedQuery")
        query = self.persisted.query(tenant, operation.query, named)
        kind = await documents.admitted(types(), query, operation.variables or {}, operation.operationName)
        if named is not None:
            self.persisted.keep(tenant, query)
        return query, kind

    def _subscribed(self, request: Request, query: str, operation: OperationIn) -> Response:
        if EVENTS not in request.headers.get("accept", ""):
            raise Invalid("a subscription needs a web socket, or the header Accept: text/event-stream")
        stream = self._events(self.context(request), query, operation)
        return StreamingResponse(stream, media_type=EVENTS, headers=_SSE)

    async def _events(self, context: Context, query: str, operation: OperationIn) -> AsyncIterator[bytes]:
        """The protocol of graphql-sse, one operation per connection."""
        yield b":\n\n"
        results = await schema().subscribe(
            query, operation.variables, context_value=context, operation_name=operation.operationName
        )
        async with aclosing(results) as stream:
            async for result in kept_alive(stream, HEARTBEAT):
                if result is None:
                    yield b":\n\n"
                else:
                    body = {"data": result.data, **_errors(result.errors)}
                    yield b"event: next\ndata: " + jsonable.dump(body) + b"\n\n"
        yield b"event: complete\ndata:\n\n"


async def kept_alive(stream: AsyncIterator[T], seconds: float) -> AsyncIterator[T | None]:
    """The results of a stream, and None after each period without one."""
    following: asyncio.Future[T] | None = None
    try:
        while True:
            following = following or asyncio.ensure_future(anext(stream))
            await asyncio.wait({following}, timeout=seconds)
            if not following.done():
                yield None
                continue
            try:
                result = following.result()
            except StopAsyncIteration:
                return
            following = None
            yield result
    finally:
        if following is not None and not following.done():
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


def _errors(raised: Any) -> dict[str, Any]:
    return {"errors": [error.formatted for error in raised]} if raised else {}
