"""The HTTP server itself. Imported only by commands that serve, because uvicorn takes a while to import."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from assent.errors import ConfigError
from assent.settings import Settings

_BACKLOG = 2048


class Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """SIGTERM and SIGINT stop the server and nothing else. uvicorn would raise them again afterwards, which ends
        the process before the store is closed, and with a failure's exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)


def make(app: FastAPI, settings: Settings) -> Server:
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
        timeout_graceful_shutdown=20,
    )
    return Server(config)


def bind(settings: Settings) -> socket.socket:
    """Bound here rather than by the server, so that a taken port is one clear line, and nobody who reads the address
    is turned away: connections wait until the server takes them."""
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
