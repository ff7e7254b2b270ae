"""The one HTTP client for targets that callers name. No code sends requests in another way.

A host is resolved here, all its addresses are checked, and the connection is made to a checked address, so a name
server that answers differently a moment later changes nothing. TLS and the Host header still use the name. A redirect
is a new call with the same checks. Proxies from the environment are not used: behind one, the check would be about the
wrong address.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address
from typing import Any

import httpcore
import httpx

from assent.errors import TargetRefused
from assent.outbox.addresses import Address, literal
from assent.outbox.targets import Targets

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""A host and a port → its addresses."""

TIMEOUT = 15.0
LIMIT = 64 * 1024
REDIRECTS = 3

_CONNECTIONS = 100
_KEPT_SECONDS = 15.0
_ERRORS: tuple[tuple[type[Exception], type[httpx.TransportError]], ...] = (
    (httpcore.TimeoutException, httpx.TimeoutException),
    (httpcore.ConnectError, httpx.ConnectError),
    (httpcore.NetworkError, httpx.NetworkError),
    (httpcore.ProtocolError, httpx.RemoteProtocolError),
)


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
        self._resolve = resolve or ask_system
        self._trust = trust
        self._opened = False

    @cached_property
    def client(self) -> httpx.AsyncClient:
        """For libraries that make their own calls. Created on first use: reading the certificates is slow."""
        self._opened = True
        transport = GuardedTransport(self.targets, self._resolve, self._trust or httpx.create_ssl_context())
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


class GuardedTransport(httpx.AsyncBaseTransport):
    """Connects httpx to httpcore's pool, with the guard in between."""

    def __init__(self, targets: Targets, resolve: Resolve, trust: ssl.SSLContext) -> None:
        self._targets = targets
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=trust,
            max_connections=_CONNECTIONS,
            keepalive_expiry=_KEPT_SECONDS,
            network_backend=PinnedNetwork(targets, resolve),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = self._targets.check_url(request.url)
        below = httpcore.Request(
            request.method,
            httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _translated(request):
            response = await self._pool.handle_async_request(below)
        stream = _Stream(request, response)
        return httpx.Response(response.status, headers=response.headers, stream=stream, extensions=response.extensions)

    async def aclose(self) -> None:
        await self._pool.aclose()


class PinnedNetwork(httpcore.AsyncNetworkBackend):
    """Connects only to checked addresses, never to a name."""

    def __init__(self, targets: Targets, resolve: Resolve) -> None:
        self._targets = targets
        self._resolve = resolve
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        failed: httpcore.ConnectError | httpcore.ConnectTimeout = httpcore.ConnectError(f"{host} has no address")
        for address in await self._addresses(host, port):
            try:
                return await self._network.connect_tcp(str(address), port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.AsyncNetworkStream:
        raise TargetRefused("sockets of this machine cannot be called")

    async def sleep(self, seconds: float) -> None:
        await self._network.sleep(seconds)

    async def _addresses(self, host: str, port: int) -> list[Address]:
        spelled = literal(host)
        addresses = [spelled] if spelled else [ip_address(text) for text in await self._resolve(host, port)]
        try:
            self._targets.check_addresses(host, addresses)
        except TargetRefused as refused:
            refused.by_name = spelled is None
            raise
        return addresses


class _Stream(httpx.AsyncByteStream):
    def __init__(self, request: httpx.Request, response: httpcore.Response) -> None:
        self._request = request
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _translated(self._request):
            async for part in self._response.aiter_stream():
                yield part

    async def aclose(self) -> None:
        await self._response.aclose()


async def ask_system(host: str, port: int) -> list[str]:
    try:
        infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise httpcore.ConnectError(f"{host} cannot be resolved: {error.strerror or error}") from None
    return list(dict.fromkeys(str(address[0]) for *_, address in infos))


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


@contextmanager
def _translated(request: httpx.Request) -> Iterator[None]:
    try:
        yield
    except tuple(below for below, _ in _ERRORS) as error:
        ours = next(ours for below, ours in _ERRORS if isinstance(error, below))
        raise ours(str(error), request=request) from error
