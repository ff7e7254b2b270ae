"""A stream is sent once its route has returned, in one task, until its end or the client's disconnect."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from fastapi.responses import StreamingResponse
from starlette.types import Message, Receive, Scope

from assent.surfaces.http.streams import DISCONNECT, HandedOver, send_handed_over


class Connection:
    """A client's connection: what was sent to it, and how it disconnects."""

    def __init__(self, *, reports: bool = True) -> None:
        self.sent: list[Message] = []
        self.callback: Callable[[], None] | None = None
        self.gone, self.arrived = asyncio.Event(), asyncio.Event()
        self.scope: Scope = {"type": "http", "state": {}, "fastapi_inner_astack": object()}
        if reports:
            self.scope["extensions"] = {DISCONNECT: self._report}

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)

    async def send(self, message: Message) -> None:
        self.sent.append(message)
        if "body" in message:
            self.arrived.set()

    async def receive(self) -> Message:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    def disconnect(self) -> None:
        self.gone.set()
        if self.callback is not None:
            self.callback()
            self.callback()

    def _report(self, callback: Callable[[], None] | None) -> None:
        self.callback = callback

    async def follow(self, stream: StreamingResponse) -> None:
        receive: Receive = self.receive
        await HandedOver(stream)(self.scope, receive, self.send)
        assert self.sent == [], "the route has sent something"
        await send_handed_over(self.scope, receive, self.send)


class Source:
    """Parts of a stream, then silence. `freed` once it was left."""

    def __init__(self, *, ends: bool = False) -> None:
        self.freed = False
        self._ends = ends

    async def parts(self) -> AsyncIterator[bytes]:
        try:
            yield b"first"
            if not self._ends:
                await asyncio.Event().wait()
        finally:
            self.freed = True


async def test_stream_is_sent_to_its_end() -> None:
    connection, source = Connection(), Source(ends=True)
    await connection.follow(StreamingResponse(source.parts()))
    assert (connection.sent[0]["status"], connection.body) == (200, b"first")
    assert connection.sent[-1]["more_body"] is False
    assert connection.callback is None


async def test_scope_keeps_nothing_of_the_route() -> None:
    connection = Connection()
    await connection.follow(StreamingResponse(Source(ends=True).parts()))
    assert connection.scope.keys() == {"type", "state", "extensions"}
    assert connection.scope["state"] == {}


@pytest.mark.parametrize("reports", [True, False])
async def test_disconnect_ends_the_stream_and_frees_its_source(*, reports: bool) -> None:
    connection, source = Connection(reports=reports), Source()
    following = asyncio.create_task(connection.follow(StreamingResponse(source.parts())))
    await connection.arrived.wait()
    assert not following.done()
    connection.disconnect()
    await following
    assert source.freed


async def test_connection_that_is_gone_already_ends_the_stream() -> None:
    connection, source = Connection(), Source()

    def report(callback: Callable[[], None] | None) -> None:
        if callback is not None:
            callback()

    connection.scope["extensions"] = {DISCONNECT: report}
    await connection.follow(StreamingResponse(source.parts()))
    assert source.freed


async def test_cancellation_of_the_request_is_raised() -> None:
    connection, source = Connection(), Source()
    following = asyncio.create_task(connection.follow(StreamingResponse(source.parts())))
    await connection.arrived.wait()
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following
    assert source.freed


async def test_request_without_a_stream_sends_nothing() -> None:
    connection = Connection()
    scopes: list[dict[str, Any]] = [{"type": "http", "state": {}}, {"type": "http"}]
    for scope in scopes:
        await send_handed_over(scope, connection.receive, connection.send)
    assert connection.sent == []
