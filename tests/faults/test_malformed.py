"""No request leaves its thread busy: whatever is wrong with it, the run is refused or comes to its end, and the thread
takes the next one. The same holds for runs that an older version has left, and for a run that kills its process."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
from sqlalchemy import text

from tests.contract.stores import outside
from tests.faults.malformed import Case, cases, good
from tests.postgres import Cluster
from tests.scoreboard import Count, RecordScore
from tests.servers import ServerProcess, dev_server
from tests.waiting import pauses, wait_until
from tests.workers import WorkerProcess, new_worker

T = TypeVar("T")

GRAPHS = Path(__file__).parents[1] / "graphs_malformed" / "langgraph.json"
FINAL = {"success", "error", "timeout", "interrupted"}
SECONDS = 30.0
ATTEMPTS = 2
REFUSED_BY_REDUCER = {"assistant_id": "chat", "input": {"messages": [{"x": 1}]}}
UNGUARDED = """
import sys
from assent.runs.engine import runner
async def unguarded(self, tenant, run, status, error):
    config = runner.config_for(tenant, run.thread_id)
    async with self._project.open(run.graph_id, config, access="threads.read") as graph:
        return runner.outcomes.of_state(await graph.aget_state(config), status, error)
runner.Runner._outcome = unguarded
from assent.surfaces.cli.main import main
sys.argv[0] = "assent"
main()
"""
"""A process that reads the state after a failure as if nothing could be wrong with it."""


@dataclass
class House:
    """A database, the server on it, and on Postgres the worker that executes what the server is asked for."""

    database: str
    server: ServerProcess = field(init=False)
    worker: WorkerProcess | None = None

    @property
    def on_postgres(self) -> bool:
        return self.database.startswith("postgresql")

    @property
    def executing(self) -> ServerProcess:
        """The process in which runs are executed."""
        return self.worker or self.server

    def open(self, *, guarded: bool = True) -> None:
        self.server = self._new_server(guarded=guarded)
        self.server.start()
        if self.on_postgres:
            self.hire(guarded=guarded)

    def hire(self, *, guarded: bool = True) -> None:
        self.worker = new_worker(
            self.database, fenced=guarded, graphs=GRAPHS, script=UNGUARDED, ASSENT_RUN_ATTEMPTS=str(ATTEMPTS)
        )
        self.worker.start()

    def kill(self) -> None:
        for process in (self.server, self.worker):
            if process is not None and process.process.poll() is None:
                process.kill()

    def _new_server(self, *, guarded: bool) -> ServerProcess:
        server = dev_server(
            self.database,
            config=GRAPHS,
            ASSENT_RUN_IN_SERVER="false" if self.on_postgres else "true",
            ASSENT_RUN_ATTEMPTS=str(ATTEMPTS),
        )
        if not guarded:
            server.command = [sys.executable, "-c", UNGUARDED, *server.command[3:]]
        return server


@pytest.fixture(params=["sqlite", "postgres"])
def house(request: pytest.FixtureRequest, folder: Path) -> Iterator[House]:
    with ExitStack() as stack:
        database = f"sqlite:///{folder}/assent.db"
        if request.param == "postgres":
            cluster: Cluster = request.getfixturevalue("postgres")
            database = stack.enter_context(cluster.database())
        house = House(database)
        stack.callback(house.kill)
        yield house


@dataclass
class Thread:
    """One thread with what was asked of it."""

    http: httpx.Client
    case: Case
    id: str = ""
    answer: httpx.Response = field(init=False)

    def ask(self, body: dict[str, Any]) -> httpx.Response:
        self.id = self.id or self.http.post("/threads", json={}).json()["thread_id"]
        self.answer = self.http.post(f"/threads/{self.id}/runs", json=body)
        return self.answer

    @property
    def row(self) -> dict[str, Any]:
        return dict(self.http.get(f"/threads/{self.id}").json())

    @property
    def run(self) -> dict[str, Any]:
        """The last one; nothing where there is none."""
        body = self.http.get(f"/threads/{self.id}/runs", params={"limit": 1}).json()
        return dict(body[0]) if body else {}

    @property
    def end(self) -> str | None:
        return self.run.get("status")


@dataclass
class Crowd:
    """Many threads, asked and looked at by some callers at once."""

    http: httpx.Client
    threads: list[Thread]

    def each(self, action: Callable[[Thread], T]) -> list[T]:
        with ThreadPoolExecutor(8) as callers:
            return list(callers.map(action, self.threads))

    def left_busy(self) -> int:
        """How many are left, once none is or none has come to its end for some seconds."""
        fewest, deadline, waits = len(self.threads) + 1, 0.0, pauses()
        while (busy := self._busy()) and (busy < fewest or time.monotonic() < deadline):
            if busy < fewest:
                fewest, deadline = busy, time.monotonic() + SECONDS
            threading.Event().wait(next(waits))
        return busy

    def _busy(self) -> int:
        return int(self.http.post("/threads/count", json={"status": "busy"}).json())


@pytest.mark.promise("DROP-04")
@pytest.mark.scoreboard
@pytest.mark.timeout(600)
def test_no_malformed_request_leaves_its_thread_busy(house: House, count: Count, record_score: RecordScore) -> None:
    house.open()
    wanted = count(full=600, quick=120)
    with httpx.Client(base_url=house.server.url, timeout=30) as http:
        crowd = Crowd(http, [Thread(http, case) for case in cases(wanted)])
        refused = sum(crowd.each(_is_refused))
        began = time.monotonic()
        busy = crowd.left_busy()
        seconds = time.monotonic() - began
        ended = Counter(crowd.each(_end_of))
        following = Counter(crowd.each(_following))
        busy += crowd.left_busy()
        after = Counter(crowd.each(lambda thread: thread.end))
    where = "Postgres with a worker" if house.on_postgres else "SQLite"
    record_score(
        f"malformed inputs, configs, contexts and commands, {where}",
        "0 threads left busy, 0 server errors, every run with a final status",
        f"{wanted} requests, {refused} refused, {ended['error']} runs failed: {busy} threads busy "
        f"{seconds:.0f} s after the last one, 0 server errors",
    )
    assert busy == 0
    assert set(ended) <= FINAL | {None}
    assert set(after) <= FINAL
    assert ended["error"] > wanted / 5, "the requests are not as malformed as they should be"
    assert refused > wanted / 5
    assert set(following) <= {200, 409}
    assert after["success"] > wanted * 0.9, "threads are of no use afterwards"


def _is_refused(thread: Thread) -> bool:
    answer = thread.ask(thread.case.body)
    assert answer.status_code < 500, f"{thread.case.name}: {answer.text}"
    assert answer.status_code == 200 or answer.json()["detail"], thread.case.name
    return answer.status_code != 200


def _end_of(thread: Thread) -> str | None:
    """How the run ended; None where there is none. Its thread tells what was wrong, and shows a state."""
    end, row = thread.end, thread.row
    assert row["status"] != "busy", thread.case.name
    assert end != "error" or row["error"]["error"], f"{thread.case.name}: the error has no name"
    state = thread.http.get(f"/threads/{thread.id}/state")
    assert state.status_code in (200, 400), f"{thread.case.name}: {state.text}"
    return end


def _following(thread: Thread) -> int:
    """What a good request on the same thread is answered with. Only a question that waits may stand in its way."""
    answer = thread.ask(thread.case.fine)
    assert answer.status_code == 200 or "waits for a person" in answer.json()["detail"], thread.case.name
    return answer.status_code


@pytest.mark.timeout(300)
def test_control_without_the_fallback_a_thread_stays_busy_until_an_upgrade(house: House) -> None:
    """The control, and what an older version may have left: also a run that was asked to stop, and did not."""
    house.open(guarded=False)
    with httpx.Client(base_url=house.server.url, timeout=30) as http:
        failed, stopped, fine = (Thread(http, Case("chat", REFUSED_BY_REDUCER)) for _ in range(3))
        for thread in (failed, stopped):
            assert thread.ask(REFUSED_BY_REDUCER).status_code == 200
        wait_until(lambda: house.executing.output.count("run failed") >= 2, "the runs were not tried")
        run_id = stopped.run["run_id"]
        assert http.post(f"/threads/{stopped.id}/runs/{run_id}/cancel").status_code == 202
        fine.ask(good("chat"))
        wait_until(lambda: fine.end == "success", "nothing is executed any more")
        assert [thread.row["status"] for thread in (failed, stopped)] == ["busy", "busy"]
    house.kill()
    house.open()
    with httpx.Client(base_url=house.server.url, timeout=30) as http:
        for thread, end in ((failed, "error"), (stopped, "interrupted")):
            thread.http = http
            wait_until(lambda thread=thread: thread.row["status"] != "busy", "the thread was not freed")
            assert _end_of(thread) == end
            assert thread.ask(good("chat")).status_code == 200
            wait_until(lambda thread=thread: thread.end == "success", "the thread is of no use")


@pytest.mark.timeout(300)
def test_after_a_kill_every_thread_becomes_idle(house: House) -> None:
    house.open()
    some = [case for case in cases(80) if case.name.startswith(("chat", "refusing", "clash", "asking"))]
    with httpx.Client(base_url=house.server.url, timeout=30) as http:
        crowd = Crowd(http, [Thread(http, case) for case in some])
        crowd.each(_is_refused)
    house.kill()
    house.open()
    with httpx.Client(base_url=house.server.url, timeout=30) as crowd.http:
        for thread in crowd.threads:
            thread.http = crowd.http
        assert crowd.left_busy() == 0
        assert set(crowd.each(_end_of)) <= FINAL | {None}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("cancelled", [False, True])
def test_a_run_that_kills_its_process_each_time_is_ended(house: House, folder: Path, cancelled: bool) -> None:
    house.open()
    deadly = folder / "deadly"
    deadly.touch()
    body = {"assistant_id": "dying", "input": {"kind": str(deadly)}}
    with httpx.Client(base_url=house.server.url, timeout=30) as http:
        thread = Thread(http, Case("dying", body))
        stored = {"durability": "sync"}  # the first attempt stores the input: an attempt that does so is not counted
        assert thread.ask({**body, **stored, "after_seconds": 0.05}).status_code == 200
    tried = 1 if cancelled else ATTEMPTS
    for lives in range(1, tried + 1):
        assert house.executing.wait() == 9, house.executing.output
        assert _lives(deadly) == lives
        if cancelled and lives == tried:
            _ask_to_stop(house)
        house.executing.launch()
    if not house.on_postgres:
        house.server.url = house.server.printed("listening")
    with httpx.Client(base_url=house.server.url, timeout=30) as thread.http:
        wait_until(lambda: _rests(thread), "the thread was not freed")
        assert thread.end == ("interrupted" if cancelled else "error")
        assert cancelled or f"process ended {ATTEMPTS} times" in thread.row["error"]["message"]
        assert _lives(deadly) == tried, "it was tried once more"
        deadly.unlink()
        assert thread.ask(body).status_code == 200
        wait_until(lambda: thread.end == "success", "the thread is of no use")


def _rests(thread: Thread) -> bool:
    try:
        return str(thread.row["status"]) != "busy"
    except httpx.TransportError:  # the server is not up yet
        return False


def _lives(deadly: Path) -> int:
    """How often the node was entered."""
    return len(Path(f"{deadly}.lives").read_text())


def _ask_to_stop(house: House) -> None:
    """What cancelling writes. On SQLite the server that would be asked is the one that dies."""
    with outside(house.database).connect() as connection:
        connection.execute(text("UPDATE runs SET cancel = 'interrupt'"))
