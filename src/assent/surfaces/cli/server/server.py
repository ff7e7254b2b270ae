"""The HTTP server. Imported only by commands that serve, because uvicorn is slow to import."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial

import uvicorn
from starlette.types import ASGIApp

from assent.errors import ConfigError
from assent.settings import Settings
from assent.surfaces.http.limits.connections import IncompleteConnections, TimedProtocol

Leaving = Callable[[], Awaitable[None]]
_BACKLOG = 2048


class Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, leaving: Leaving | None = None) -> None:
        super().__init__(config)
        self.interrupted = False
        self._leaving = leaving

    def leave(self, *, within: int) -> None:
        """Stops the server; active requests have `within` seconds to end. Thread-safe."""
        self.config.timeout_graceful_shutdown = within
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._leaving is not None:
            await self._leaving()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """SIGTERM and SIGINT only stop the server. uvicorn would raise them again afterwards, which ends the process
        before the store is closed and with an error exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._interrupt, number)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    def _interrupt(self, number: int) -> None:
        self.interrupted = True
        self.handle_exit(number, None)


def make(app: ASGIApp, settings: Settings, leaving: Leaving | None = None) -> Server:
    """`leaving` closes the streams of clients that would stay connected."""
    logging.getLogger("uvicorn.error").addFilter(_is_not_cancellation)
    incomplete = IncompleteConnections(settings.max_incomplete_connections)
    config = uvicorn.Config(
        app,
        http=partial(TimedProtocol, incomplete=incomplete, settings=settings),  # type: ignore[arg-type]
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="websockets-sansio",
        ws_max_size=settings.max_body_bytes,
        ws_per_message_deflate=False,
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
        timeout_graceful_shutdown=20,
    )
    return Server(config, leaving)


def _is_not_cancellation(record: logging.LogRecord) -> bool:
    """A request cancelled by the shutdown is not an error: the server logs their number."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


def bind(settings: Settings) -> socket.socket:
    """Binds before the server starts, so that a port in use is a clear error, and connections to the announced address
    wait instead of being refused."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        reason = error.strerror or str(error)
        raise ConfigError(
            f"cannot listen on {settings.host}:{settings.port}: {reason}", hint="choose another --port"
        ) from None
    return listener
