"""The one HTTP client for targets that callers name. No code sends requests in another way.

A host is resolved here, all its addresses are checked, and the connection is made to a checked address, so a name
server that answers differently a moment later changes nothing. TLS and the Host header still use the name. A redirect
is a new call with the same checks. Proxies from the environment are not used: behind one, the check would be about the
wrong address.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import httpx

from assent.errors import TargetRefused
from assent.outbox.targets import Targets

if TYPE_CHECKING:
    from assent.outbox.network import Resolve

TIMEOUT = 15.0
LIMIT = 64 * 1024
REDIRECTS = 3


@dataclass(frozen=True, slots=True)
class Answer:
    """The response. `complete` is false where the body exceeded the limit; the rest was not read."""

    status: int
    headers: httpx.Headers
    body: bytes
    complete: bool


class Outbound:
    def __init__(
        self, targets: Targets, *, resolve: Resolve | None = None, trust: ssl.SSLContext | None = None
    ) -> None:
        self.targets = targets
        self._resolve = resolve
        self._trust = trust
        self._opened = False

    @cached_property
    def client(self) -> httpx.AsyncClient:
        """For libraries that make their own calls. Created on first use: reading the certificates is slow."""
        from assent.outbox.network import GuardedTransport, ask_system  # slow to import

        self._opened = True
        resolve, trust = self._resolve or ask_system, self._trust or httpx.create_ssl_context()
        transport = GuardedTransport(self.targets, resolve, trust)
        headers = {"accept-encoding": "identity", "user-agent": "assent"}
        return httpx.AsyncClient(transport=transport, headers=headers, trust_env=False, timeout=TIMEOUT)

    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        credentials: Mapping[str, str] | None = None,
        content: bytes | None = None,
        timeout: float = TIMEOUT,
        limit: int = LIMIT,
    ) -> Answer:
        """One call, redirects included, within `timeout` seconds from lookup to last byte: else `TimeoutError`.
        `credentials` are headers that are sent only to the first server."""
        sent = {**(credentials or {}), **(headers or {})}
        async with asyncio.timeout(timeout):
            request = self.client.build_request(method, self.targets.check_url(url), headers=sent, content=content)
            return await self._follow(request, limit, private=credentials or {})

    async def close(self) -> None:
        if self._opened:
            await self.client.aclose()

    async def _follow(self, request: httpx.Request, limit: int, *, private: Iterable[str]) -> Answer:
        """Follows redirects that keep method and body; returns others as the answer."""
        for _ in range(REDIRECTS + 1):
            response = await self.client.send(request, stream=True)
            following = response.next_request
            if following is None or following.method != request.method:
                return await _answer(response, limit)
            await response.aclose()
            if (request.url.scheme, following.url.scheme) == ("https", "http"):
                raise TargetRefused("redirected from https to http")
            if _origin(request.url) != _origin(following.url):
                for name in private:
                    following.headers.pop(name, None)
            request = following
        raise httpx.TooManyRedirects(f"redirected more than {REDIRECTS} times", request=request)


def _origin(url: httpx.URL) -> tuple[str, bytes, int | None]:
    return url.scheme, url.raw_host, url.port


async def _answer(response: httpx.Response, limit: int) -> Answer:
    body, complete = bytearray(), True
    try:
        async for part in response.aiter_raw():
            body += part
            if len(body) > limit:
                complete = False
                break
    finally:
        await response.aclose()
    return Answer(response.status_code, response.headers, bytes(body[:limit]), complete)
