"""The execution of one request: from its complete body to its answer.

A request that continues as a stream, or that waits for a run or a person, ends its execution before that. It still
counts as open. A response that is not streamed is part of the execution until the client has received it, so that
unread responses do not pile up in memory.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Request, Response
from fastapi.responses import StreamingResponse
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from assent.surfaces.http.limits.bodies import Body
from assent.surfaces.http.limits.turns import Turns
from assent.surfaces.http.streams import HandedOver


class Execution:
    def __init__(self, turns: Turns, name: str, body: Body) -> None:
        self._turns = turns
        self._name = name
        self._body = body
        self._has_turn = False

    def reading(self, receive: Receive) -> Receive:
        return self._body.counting(receive)

    async def begin(self, request: Request) -> None:
        """Waits for the caller's turn. Raises if the client disconnected meanwhile."""
        waited = await self._turns.take(self._name)
        self._has_turn = True
        if waited and await request.is_disconnected():
            raise ClientDisconnect

    def end(self) -> None:
        self._body.forget()
        if self._has_turn:
            self._has_turn = False
            self._turns.end(self._name)


async def executed(request: Request, handle: Callable[[Request], Awaitable[Response]]) -> Response:
    """Handles a request in its caller's turn, once the body is complete."""
    await request.body()
    execution: Execution | None = request.scope.get("state", {}).get("execution")
    if execution is None:  # commands call the routes without a server
        return await handle(request)
    await execution.begin(request)
    response = await handle(request)
    if isinstance(response, StreamingResponse):
        execution.end()
        return HandedOver(response)
    return response


async def _execution(request: Request) -> Execution:
    execution: Execution = request.state.execution
    return execution


Executing = Annotated[Execution, Depends(_execution)]
"""The request's execution, for a route that ends it before waiting."""
