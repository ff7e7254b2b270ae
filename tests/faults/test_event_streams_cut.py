"""Event streams whose connection, or whose server, dies at random moments: the client goes on after the last number
that it has read, and in the end has every event once.

The control goes on without the number, and has events twice.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from tests.e2e.cutting import CuttingProxy, cutting
from tests.e2e.eventing import ALL, ENDED, HELLO, Event, new_id, of, read_until, started
from tests.graphs.steps import NAMES
from tests.postgres import Cluster
from tests.scoreboard import Count, RecordScore
from tests.servers import GRAPHS, ServerProcess, dev_server, running
from tests.workers import SECRET, new_worker

_BROKEN = (httpx.TransportError, WebSocketException, OSError)


@dataclass
class Client:
    """Reads a thread, and goes on after every cut."""

    thread: str
    resumes: bool = True
    events: list[Event] = field(default_factory=list)

    @property
    def since(self) -> int:
        return int(self.events[-1]["seq"]) if self.events and self.resumes else 0

    @property
    def is_done(self) -> bool:
        return bool(self.events) and any(map(ENDED, self.events))

    async def read(self, url: str, transport: str) -> None:
        """Until the connection breaks or the run has ended."""
        with suppress(*_BROKEN):
            async for event in (_sse if transport == "sse" else _socket)(url, self.thread, self.since):
                self.events.append(event)
                if ENDED(event):
                    return

    @property
    def doubled(self) -> int:
        ids = [event["event_id"] for event in self.events]
        return len(ids) - len(set(ids))


async def _sse(url: str, thread: str, since: int) -> AsyncIterator[Event]:
    body = {"channels": ALL, "since": since}
    async with (
        httpx.AsyncClient(base_url=url, timeout=30) as http,
        http.stream("POST", f"/threads/{thread}/stream/events", json=body) as answer,
    ):
        async for line in answer.aiter_lines():
            if line.startswith("data:"):
                yield json.loads(line.removeprefix("data:"))


async def _socket(url: str, thread: str, since: int) -> AsyncIterator[Event]:
    async with connect(f"{url.replace('http', 'ws', 1)}/threads/{thread}/stream/events") as socket:
        params = {"channels": ALL, "since": since}
        await socket.send(json.dumps({"id": 1, "method": "subscription.reconnect", "params": params}))
        async for text in socket:
            if (message := json.loads(text))["type"] == "event":
                yield message


@pytest.fixture(params=["SQLite", "Postgres", "Postgres with a worker"])
def place(request: pytest.FixtureRequest) -> str:
    """Where the run is executed: beside its stream, or in a process of its own."""
    return str(request.param)


@pytest.fixture
def server(request: pytest.FixtureRequest, place: str, folder: Path) -> Iterator[ServerProcess]:
    if place == "SQLite":
        with running(dev_server(f"sqlite:///{folder}/assent.db")) as process:
            yield process
        return
    cluster: Cluster = request.getfixturevalue("postgres")
    with cluster.database() as database, ExitStack() as stack:
        if place == "Postgres":
            yield stack.enter_context(running(dev_server(database)))
        else:
            stack.enter_context(running(_worker(database)))
            yield stack.enter_context(running(_idle_server(database)))


def _idle_server(database: str) -> ServerProcess:
    """It executes nothing."""
    return dev_server(database, ASSENT_RUN_IN_SERVER="false", ASSENT_SECRET_KEY=SECRET)


def _worker(database: str) -> ServerProcess:
    return new_worker(database, graphs=GRAPHS)


@pytest.fixture
def proxy(server: ServerProcess) -> Iterator[CuttingProxy]:
    with ExitStack() as stack:
        yield stack.enter_context(cutting(server.url))


def _given(dice: random.Random, folder: Path, number: int) -> tuple[str, Any]:
    """A graph that emits much at once, or one that takes its time."""
    if number % 2:
        return "steps", {"path": str(folder / f"steps-{number}"), "tag": "t", "delay": dice.uniform(0, 0.01)}
    return "streams", {**HELLO, "lines": dice.randrange(400)}


async def cut_while_reading(client: Client, proxy: CuttingProxy, dice: random.Random, transport: str) -> int:
    """The number of cuts, each after some events, until the run has ended."""
    cuts = 0
    while not client.is_done:
        before, most = len(client.events), dice.randrange(1, 60)
        reading = asyncio.create_task(client.read(proxy.url, transport))
        while not reading.done() and len(client.events) < before + most:
            await asyncio.wait({reading}, timeout=0.002)
        if not reading.done():
            proxy.cut()
            cuts += 1
        await reading
    return cuts


async def compare(http: httpx.AsyncClient, client: Client) -> tuple[int, int]:
    """How many events the client lacks, and how many it has twice."""
    whole = [event["event_id"] for event in await read_until(http, client.thread, ENDED)]
    has = {event["event_id"] for event in client.events}
    return len([each for each in whole if each not in has]), client.doubled


@pytest.mark.scoreboard
@pytest.mark.promise("SERVE-01")
@pytest.mark.timeout(1800)
async def test_streams_that_are_cut_lose_and_double_nothing(
    server: ServerProcess, proxy: CuttingProxy, folder: Path, place: str, count: Count, record_score: RecordScore
) -> None:
    dice, wanted, cuts, lost, doubled, events, number = random.Random(11), count(full=200, quick=20), 0, 0, 0, 0, 0
    async with httpx.AsyncClient(base_url=server.url, timeout=30) as http:
        while cuts < wanted:
            number += 1
            client = Client(await started(http, *_given(dice, folder, number)))
            async with asyncio.timeout(60):
                cuts += await cut_while_reading(client, proxy, dice, dice.choice(["sse", "websocket"]))
            missing, twice = await compare(http, client)
            lost, doubled, events = lost + missing, doubled + twice, events + len(client.events)
            assert [event["seq"] for event in client.events] == sorted({event["seq"] for event in client.events})
    record_score(
        f"event streams cut at random points and resumed, {place}",
        "0 lost, 0 doubled",
        f"{cuts} cuts of {number} streams with {events} events: {lost} lost, {doubled} doubled",
    )
    assert (lost, doubled) == (0, 0)


async def test_control_without_the_last_number_events_come_twice(
    server: ServerProcess, proxy: CuttingProxy, folder: Path
) -> None:
    dice = random.Random(3)
    async with httpx.AsyncClient(base_url=server.url, timeout=30) as http:
        client = Client(await started(http, "streams", {**HELLO, "lines": 300}), resumes=False)
        await client.read(server.url, "sse")
        client.events = client.events[:100]
        await cut_while_reading(client, proxy, dice, "sse")
    assert client.doubled > 0


@pytest.mark.scoreboard
@pytest.mark.promise("SERVE-06")
@pytest.mark.timeout(1800)
async def test_streams_of_a_server_that_is_killed_go_on_to_the_end(
    folder: Path, count: Count, record_score: RecordScore
) -> None:
    """On SQLite, where the process that executes the run is also the one that sends its events. As for run streams, the
    newest frames are in its memory only; the next attempt tells the state that they led to."""
    dice, rounds, lost, doubled = random.Random(5), count(full=40, quick=3), 0, 0
    server = dev_server(f"sqlite:///{folder}/assent.db").start()
    try:
        for number in range(rounds):
            given = {"path": str(folder / f"killed-{number}"), "tag": "t", "delay": 0.01}
            async with httpx.AsyncClient(base_url=server.url, timeout=30) as http:
                client = Client(await started(http, "steps", given, new_id()))
            reading = asyncio.create_task(client.read(server.url, "sse"))
            await asyncio.wait({reading}, timeout=dice.uniform(0.01, 0.2))  # the random moment is the point
            server.kill()
            await reading
            server.start()
            async with asyncio.timeout(60):
                while not client.is_done:
                    await client.read(server.url, "sse")
            lost += of("values", client.events)[-1].get("done") != NAMES[-1]
            doubled += sum(map(ENDED, client.events)) - 1 + _repeats(client)
    finally:
        server.kill()
    record_score(
        "event streams of a server that is killed at random moments, SQLite",
        "0 without the last state and the end, 0 numbers doubled",
        f"{rounds} kills: {lost} without the last state, {doubled} doubled",
    )
    assert (lost, doubled) == (0, 0)


@pytest.mark.scoreboard
@pytest.mark.promise("SERVE-06")
@pytest.mark.timeout(1800)
async def test_streams_of_a_worker_that_is_killed_go_on_to_the_end(
    postgres: Cluster, folder: Path, count: Count, record_score: RecordScore
) -> None:
    """The stream itself is not cut: the server waits for the events of the next worker."""
    dice, rounds, lost, doubled = random.Random(6), count(full=40, quick=3), 0, 0
    with postgres.database() as database, running(_idle_server(database)) as server:
        worker = _worker(database).start()
        try:
            for number in range(rounds):
                given = {"path": str(folder / f"worker-{number}"), "tag": "t", "delay": 0.02}
                async with httpx.AsyncClient(base_url=server.url, timeout=30) as http:
                    client = Client(await started(http, "steps", given))
                reading = asyncio.create_task(client.read(server.url, dice.choice(["sse", "websocket"])))
                await asyncio.wait({reading}, timeout=dice.uniform(0.01, 0.3))  # the random moment is the point
                worker.kill()
                worker.start()
                await asyncio.wait_for(reading, 60)
                lost += not client.is_done or of("values", client.events)[-1].get("done") != NAMES[-1]
                doubled += _repeats(client) + client.doubled
        finally:
            worker.kill()
    record_score(
        "event streams of a worker that is killed at random moments, Postgres",
        "0 without the last state and the end, 0 doubled",
        f"{rounds} kills: {lost} without the last state, {doubled} doubled",
    )
    assert (lost, doubled) == (0, 0)


def _repeats(client: Client) -> int:
    """Events with the same number, or ids that a client would not recognise as the same."""
    numbers = [event["seq"] for event in client.events]
    assert numbers == sorted(numbers)
    return len(numbers) - len(set(numbers))


@pytest.mark.parametrize("transport", ["sse", "websocket"])
async def test_a_server_that_stops_cuts_its_streams_so_that_clients_connect_again(
    server: ServerProcess, transport: str
) -> None:
    """The Python SDK takes the clean end of a stream for the end of its run."""
    broken: list[BaseException] = []

    async def read(thread: str) -> None:
        try:
            async for event in (_sse if transport == "sse" else _socket)(server.url, thread, 0):
                if ENDED(event):
                    has_read.set()
        except _BROKEN as error:
            broken.append(error)

    has_read = asyncio.Event()
    async with httpx.AsyncClient(base_url=server.url, timeout=30) as http:
        reading = asyncio.create_task(read(await started(http, "echo", {"text": "x"})))
    async with asyncio.timeout(60):
        await has_read.wait()
        assert await asyncio.to_thread(server.stop) == 0
        await reading
    assert len(broken) == 1
