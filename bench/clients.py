"""Clients that cost next to nothing, so that a small machine measures the server and not them.

One request is one `send` on a kept connection. A load is many of them at once: threads of processes that start
together, each client with a thread of its own on the server, made beforehand.
"""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

PROCESSES = 2
_KEPT_SECONDS = 2.0  # servers close a connection that nobody used for a while
_LEAD_SECONDS = 1.5
"""From the call to the first counted moment: connections are made and every client has had its first run by then."""


class Client:
    def __init__(self, port: int) -> None:
        self._port = port
        self._head = f"Host: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: "
        self._connect()

    def _connect(self) -> None:
        self._socket = socket.create_connection(("127.0.0.1", self._port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._used = time.monotonic()

    def post(self, path: str, body: object) -> Any:
        with self.open(path, body) as response:
            return json.loads(response.read())

    def open(self, path: str, body: object) -> http.client.HTTPResponse:
        """The response as soon as its head is there."""
        if time.monotonic() - self._used > _KEPT_SECONDS:
            self.close()
            self._connect()
        data = json.dumps(body).encode()
        self._socket.sendall(f"POST {path} HTTP/1.1\r\n{self._head}{len(data)}\r\n\r\n".encode() + data)
        response = http.client.HTTPResponse(self._socket, method="POST")
        response.begin()
        self._used = time.monotonic()
        if response.status != 200:
            raise RuntimeError(f"{path}: {response.status} {response.read()!r}")
        return response

    def new_thread(self) -> str:
        made: str = self.post("/threads", {})["thread_id"]
        return made

    def wait(self, thread_id: str, graph: str, **body: Any) -> Any:
        return self.post(f"/threads/{thread_id}/runs/wait", {"assistant_id": graph, **body})

    def close(self) -> None:
        self._socket.close()


@dataclass(frozen=True)
class Share:
    """What one process of a load does."""

    port: int
    graph: str
    threads: Sequence[str]
    begin: float
    end: float


class Load:
    """Processes kept ready for loads."""

    def __init__(self) -> None:
        self._pool = ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn"))
        list(self._pool.map(time.sleep, [0.2] * PROCESSES))

    def run(self, port: int, graph: str, threads: Sequence[str], seconds: float) -> LoadRun:
        begin = time.monotonic() + _LEAD_SECONDS
        shares = [Share(port, graph, threads[number::PROCESSES], begin, begin + seconds) for number in range(PROCESSES)]
        return LoadRun(begin, begin + seconds, [self._pool.submit(drive, share) for share in shares])

    def close(self) -> None:
        self._pool.shutdown()


@dataclass(frozen=True)
class LoadRun:
    """A load under way. Its moments are of the machine's own clock, which all processes share."""

    begin: float
    end: float
    _counts: Sequence[Any]

    def runs(self) -> int:
        """How many runs were done between begin and end."""
        return sum(count.result() for count in self._counts)


def drive(share: Share) -> int:
    counts = [0] * len(share.threads)
    drivers = [
        threading.Thread(target=_drive, args=(share, thread_id, number, counts))
        for number, thread_id in enumerate(share.threads)
    ]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    return sum(counts)


def _drive(share: Share, thread_id: str, number: int, counts: list[int]) -> None:
    client = Client(share.port)
    while (now := time.monotonic()) < share.end:
        client.wait(thread_id, share.graph, input={"text": "hi"})
        if now >= share.begin and time.monotonic() < share.end:
            counts[number] += 1
    client.close()
