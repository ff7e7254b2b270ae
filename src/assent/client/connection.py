"""Requests to an Assent server: retries, idempotency keys, pages and event streams.

Every change has an Idempotency-Key, so that a retry after a broken connection does nothing twice.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Self
from urllib.parse import urlsplit
from uuid import uuid4

import httpx

from assent.client import problems
from assent.errors import AssentError, Invalid, Unavailable

LARGEST_PAGE = 1000
_PATIENCE_SECONDS = 30.0
_PAUSES_SECONDS = (0.3, 1.0, 2.0)
_LONGEST_PAUSE_SECONDS = 10.0
_SILENCE_SECONDS = 60.0
"""The server sends a heartbeat more often than this."""


@dataclass(frozen=True, slots=True)
class ServerSent:
    """An event of a stream."""

    id: str | None
    event: str
    data: Any


class Connection:
    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        via: str = "rest",
        timeout: float = _PATIENCE_SECONDS,
        transport: httpx.AsyncBaseTransport | None = None,
        where: str | None = None,
    ) -> None:
        """`via` names the surface in the timeline: `rest` or `cli`. `where` names the server in errors."""
        if key and not (key.isascii() and key.isprintable() and key == key.strip()):
            raise Invalid("the API key has invalid characters")
        self.where = where or url
        self._headers = {"Assent-Via": via}
        self._client = httpx.AsyncClient(
            base_url=url,
            headers={"x-api-key": key} if key else {},
            timeout=timeout,
            transport=transport,
            trust_env=not _is_loopback(url),  # requests to this machine do not use the environment's proxy
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._client.aclose()

    async def get(self, path: str, **query: Any) -> Any:
        """Reads. Retries, since reading changes nothing."""
        named = {name: value for name, value in query.items() if value is not None}
        return await self._request("GET", path, params=named, repeatable=True)

    async def send(
        self, method: str, path: str, body: Any = None, *, key: str | None = None, repeatable: bool = True
    ) -> Any:
        """Sends a change. Retries if the response is lost and the change is `repeatable`."""
        headers = {**self._headers, "Idempotency-Key": key or str(uuid4())}
        return await self._request(method, path, json=body, headers=headers, repeatable=repeatable)

    async def exchange(self, path: str, content: bytes) -> httpx.Response:
        """Posts JSON as it is, once and for as long as it takes. The caller reads the response, whatever its status."""
        headers = {"content-type": "application/json", "accept": "application/json"}
        try:
            return await self._client.post(path, content=content, headers=headers, timeout=None)
        except httpx.TransportError as error:
            raise self.unreachable(error) from None

    async def pages(self, path: str, *, most: int | None = None, **query: Any) -> AsyncIterator[dict[str, Any]]:
        """Yields pages until there are no more or `most` entries were returned."""
        cursor, left = None, most
        while True:
            size = LARGEST_PAGE if left is None else min(left, LARGEST_PAGE)
            page = await self.get(path, limit=size, cursor=cursor, **query)
            yield page
            cursor, left = page["next"], None if left is None else left - len(page["items"])
            if cursor is None or left == 0:
                return

    async def stream(self, path: str, *, after: str | None = None) -> AsyncGenerator[ServerSent, None]:
        """The events of one connection, until it ends."""
        headers = {"accept": "text/event-stream"} | ({"Last-Event-ID": after} if after else {})
        timeout = httpx.Timeout(_PATIENCE_SECONDS, read=_SILENCE_SECONDS)
        try:
            async with self._client.stream("GET", path, headers=headers, timeout=timeout) as response:
                if not response.is_success:
                    await response.aread()
                    raise self.raised(response)
                async with aclosing(_events(response)) as events:
                    async for event in events:
                        yield event
        except httpx.TransportError as error:
            raise self.unreachable(error) from None

    async def _request(self, method: str, path: str, *, repeatable: bool, **options: Any) -> Any:
        for pause in (*_PAUSES_SECONDS, None):
            try:
                response = await self._client.request(method, path, **options)
            except httpx.TransportError as error:
                lost = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
                if pause is None or (lost and not repeatable):
                    raise self.unreachable(error) from None
                await asyncio.sleep(pause)
                continue
            if response.status_code != Unavailable.status or pause is None:
                return self._read(response)
            await asyncio.sleep(_asked_pause(response.headers, pause))
        raise AssertionError("the last attempt returns or raises")

    def _read(self, response: httpx.Response) -> Any:
        if not response.is_success:
            raise self.raised(response)
        if response.status_code == httpx.codes.NO_CONTENT or not response.content:
            return None
        try:
            return response.json()
        except ValueError:
            raise problems.not_an_assent(response, self.where) from None

    def raised(self, response: httpx.Response) -> AssentError:
        """The error of a response."""
        return problems.raised(response, self.where)

    def unreachable(self, error: httpx.TransportError) -> Unavailable:
        reason = " ".join(str(error).split()) or type(error).__name__
        return Unavailable(f"{self.where} does not answer: {reason}")


async def _events(response: httpx.Response) -> AsyncGenerator[ServerSent, None]:
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
        else:
            if fields.get("data"):
                yield ServerSent(fields.get("id"), fields.get("event", "message"), json.loads(fields["data"]))
            fields = {}


def _asked_pause(headers: Mapping[str, str], usual: float) -> float:
    asked = headers.get("retry-after", "")
    return min(float(asked), _LONGEST_PAUSE_SECONDS) if asked.isdecimal() else usual


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
