"""A real HTTP server on loopback that records the calls it gets and answers as configured."""

import asyncio
import base64
import hashlib
import hmac
import json
import ssl
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.listening import listening

PATIENCE = 60.0


@dataclass(frozen=True)
class Call:
    method: str
    path: str
    headers: dict[str, str]
    content: bytes
    server_name: str | None = None

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


@dataclass
class Receiver:
    port: int = 0
    host: str = "127.0.0.1"
    scheme: str = "http"
    calls: list[Call] = field(default_factory=list)
    answers: deque[str] = field(default_factory=deque)
    """Heads of the next answers, such as `500 Oops`; an empty one is no answer at all. Then always 200."""
    body: bytes = b""
    hold: asyncio.Event = field(default_factory=asyncio.Event)
    """Clear it, and callers wait for their answer."""
    _came: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    async def has(self, count: int) -> list[Call]:
        """Waits until so many calls have come."""
        async with asyncio.timeout(PATIENCE), self._came:
            await self._came.wait_for(lambda: len(self.calls) >= count)
        return self.calls

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while call := await _read(reader, writer):
                async with self._came:
                    self.calls.append(call)
                    self._came.notify_all()
                await self.hold.wait()
                answer = self.answers.popleft() if self.answers else "200 OK"
                if not answer:
                    break
                writer.write(f"HTTP/1.1 {answer}\r\ncontent-length: {len(self.body)}\r\n\r\n".encode() + self.body)
                await writer.drain()
        except ConnectionError:
            pass  # a caller may go as it pleases


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Call | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    method, path, _ = first.split()
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    content = await reader.readexactly(int(headers.get("content-length", 0)))
    secured = writer.get_extra_info("ssl_object")
    return Call(method, path, headers, content, getattr(secured, "asked_name", None))


@asynccontextmanager
async def receiving(*, host: str = "127.0.0.1", secured: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    receiver = Receiver(host=host, scheme="https" if secured else "http")
    receiver.hold.set()
    async with listening(receiver.serve, host, secured=secured) as receiver.port:
        try:
            yield receiver
        finally:
            receiver.hold.set()


def verified(call: Call, secret: str) -> bool:
    """As standardwebhooks.com tells a receiver to, and with none of our code."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{call.headers['webhook-id']}.{call.headers['webhook-timestamp']}.".encode() + call.content
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    sent = [part.partition(",")[::2] for part in call.headers["webhook-signature"].split()]
    return any(version == "v1" and hmac.compare_digest(value, expected) for version, value in sent)
