"""One caller's many requests, and answers that nobody reads: others go on working, and memory is given back."""

from __future__ import annotations

import asyncio
import selectors
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from assent.identity.model.access import Principal
from tests.contract.stores import both_databases, only_sqlite
from tests.faults.arena import open_arena
from tests.faults.probe import MOST_MS, Lag, measured
from tests.faults.test_stalls import Served, serving
from tests.scoreboard import Count, RecordScore
from tests.waiting import wait_until


def search(key: str) -> bytes:
    body = b'{"limit": 50}'
    head = f"POST /threads/search HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: {key}\r\nConnection: close\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body


@contextmanager
def opened(url: str, *, receives: int | None = None) -> Iterator[socket.socket]:
    """`receives` bounds the bytes that this side takes before somebody reads them."""
    parts = urlsplit(url)
    with socket.socket() as connection:
        if receives is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives)
        connection.settimeout(60)
        connection.connect((parts.hostname, parts.port or 80))
        yield connection


def flood(served: Served, requests: int) -> dict[bytes, int]:
    """Many searches at once by one agent; how they were answered."""
    statuses: dict[bytes, int] = {}
    with ExitStack() as stack, selectors.DefaultSelector() as waiting:
        for _ in range(requests):
            connection = stack.enter_context(opened(served.url))
            connection.sendall(search(served.agent))
            waiting.register(connection, selectors.EVENT_READ)
        while waiting.get_map():
            for ready, _ in waiting.select(60):
                assert isinstance(ready.fileobj, socket.socket)
                status = _read_all(ready.fileobj)[:12]
                statuses[status] = statuses.get(status, 0) + 1
                waiting.unregister(ready.fileobj)
    return statuses


def _read_all(connection: socket.socket) -> bytes:
    found = bytearray()
    while part := connection.recv(1 << 20):
        found += part
    return bytes(found)


def make_threads(served: Served) -> None:
    with served.http(served.agent) as agent:
        for number in range(50):
            agent.post("/threads", json={"metadata": {"n": number, "text": ["x" * 100] * 100}}).raise_for_status()


def lag_beside(served: Served, requests: int) -> Lag:
    make_threads(served)
    with measured(served.url, served.reviewer) as lag:
        assert flood(served, requests) == {b"HTTP/1.1 200": requests}
    return lag


@both_databases
@pytest.mark.scoreboard
def test_concurrent_searches_of_one_agent_delay_nobody(
    database: str, folder: Path, count: Count, record_score: RecordScore, request: pytest.FixtureRequest, most_ms: float
) -> None:
    """Also where a caller can have more requests in execution: their reads come in turns of the callers."""
    requests = count(full=300, quick=100)
    with serving(folder, database) as served:
        lag = lag_beside(served, requests)
    with serving(folder, database, ASSENT_MAX_EXECUTING_PER_CALLER="2000") as served:
        more = lag_beside(served, count(full=300, quick=60))
    where = {"sqlite": "SQLite", "postgres": "Postgres"}[request.node.callspec.params["database"]]
    record_score(
        f"other callers beside {requests} searches of one agent at once, {where}",
        f"each answered within {2 * MOST_MS:.0f} ms",
        f"{lag.count} requests, the longest {lag.longest_ms:.0f} ms; with 2,000 in execution {more.longest_ms:.0f} ms",
    )
    assert lag.statuses.keys() == {"200"}
    assert lag.longest_ms <= 2 * most_ms


@both_databases
async def test_only_the_caller_over_its_rate_is_refused(database: str, folder: Path) -> None:
    async with open_arena(folder, database, rate_limit=5) as arena:
        answers = [(await arena.agent.get("/api/me")).status_code for _ in range(30)]
        assert (answers[0], answers[-1]) == (200, 429)
        assert (await arena.other.get("/api/me")).status_code == 200
        assert (await arena.ana.get("/api/inbox/items")).status_code == 200


@both_databases
async def test_control_without_a_rate_nobody_is_refused(database: str, folder: Path) -> None:
    async with open_arena(folder, database, rate_limit=0) as arena:
        assert {(await arena.agent.get("/api/me")).status_code for _ in range(30)} == {200}


@both_databases
async def test_concurrent_requests_share_one_lookup_of_their_key(
    database: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_arena(folder, database) as arena:
        access, looks = arena.house.services.access, []
        look_up = access._look_up

        async def counted(hashed: str) -> Principal:
            looks.append(hashed)
            return await look_up(hashed)

        monkeypatch.setattr(access, "_look_up", counted)
        access.forget()
        answers = await asyncio.gather(*(arena.agent.get("/api/me") for _ in range(20)))
        assert {answer.status_code for answer in answers} == {200}
        assert len(looks) == 1
        wrong = arena.house.client("asnt_agent_" + "x" * 43)
        assert {result.status_code for result in await asyncio.gather(*(wrong.get("/api/me") for _ in range(5)))} == {
            401
        }
        assert access._looking == {}


MANY = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 50
"""More than the buffers of both kernels take."""


def _is_kept(connection: socket.socket, url: str) -> bool:
    """Whether the server's side of a connection is still open."""
    here, there = connection.getsockname()[1], urlsplit(url).port
    kept = (connection for connection in psutil.net_connections("tcp") if connection.status == psutil.CONN_ESTABLISHED)
    return any((memory_item.laddr[1:], memory_item.raddr[1:]) == ((there,), (here,)) for memory_item in kept)


@only_sqlite
def test_connection_with_unread_answers_is_closed_after_the_timeout(database: str, folder: Path) -> None:
    with serving(folder, database, ASSENT_WRITE_TIMEOUT="1s") as served, opened(served.url, receives=4096) as unread:
        unread.sendall(MANY)
        wait_until(lambda: not _is_kept(unread, served.url), "the connection is kept")


@only_sqlite
def test_control_without_the_timeout_the_connection_is_kept(database: str, folder: Path) -> None:
    with serving(folder, database, ASSENT_WRITE_TIMEOUT="1h") as served, opened(served.url, receives=4096) as unread:
        unread.sendall(MANY)
        until = time.monotonic() + 4
        while time.monotonic() < until:
            assert _is_kept(unread, served.url)
            selectors.DefaultSelector().select(0.25)


@only_sqlite
def test_a_connection_whose_client_reads_slowly_is_kept(database: str, folder: Path) -> None:
    """It takes several times the timeout, but never that long for a byte."""
    with serving(folder, database, ASSENT_WRITE_TIMEOUT="1s") as served, opened(served.url, receives=65_536) as slow:
        slow.sendall(MANY)
        found, until = 0, time.monotonic() + 4
        while time.monotonic() < until:
            found += len(slow.recv(16_384))
            selectors.DefaultSelector().select(0.02)
        assert _is_kept(slow, served.url)
        assert found > 65_536
