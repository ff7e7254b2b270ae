"""Many requests at once from one caller, at next to no cost for the machine: what is measured is the server's work."""

from __future__ import annotations

import json
import selectors
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit


@dataclass
class _Exchange:
    connection: socket.socket
    unsent: memoryview
    head: bytes = b""
    received: int = 0
    ended: bool = False

    def go_on(self, events: int) -> None:
        if events & selectors.EVENT_WRITE and self.unsent:
            self._send()
        if events & selectors.EVENT_READ:
            part = self._receive()
            self.head += part[: 1000 - len(self.head)]
            self.received += len(part)
            self.ended = not part

    def _send(self) -> None:
        try:
            self.unsent = self.unsent[self.connection.send(self.unsent) :]
        except OSError:  # refused before the end of the body: the answer tells why
            self.unsent = memoryview(b"")

    def _receive(self) -> bytes:
        try:
            return self.connection.recv(1024 * 1024)
        except BlockingIOError:
            return b""
        except ConnectionResetError:
            return b""

    @property
    def status(self) -> int:
        return int(self.head.split(b" ", 2)[1]) if self.head.count(b" ") > 1 else 0


@dataclass
class Flood:
    """Requests to one server with one key. `send` lets all of them go at once and reads every answer to its end."""

    url: str
    key: str
    requests: list[bytes] = field(default_factory=list)

    def add(self, method: str, path: str, body: Any = None, *, times: int = 1) -> Flood:
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        named = {
            "Host": urlsplit(self.url).netloc,
            "x-api-key": self.key,
            "Content-Type": "application/json",
            "Content-Length": str(len(content)),
            "Connection": "close",
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        self.requests += [f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + content] * times
        return self

    def send(self, *, at_once: int = 20) -> list[int]:
        """The status of every answer."""
        return [
            status
            for start in range(0, len(self.requests), at_once)
            for status in self._send(self.requests[start : start + at_once])
        ]

    def _send(self, requests: Sequence[bytes]) -> list[int]:
        parts = urlsplit(self.url)
        with selectors.DefaultSelector() as selector:
            exchanges = []
            for request in requests:
                connection = socket.create_connection((parts.hostname, parts.port or 80), timeout=30)
                connection.setblocking(False)
                exchange = _Exchange(connection, memoryview(request))
                exchanges.append(exchange)
                selector.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE, exchange)
            while any(not exchange.ended for exchange in exchanges):
                ready = selector.select(timeout=120)
                assert ready, "the server is silent"
                for key, events in ready:
                    _step(selector, key.data, events)
        return [exchange.status for exchange in exchanges]


def _step(selector: selectors.BaseSelector, exchange: _Exchange, events: int) -> None:
    had_more = bool(exchange.unsent)
    exchange.go_on(events)
    if exchange.ended:
        selector.unregister(exchange.connection)
        exchange.connection.close()
    elif had_more and not exchange.unsent:
        selector.modify(exchange.connection, selectors.EVENT_READ, exchange)
