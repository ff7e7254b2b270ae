"""Limits the time and the number of connections that do not finish their request or do not read their response.

uvicorn has no timeout for a head or a body. Here a head must be complete, and small, within `header_timeout`, and a
body must keep arriving. A connection whose client receives no byte of its response for `write_timeout` is closed, and
the request counts as open until the client has received nearly all of the response.

Connections without a complete request from an authenticated caller are counted; beyond `max_incomplete_connections`,
the oldest one of the address with the most is closed. A client that sends its request at once is counted only briefly,
so half-open connections displace each other and no other client.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import sys
import termios
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from assent.settings import Settings
from assent.surfaces.http.streams import DISCONNECT

log = logging.getLogger(__name__)

LARGEST_HEAD = 64 * 1024
SLOWEST_BODY = 128 * 1024  # bytes a second, once `body_timeout` is over


class IncompleteConnections:
    """The connections without a complete request, by address, the oldest first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0
        self._by_address: dict[str, dict[TimedProtocol, None]] = defaultdict(dict)

    def add(self, connection: TimedProtocol) -> None:
        same_address = self._by_address[connection.address]
        if connection in same_address:
            return
        same_address[connection] = None
        self._count += 1
        if self._count > self._most:
            self._close_one()

    def remove(self, connection: TimedProtocol) -> None:
        same_address = self._by_address.get(connection.address)
        if same_address is None or connection not in same_address:
            return
        del same_address[connection]
        self._count -= 1
        if not same_address:
            del self._by_address[connection.address]

    def _close_one(self) -> None:
        largest = max(self._by_address.values(), key=len)
        oldest = next((connection for connection in largest if not connection.is_authenticated), None)
        if oldest is not None:
            self.remove(oldest)
            oldest.close()


class CountedTransport:
    """A connection's transport that counts its bytes, and closes the connection when none leaves for `patience`."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, patience: float) -> None:
        self._transport = transport
        self._loop = loop
        self._patience = patience
        self._written = self._seen = 0
        self._timer: asyncio.TimerHandle | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        self._written += len(data)
        self._transport.write(data)
        if self._timer is None:
            self._watch()

    def forget(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _watch(self) -> None:
        self._seen = self._taken
        self._timer = self._loop.call_later(self._patience, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._unread == 0:
            return
        if self._taken > self._seen:
            return self._watch()
        log.info("write response failed: the client does not read, connection closed", extra={"unread": self._unread})
        self._transport.abort()  # close() would wait for the client

    @property
    def _unread(self) -> int:
        return self._transport.get_write_buffer_size()

    @property
    def _taken(self) -> int:
        """Bytes that the client's kernel has acknowledged. The buffer here shrinks in steps of a megabyte, because this
        kernel accepts more only when much of its own buffer is free."""
        return self._written - self._unread - _unconfirmed(self._transport)


def _unconfirmed(transport: asyncio.Transport) -> int:
    """Bytes in this kernel's send queue that the client's kernel has not acknowledged; 0 if unknown."""
    connection = transport.get_extra_info("socket")
    try:
        return int.from_bytes(fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4)), sys.byteorder)
    except (AttributeError, OSError):
        return 0


class TimedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 with time limits for heads, bodies and answers, and a size limit for heads."""

    def __init__(self, *args: Any, incomplete: IncompleteConnections, settings: Settings, **named: Any) -> None:
        super().__init__(*args, **named)
        self._incomplete = incomplete
        self._for_head = settings.header_timeout.total_seconds()
        self._for_body = settings.body_timeout.total_seconds()
        self._for_answer = settings.write_timeout.total_seconds()
        self._timer: asyncio.TimerHandle | None = None
        self._in_head = self._in_body = False
        self._head_size = self._body_size = 0
        self._began = 0.0
        self._on_disconnect: Callable[[], None] | None = None

    @property
    def address(self) -> str:
        return self.client[0] if self.client else ""

    @property
    def is_authenticated(self) -> bool:
        """Whether the head has authenticated the caller: then the request counts among the caller's open requests."""
        return self._in_body and "principal" in self.cycle.scope.get("state", {})

    def close(self) -> None:
        self._disarm()
        self.transport.close()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._counted = CountedTransport(transport, self.loop, self._for_answer)
        super().connection_made(cast(asyncio.Transport, self._counted))
        self._arm(self._for_head)
        self._incomplete.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        self._counted.forget()
        self._incomplete.remove(self)
        super().connection_lost(exc)
        if self._on_disconnect is not None:
            self._on_disconnect()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_head:
            self._head_size += len(data)
            if self._head_size > LARGEST_HEAD:
                self._end(431, "the head of this request is too large")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head_size = True, 0
        self._incomplete.add(self)
        self._arm(self._for_head)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._in_head, self._in_body, self._body_size = False, True, 0
        self._began = self.loop.time()
        self._arm(self._for_body)

    def on_body(self, body: bytes) -> None:
        self._body_size += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_body = False
        self._disarm()
        self._incomplete.remove(self)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._in_head and not self._in_body and not self.pipeline and not self.transport.is_closing():
            self._incomplete.add(self)  # idle; uvicorn closes it after a few seconds

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        cast(dict[str, Any], cycle.scope)["extensions"] = {DISCONNECT: self._report_disconnect}
        super()._start_asgi_task(cycle, partial(_until_taken, app, cycle.flow))

    def _report_disconnect(self, callback: Callable[[], None] | None) -> None:
        self._on_disconnect = callback
        if callback is not None and self.transport.is_closing():
            callback()

    def _arm(self, seconds: float) -> None:
        self._disarm()
        self._timer = self.loop.call_later(seconds, self._is_late)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _is_late(self) -> None:
        self._timer = None
        if not self._in_head and not self._in_body:
            return self.close()  # browsers open connections in advance
        if self._in_head:
            return self._end(408, "the head of this request did not arrive in time")
        left = self._began + self._for_body + self._body_size / SLOWEST_BODY - self.loop.time()
        if left > 0 or self.flow.read_paused:  # while reading is paused, the server is late, not the client
            return self._arm(max(left, 1.0))
        self._end(408, "the body of this request did not arrive in time")

    def _end(self, status: int, reason: str) -> None:
        """Closes the connection; sends the reason first if no response was started."""
        self._disarm()
        if self.transport.is_closing():
            return
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request, despite uvicorn's type
        idle = cycle is None or cycle.response_complete
        if (self._in_head and idle) or (self._in_body and cycle is not None and not cycle.response_started):
            self.transport.write(b"".join(_answer(status, reason)))
        self.transport.close()


async def _until_taken(app: Any, flow: FlowControl, scope: Scope, receive: Receive, send: Send) -> None:
    """Runs the app until the client has received nearly all of the response; uvicorn does not await the last part."""

    async def taken(message: Message) -> None:
        await send(message)
        if flow.write_paused:
            await flow.drain()

    await app(scope, receive, taken)


def _answer(status: int, reason: str) -> Iterator[bytes]:
    body = reason.encode()
    yield STATUS_LINE[status]
    yield b"content-type: text/plain; charset=utf-8\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
    yield body
