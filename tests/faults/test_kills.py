"""`kill -9` at random moments: every run goes on from its last checkpoint, and no finished step runs twice.

A step is finished when its checkpoint is stored, which with `durability="sync"` is before the next step begins. So
after a kill only the step that was the last one to leave a line can leave it again; any other repeat is a fault.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.graphs.steps import NAMES
from tests.scoreboard import Count, RecordScore
from tests.servers import ServerProcess, dev_server
from tests.waiting import wait_until

RUNS_AT_ONCE = 6


class Trace:
    """The lines that one run's steps left, and which of them may stand there once more."""

    def __init__(self, folder: Path, number: int) -> None:
        self.path = folder / f"run-{number}"
        self.thread_id = ""
        self.excused: Counter[str] = Counter()

    @property
    def lines(self) -> list[str]:
        return self.path.read_text().split() if self.path.exists() else []

    def note_kill(self) -> None:
        if self.lines:
            self.excused[self.lines[-1]] += 1

    @property
    def repeated(self) -> Counter[str]:
        return Counter(self.lines) - Counter(f"t:{name}" for name in NAMES) - self.excused

    @property
    def complete(self) -> bool:
        return {f"t:{name}" for name in NAMES} <= set(self.lines)


@pytest.fixture
def server(folder: Path) -> Iterator[ServerProcess]:
    process = dev_server(f"sqlite:///{folder}/assent.db")
    process.start()
    yield process
    if process.process.poll() is None:
        process.kill()


def start_run(server: ServerProcess, trace: Trace) -> None:
    with httpx.Client(base_url=server.url) as http:
        trace.thread_id = http.post("/threads", json={}).json()["thread_id"]
        body = {
            "assistant_id": "steps",
            "input": {"path": str(trace.path), "tag": "t", "delay": 0.02},
            "durability": "sync",
        }
        assert http.post(f"/threads/{trace.thread_id}/runs", json=body).status_code == 200


def statuses(server: ServerProcess, traces: list[Trace]) -> set[str]:
    with httpx.Client(base_url=server.url) as http:
        return {http.get(f"/threads/{trace.thread_id}").json()["status"] for trace in traces}


@pytest.mark.scoreboard
@pytest.mark.promise("SERVE-06")
@pytest.mark.timeout(3600)
def test_runs_survive_kills_on_sqlite(
    server: ServerProcess, folder: Path, count: Count, record_score: RecordScore
) -> None:
    dice, kills, traces = random.Random(7), count(full=200, quick=5), list[Trace]()
    for _ in range(kills):
        fresh = [Trace(folder, len(traces) + number) for number in range(RUNS_AT_ONCE)]
        for trace in fresh:
            start_run(server, trace)
        traces += fresh
        threading.Event().wait(dice.uniform(0, 0.3))  # the random moment is the point of this test
        server.kill()
        for trace in traces:
            trace.note_kill()
        server.start()
    wait_until(lambda: statuses(server, traces) == {"idle"}, "some thread was left busy")
    unfinished = [trace.path.name for trace in traces if not trace.complete]
    repeated = [trace.repeated for trace in traces if trace.repeated]
    record_score(
        "kill -9 over runs of a five-step graph, SQLite",
        "all finish, 0 finished steps repeated",
        f"{kills} kills, {len(traces)} runs: {len(unfinished)} unfinished, {len(repeated)} repeated",
    )
    assert not unfinished
    assert not repeated


def test_control_a_repeated_step_is_found(folder: Path) -> None:
    """The control: a run that starts over instead of going on would be seen."""
    trace = Trace(folder, 0)
    trace.path.write_text("t:one\nt:two\n")
    trace.note_kill()
    trace.path.write_text("\n".join(["t:one", "t:two", "t:one", *(f"t:{name}" for name in NAMES[1:])]))
    assert trace.repeated == Counter({"t:one": 1})
