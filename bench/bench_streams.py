"""The memory of clients that only listen: event streams of the inbox on which nothing happens."""

from __future__ import annotations

import socket
import time

from bench.clients import Client
from bench.rows import Row, at_most
from bench.served import Served, assent, serving, workplace

CLIENTS, WARM_UP = 800, 50
_SETTLE_SECONDS = 1.0


def run() -> list[Row]:
    with workplace() as folder, serving(assent, folder) as served:
        client = Client(served.port)
        client.wait(client.new_thread(), "echo", input={"text": "hi"})
        client.close()
        warm = [_listen(served) for _ in range(WARM_UP)]  # their memory stays in use: none of it serves those measured
        before = _settled(served)
        streams = [_listen(served) for _ in range(CLIENTS)]
        grown = _settled(served) - before
        for stream in (*warm, *streams):
            stream.close()
    return [at_most("memory of an idle event stream", grown * 1024 / CLIENTS, "KiB", target=15)]


def _settled(served: Served) -> float:
    time.sleep(_SETTLE_SECONDS)
    return served.resident_mib()


def _listen(served: Served) -> socket.socket:
    """A stream whose head and first bytes have arrived."""
    stream = socket.create_connection(("127.0.0.1", served.port), timeout=60)
    stream.sendall(f"GET /api/inbox/events HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n\r\n".encode())
    head = stream.recv(4096)
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(head.decode())
    return stream
