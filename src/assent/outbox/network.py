"""The network of the HTTP client: connects to checked addresses only. Slow to import, because httpcore is."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any

import httpcore
import httpx

from assent.errors import TargetRefused
from assent.outbox.addresses import Address, literal
from assent.outbox.targets import Targets

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""A host and a port → its addresses."""

_CONNECTIONS = 100
_KEPT_SECONDS = 15.0
_ERRORS: tuple[tuple[type[Exception], type[httpx.TransportError]], ...] = (
    (httpcore.TimeoutException, httpx.TimeoutException),
    (httpcore.ConnectError, httpx.ConnectError),
    (httpcore.NetworkError, httpx.NetworkError),
    (httpcore.ProtocolError, httpx.RemoteProtocolError),
)


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


@contextmanager
def _translated(request: httpx.Request) -> Iterator[None]:
    try:
        yield
    except tuple(below for below, _ in _ERRORS) as error:
        ours = next(ours for below, ours in _ERRORS if isinstance(error, below))
        raise ours(str(error), request=request) from error
