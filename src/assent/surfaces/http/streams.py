"""Sends streamed responses once their routes have returned.

A stream is open for minutes or hours, and a server has thousands of them. A route therefore hands its stream to the
middleware, and the frames, requests and exit stacks of FastAPI below it are freed. One task sends a stream; Starlette
needs two, of which one waits for the client's disconnect. Here the connection reports it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fastapi.responses import StreamingResponse
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

DISCONNECT = "assent.disconnect"
"""The extension of the scope by which a connection reports that its client has disconnected."""

ReportDisconnect = Callable[[Callable[[], None] | None], None]
"""Takes what to call then; None: nothing any more."""

_STREAM = "stream"
_OF_ROUTES = "fastapi_"


class HandedOver(Response):
    """The response of a route whose stream the middleware sends."""

    def __init__(self, stream: StreamingResponse) -> None:
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"][_STREAM] = self._stream


async def send_handed_over(scope: Scope, receive: Receive, send: Send) -> None:
    """Sends the stream that the route of this request has handed over, if it has."""
    stream: StreamingResponse | None = scope.get("state", {}).pop(_STREAM, None)
    if stream is None:
        return
    for name in [name for name in scope if name.startswith(_OF_ROUTES)]:
        del scope[name]  # exit stacks, which are closed
    report: ReportDisconnect | None = scope.get("extensions", {}).get(DISCONNECT)
    if report is None:
        await stream(scope, receive, send)
    else:
        await _send(stream, send, report)
        if stream.background is not None:
            await stream.background()


async def _send(stream: StreamingResponse, send: Send, report: ReportDisconnect) -> None:
    """Sends the stream to its end, or until the client disconnects."""
    task, disconnected = asyncio.current_task(), False
    assert task is not None

    def disconnect() -> None:
        nonlocal disconnected
        if not disconnected:
            disconnected = True
            task.cancel()

    report(disconnect)
    try:
        await stream.stream_response(send)
    except asyncio.CancelledError:
        if not disconnected or task.uncancel():
            raise
    finally:
        report(None)
