"""graphql-transport-ws over strawberry's handler, with messages that were parsed strictly and within the limits.

The credential is looked up again for every subscription, since a socket outlives the rights that it was opened with.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from typing import Any, cast

from graphql import OperationType
from starlette.websockets import WebSocketDisconnect
from strawberry.asgi import ASGIWebSocketAdapter, GraphQL
from strawberry.http.exceptions import NonJsonMessageReceived, NonTextMessageReceived
from strawberry.subscriptions import GRAPHQL_TRANSPORT_WS_PROTOCOL

from assent.errors import AssentError, Invalid, TooManyRequests, Unauthenticated
from assent.kernel import canonical, jsonable
from assent.review import watchers
from assent.surfaces.graphql import documents, errors
from assent.surfaces.graphql.context import Context
from assent.surfaces.graphql.schema import Schema, types
from assent.surfaces.http.limits.admission import Admission

_TOO_MANY = 4429
_LARGEST_MESSAGE = 64 * 1024
_MOST_SUBSCRIPTIONS = 32


class _Adapter(ASGIWebSocketAdapter):
    async def iter_json(self, *, ignore_parsing_errors: bool = False) -> AsyncGenerator[object, None]:
        try:
            while True:
                message = await self._message()
                if await self._admits(message):
                    yield message
        except WebSocketDisconnect:
            return

    async def _message(self) -> Any:
        try:
            text = await self.ws.receive_text()
        except KeyError:
            raise NonTextMessageReceived from None
        try:
            message = canonical.parse(text, max_bytes=_LARGEST_MESSAGE)
        except canonical.JsonError:
            raise NonJsonMessageReceived from None
        if not isinstance(message, dict):
            raise NonJsonMessageReceived
        return message

    async def _admits(self, message: dict[str, Any]) -> bool:
        """Counts the message, and answers a subscription that is refused; strawberry handles everything else."""
        socket = cast("Socket", self.view)
        try:
            async with socket.admission.turn(socket.context.caller):
                if message.get("type") == "subscribe":
                    await socket.renew()
                    await _require_subscription(message.get("payload"))
        except TooManyRequests as error:
            await self.close(_TOO_MANY, error.message)
            raise WebSocketDisconnect(_TOO_MANY) from None
        except AssentError as error:
            refused = errors.refused(error)["errors"]
            await self.send_json({"id": message.get("id"), "type": "error", "payload": refused})
            return False
        return True


async def _require_subscription(payload: Any) -> None:
    query = payload.get("query") if isinstance(payload, dict) else None
    variables = payload.get("variables") or {} if isinstance(payload, dict) else None
    if not isinstance(query, str) or not isinstance(variables, dict):
        raise Invalid("payload: query and variables are needed")
    kind = await documents.admitted(types(), query, variables, payload.get("operationName"))
    if kind is not OperationType.SUBSCRIPTION:
        raise Invalid("a web socket carries subscriptions only", hint="send queries and mutations by POST")


class Socket(GraphQL[Context, None]):
    websocket_adapter_class = _Adapter

    def __init__(self, schema: Schema, context: Context, admission: Admission) -> None:
        super().__init__(
            schema,
            graphql_ide=None,
            subscription_protocols=(GRAPHQL_TRANSPORT_WS_PROTOCOL,),
            max_subscriptions_per_connection=_MOST_SUBSCRIPTIONS,
            allowed_origins=("*",),  # the authentication has compared the origin, where a cookie was used
        )
        self.context = context
        self.admission = admission
        self._opened_at = time.monotonic()

    async def renew(self) -> None:
        """Gives the caller the rights of now. Only a new connection asks the project's auth handler again."""
        caller = self.context.caller
        if caller.user is not None and time.monotonic() - self._opened_at > watchers.HANDLED_FOR:
            raise Unauthenticated("the authentication of this connection has expired", hint="connect again")
        self.context.caller = await self.context.sources.live.renewed(caller)

    async def get_context(self, request: Any, response: Any) -> Context:
        return self.context

    def encode_json(self, data: object) -> str:
        return jsonable.dump(data).decode()
