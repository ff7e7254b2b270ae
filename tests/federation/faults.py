"""A network between an inbox and its deployment that drops, delays, duplicates and cuts what it carries."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from enum import StrEnum
from random import Random
from urllib.parse import urlsplit

from tests.listening import listening

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_KEPT_OPEN = re.compile(rb"\r\nconnection: [^\r]*", re.IGNORECASE)


class Fault(StrEnum):
    REQUEST_DROPPED = "request dropped"
    RESPONSE_DROPPED = "response dropped"
    RESPONSE_CUT = "response cut"
    DELAYED = "delayed"
    DUPLICATED = "duplicated"


class FaultyProxy:
    """Carries one request per connection. Each of `percent` requests meets a fault."""

    def __init__(self, upstream: str, *, seed: int, percent: int) -> None:
        address = urlsplit(upstream)
        self._upstream = (address.hostname or "", address.port or 0)
        self._random = Random(seed)
        self._percent = percent
        self.faults = Counter[Fault]()
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            writer.write(await self._carried(await whole_request(reader)))
            await writer.drain()

    async def _carried(self, request: bytes) -> bytes:
        fault = self._random.choice(list(Fault)) if self._random.randrange(100) < self._percent else None
        if fault is not None:
            self.faults[fault] += 1
        if fault is Fault.REQUEST_DROPPED:
            return b""
        if fault is Fault.DELAYED:
            await asyncio.sleep(self._random.uniform(0.05, 0.5))
        if fault is Fault.DUPLICATED:
            await self._asked(request)
        response = await self._asked(request)
        if fault is Fault.RESPONSE_DROPPED:
            return b""
        return response[: len(response) // 2] if fault is Fault.RESPONSE_CUT else response

    async def _asked(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(*self._upstream)
        try:
            writer.write(request)
            return await reader.read()
        finally:
            writer.close()


async def whole_request(reader: asyncio.StreamReader) -> bytes:
    """A whole request, after which the server closes the connection."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = _LENGTH.search(head)
    body = await reader.readexactly(int(length[1])) if length else b""
    return _KEPT_OPEN.sub(b"", head[:-4]) + b"\r\nConnection: close\r\n\r\n" + body


@asynccontextmanager
async def faulty(upstream: str, *, seed: int, percent: int) -> AsyncIterator[FaultyProxy]:
    proxy = FaultyProxy(upstream, seed=seed, percent=percent)
    async with listening(proxy.serve) as port:
        proxy.url = f"http://127.0.0.1:{port}"
        yield proxy
