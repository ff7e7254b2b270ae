"""The agent server beside LangGraph's own (the peer) and beside the same graphs without any server (the floor).

All of them take turns, round by round, so that whatever else the machine does falls on each alike; figures are medians.
Both servers are started as a user starts them, and answer the same raw HTTP requests over kept connections.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from assent.identity.model.access import DEFAULT_TENANT
from assent.kernel.ids import new_id
from assent.kernel.store import migrations
from assent.kernel.store.drivers.sqlite import SqliteStore
from assent.kernel.store.transaction import Tx
from assent.threads.model.threads import ThreadStatus
from assent.threads.rows import threads
from bench.clients import Client, Load
from bench.floor import Floor, floor
from bench.reference import reference
from bench.rows import Row, at_most, ratio_at_least, ratio_at_most
from bench.served import Command, Served, assent, serving, workplace

ROUNDS = 5
CALLS = 30
PEER_CALLS = 2  # it takes about a second for each
STARTS = 5
CLIENTS = 32
LOADS = 3
LOAD_SECONDS = 4.0
SEARCHES = 50
FEW, MANY, BATCH = 1_000, 100_000, 5_000


def run() -> list[Row]:
    return [*_starts(), *_servers(), *_searches()]


# Starting


def _starts() -> list[Row]:
    """From nothing to the first answer, with a database that is still to be made, and the memory after one run."""
    taken: dict[str, list[float]] = defaultdict(list)
    for _ in range(STARTS):
        for name, command in (("ours", assent), ("peer", reference)):
            with workplace() as folder, serving(command, folder) as served:
                taken[f"{name} seconds"].append(served.started_in)
                taken[f"{name} cpu"].append(served.cpu_seconds())
                _warm(served)
                taken[f"{name} memory"].append(served.resident_mib())
    found = {name: median(values) for name, values in taken.items()}
    return [
        ratio_at_most("cold start / peer", found["ours seconds"], "s", peer=found["peer seconds"], target=1),
        ratio_at_most("cold start, CPU / peer", found["ours cpu"], "CPU-s", peer=found["peer cpu"], target=1),
        at_most("idle memory", found["ours memory"], "MiB", target=108, peer=found["peer memory"]),
    ]


def _warm(served: Served) -> None:
    client = Client(served.port)
    client.wait(client.new_thread(), "echo", input={"text": "hi"})
    client.close()


# Latency and load


@dataclass
class Target:
    """A server, a connection to it, and threads made beforehand that its runs take in turn."""

    served: Served
    client: Client
    threads: list[str]
    _next: int = 0

    def thread(self) -> str:
        self._next += 1
        return self.threads[self._next % len(self.threads)]


@dataclass
class Figures:
    milliseconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    rates: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    cpu: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))


def _servers() -> list[Row]:
    figures = Figures()
    with _target(assent) as ours, _target(reference) as peer, workplace() as folder, floor(folder) as ground:
        _latencies(Figures(), ours, peer, ground, calls=CALLS, peer_calls=1)  # to warm up
        for _ in range(ROUNDS):
            _latencies(figures, ours, peer, ground, calls=CALLS, peer_calls=PEER_CALLS)
        _loads(figures, ours, peer)
    return [*_latency_rows(figures), *_load_rows(figures)]


@contextmanager
def _target(command: Command) -> Iterator[Target]:
    with workplace() as folder, serving(command, folder) as served:
        client = Client(served.port)
        yield Target(served, client, [client.new_thread() for _ in range(CLIENTS)])
        client.close()


def _latencies(figures: Figures, ours: Target, peer: Target, ground: Floor, *, calls: int, peer_calls: int) -> None:
    for graph in ("echo", "steps"):
        figures.milliseconds[f"{graph} floor"] += ground.calls(graph, calls)
    for name, target, count in (("ours", ours, calls), ("peer", peer, peer_calls)):
        for measure, call in _MEASURES.items():
            figures.milliseconds[f"{measure} {name}"] += [call(target) for _ in range(count)]


def _wait(graph: str) -> Callable[[Target], float]:
    def wait(target: Target) -> float:
        thread_id, started = target.thread(), time.perf_counter()
        target.client.wait(thread_id, graph, input={"text": "hi"})
        return (time.perf_counter() - started) * 1000

    return wait


def _first_event(target: Target) -> float:
    """Until the first line of the first event is there; the rest is read, but not counted."""
    path, started = f"/threads/{target.thread()}/runs/stream", time.perf_counter()
    with target.client.open(path, {"assistant_id": "echo", "input": {"text": "hi"}}) as response:
        response.readline()
        taken = (time.perf_counter() - started) * 1000
        response.read()
    return taken


def _asked_and_answered(target: Target) -> float:
    """A run that asks, then one that carries the answer, to its end."""
    thread_id, started = target.client.new_thread(), time.perf_counter()
    asked = target.client.wait(thread_id, "question", input={"text": "hi"})["__interrupt__"][0]["id"]
    done = target.client.wait(thread_id, "question", command={"resume": {asked: "yes"}})
    if done.get("reply") != "yes":
        raise RuntimeError(f"the answer did not arrive: {done}")
    return (time.perf_counter() - started) * 1000


_MEASURES: dict[str, Callable[[Target], float]] = {
    "echo": _wait("echo"),
    "steps": _wait("steps"),
    "first event": _first_event,
    "answer": _asked_and_answered,
}


def _loads(figures: Figures, ours: Target, peer: Target) -> None:
    load = Load()
    for _ in range(LOADS):
        for graph in ("echo", "steps"):
            for name, target in (("ours", ours), ("peer", peer)):
                rate, cpu = _load(load, target, graph)
                figures.rates[f"{graph} {name}"].append(rate)
                figures.cpu[f"{graph} {name}"].append(cpu)
    load.close()


def _load(load: Load, target: Target, graph: str) -> tuple[float, float]:
    """Runs per second, and the server's CPU-milliseconds for each of them."""
    under_way = load.run(target.served.port, graph, target.threads, LOAD_SECONDS)
    time.sleep(under_way.begin - time.monotonic())
    before = target.served.cpu_seconds()
    time.sleep(under_way.end - time.monotonic())
    spent, runs = target.served.cpu_seconds() - before, under_way.runs()
    return runs / LOAD_SECONDS, spent / runs * 1000


def _latency_rows(figures: Figures) -> list[Row]:
    ours = {name: median(figures.milliseconds[f"{name} ours"]) for name in _MEASURES}
    peer = {name: median(figures.milliseconds[f"{name} peer"]) for name in _MEASURES}
    ground = {name: median(figures.milliseconds[f"{name} floor"]) for name in ("echo", "steps")}
    return [
        ratio_at_most("runs.wait, one node / floor", ours["echo"], "ms", peer=ground["echo"], target=1.25),
        ratio_at_most("runs.wait, three nodes / floor", ours["steps"], "ms", peer=ground["steps"], target=2),
        ratio_at_most("runs.wait, one node / peer", ours["echo"], "ms", peer=peer["echo"], target=0.05),
        at_most("first event of runs.stream", ours["first event"], "ms", target=15, peer=peer["first event"]),
        at_most("interrupt → resume → done", ours["answer"], "ms", target=14),
        ratio_at_most("interrupt → resume → done / peer", ours["answer"], "ms", peer=peer["answer"], target=0.02),
    ]


def _load_rows(figures: Figures) -> list[Row]:
    rows = []
    for graph, nodes, times in (("echo", "one node", 4), ("steps", "three nodes", 2.5)):
        ours, peer = (median(figures.rates[f"{graph} {name}"]) for name in ("ours", "peer"))
        name = f"{CLIENTS} clients, {nodes} / peer"
        rows.append(ratio_at_least(name, ours, "runs/s", peer=peer, target=times))
        ours, peer = (median(figures.cpu[f"{graph} {name}"]) for name in ("ours", "peer"))
        rows.append(ratio_at_most(f"CPU of a run, {nodes} / peer", ours, "CPU-ms", peer=peer, target=1))
        if graph == "echo":
            rows.append(at_most("CPU of a run, one node", ours, "CPU-ms", target=2))
    return rows


# Finding what waits


def _searches() -> list[Row]:
    """Looking for ten waiting threads among few and among many. The floor here is our own time with few."""
    taken: dict[int, list[float]] = defaultdict(list)
    with ExitStack() as stack:
        clients = {count: stack.enter_context(_waiting(count)) for count in (FEW, MANY)}
        for _ in range(SEARCHES):
            for count, client in clients.items():
                started = time.perf_counter()
                found = client.post("/threads/search", {"status": "interrupted", "limit": 10})
                taken[count].append((time.perf_counter() - started) * 1000)
                assert len(found) == 10
    few, many = median(taken[FEW]), median(taken[MANY])
    return [ratio_at_most(f"search, {MANY:,} waiting / {FEW:,}", many, "ms", peer=few, target=2)]


@contextmanager
def _waiting(count: int) -> Iterator[Client]:
    with workplace() as folder:
        asyncio.run(_fill(folder, count))
        with serving(assent, folder) as served:
            client = Client(served.port)
            client.post("/threads/search", {"status": "interrupted", "limit": 10})
            yield client
            client.close()


async def _fill(folder: Path, count: int) -> None:
    url = f"sqlite:///{folder / 'assent.db'}"
    migrations.upgrade(url)
    store = SqliteStore(url)
    await store.open()
    for _ in range(0, count, BATCH):
        await store.write(DEFAULT_TENANT, _make_waiting, min(BATCH, count))
    await store.close()


def _make_waiting(tx: Tx, count: int) -> None:
    for _ in range(count):
        thread_id, question = new_id(), {"id": new_id().replace("-", ""), "value": {"question": "Go on?"}}
        threads.insert(tx, thread_id, {"graph_id": "question", "assistant_id": "question"})
        threads.set_state(
            tx,
            thread_id,
            status=ThreadStatus.INTERRUPTED,
            values={"text": "hi"},
            interrupts={new_id(): [question]},
            error=None,
            next=["ask"],
            shown=False,
        )
