"""A network that breaks: a proxy in front of a server whose open connections a test can cut, without a goodbye."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread
from urllib.parse import urlsplit

_RESET = struct.pack("ii", 1, 0)


class CuttingProxy(ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, upstream: str) -> None:
        address = urlsplit(upstream)
        self.upstream = (address.hostname or "", address.port or 0)
        self.open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), _Relay)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    async def is_used(self) -> bool:
        return bool(self.open)

    def cut(self) -> None:
        """Resets every connection of now; those made afterwards work."""
        broken, self.open = self.open, set()
        for connection in broken:
            with suppress(OSError):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                connection.shutdown(socket.SHUT_RDWR)


class _Relay(BaseRequestHandler):
    server: CuttingProxy

    def handle(self) -> None:
        with socket.create_connection(self.server.upstream) as upstream:
            self.server.open.update({self.request, upstream})
            back = Thread(target=_pump, args=(upstream, self.request), daemon=True)
            back.start()
            _pump(self.request, upstream)
            back.join()
            self.server.open.difference_update({self.request, upstream})


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextmanager
def cutting(upstream: str) -> Iterator[CuttingProxy]:
    with CuttingProxy(upstream) as proxy:
        serving = Thread(target=proxy.serve_forever, daemon=True)
        serving.start()
        yield proxy
        proxy.cut()
        proxy.shutdown()
        serving.join()
