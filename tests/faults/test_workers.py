"""Worker processes on one Postgres: killed, stalled, drained, cut off from the database. Runs go on; nothing of a
worker that was given up counts any more."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from assent.errors import AnswerRefused
from assent.identity.model.access import DEFAULT_TENANT
from assent.kernel.ids import new_id
from assent.kernel.store.transaction import Tx
from assent.review.model.policies import ADVISE_ALL
from assent.review.rows import policies
from assent.threads.model.frames import END
from assent.threads.model.runs import Cancel, Run, RunStatus
from assent.threads.rows.state import checkpoints
from assent.threads.run_requests import RunRequest
from tests.faults.test_kills import Trace
from tests.postgres import Cluster
from tests.postgres_server import PostgresServer
from tests.scoreboard import Count, RecordScore
from tests.waiting import until, until_file
from tests.workers import CALLER, Crew, WorkerProcess, crew_on, open_gates

INTERRUPT = b"__interrupt__"
RUNS_AT_ONCE = 6


@pytest.fixture
async def crew(postgres: Cluster, folder: Path) -> AsyncIterator[Crew]:
    with postgres.database() as url:
        async with crew_on(url, folder) as crew:
            yield crew


async def test_a_run_is_asked_for_in_one_process_and_executed_in_another(crew: Crew) -> None:
    """Followed, cancelled, delayed, answered: all from here, where whoever may start runs may answer as well."""
    await crew.store.write("default", policies.put, ADVISE_ALL, source="api", actor="system")
    await crew.hire()
    run = await crew.start("slow", input={"text": "t"}, after_seconds=0.3)
    followed = crew.engine.runs.follow(CALLER, run.id)
    last = await asyncio.wait_for(followed.end(), 30)
    assert json.loads(last.data)["log"] == ["t:a", "t:b", "t:c"]
    assert (await crew.run(run)).started_at >= run.wake_at  # type: ignore[operator]
    await _check_cancel(crew)
    await _check_prompt_answer(crew)
    await _check_second_clicks(crew)


async def _check_cancel(crew: Crew) -> None:
    run, gate = await crew.start_gated()
    await until_file(gate / "a.started")
    followed = await crew.engine.runs.follow_now(CALLER, run.id)
    await crew.engine.runs.cancel(CALLER, run.thread_id, run.id, Cancel.INTERRUPT)
    assert (await asyncio.wait_for(followed.end(), 2)).event == END
    assert (await crew.run(run)).status is RunStatus.INTERRUPTED


async def _check_prompt_answer(crew: Crew) -> None:
    """Who is told of a question can answer it at once: by then the run that asks has ended."""
    thread = (await crew.engine.threads.create(CALLER)).id
    run_id = new_id()
    followed = crew.engine.runs.follow(CALLER, run_id)
    await crew.engine.runs.create(CALLER, thread, RunRequest("twice", input={"text": "t"}), run_id=run_id)
    while INTERRUPT not in (frame := await asyncio.wait_for(followed.next(), 10)).data:
        assert frame.event != END
    (question,) = json.loads(frame.data)["__interrupt__"]
    answer = RunRequest("twice", command={"resume": {question["id"]: "yes"}})
    assert (await crew.ended(await crew.engine.runs.create(CALLER, thread, answer))).status is RunStatus.SUCCESS


async def _check_second_clicks(crew: Crew) -> None:
    """A positional answer reaches only a question that someone was shown, also when that was another process."""
    unseen = await crew.ended(await crew.start("twice", input={"text": "t"}))
    answer = RunRequest("twice", command={"resume": "yes"})
    with pytest.raises(AnswerRefused):
        await crew.engine.runs.create(CALLER, unseen.thread_id, answer)
    seen = await crew.start("twice", input={"text": "t"})
    await asyncio.wait_for(crew.engine.runs.follow(CALLER, seen.id).end(), 10)
    await crew.ended(await crew.engine.runs.create(CALLER, seen.thread_id, answer))
    with pytest.raises(AnswerRefused):
        await crew.engine.runs.create(CALLER, seen.thread_id, answer)


async def test_stopping_worker_finishes_its_runs_and_takes_no_new_ones(crew: Crew) -> None:
    (worker,) = await crew.hire()
    (run, gate), (stays, other_gate) = await crew.start_gated(), await crew.start_gated()
    await until_file(gate / "a.started")
    await until_file(other_gate / "a.started")
    worker.signal(signal.SIGTERM)
    await until(lambda: _said(worker, "stopping"), "the worker does not stop")
    late = await crew.start("slow", input={"text": "late"})
    open_gates(gate)
    assert (await crew.ended(run)).attempt == 1
    assert await asyncio.to_thread(worker.wait) == 0
    handed_back = await crew.run(stays)
    assert (handed_back.status, handed_back.attempt) == (RunStatus.PENDING, 1)
    assert (await crew.run(late)).status is RunStatus.PENDING
    await crew.hire()
    open_gates(other_gate)
    assert (await crew.ended(stays)).attempt == 2
    assert (await crew.ended(late)).status is RunStatus.SUCCESS


async def test_node_that_blocks_beyond_the_lease_keeps_its_run(crew: Crew) -> None:
    """Beyond the lease, while another worker looks."""
    await crew.hire(2)
    ended = await crew.ended(await crew.start("blocking", input={"seconds": 4.5}))
    assert (ended.status, ended.attempt) == (RunStatus.SUCCESS, 1)


async def test_runs_continue_after_a_postgres_outage(
    durable_postgres: PostgresServer, folder: Path, longest_takeover: float
) -> None:
    """And a worker that is asked to stop while it is away does not wait for it."""
    async with crew_on(durable_postgres.url, folder) as crew:
        (worker,) = await crew.hire()
        run, gate = await crew.start_gated()
        await until_file(gate / "a.started")
        followed = await crew.engine.runs.follow_now(CALLER, run.id)
        await asyncio.to_thread(durable_postgres.crash)
        open_gates(gate)
        await asyncio.to_thread(durable_postgres.start)
        back = time.monotonic()
        assert (await asyncio.wait_for(followed.end(), 30)).event == END
        fresh = await crew.ended(await crew.start("slow", input={"text": "fresh"}))
        recovered = time.monotonic() - back
        assert fresh.status is RunStatus.SUCCESS
        assert (await crew.values(run))["log"] == ["t:a", "t:b", "t:c"]
        assert recovered < longest_takeover
        _, gate = await crew.start_gated()
        await until_file(gate / "a.started")
        await asyncio.to_thread(durable_postgres.crash)
        worker.signal(signal.SIGTERM)
        assert await asyncio.to_thread(worker.wait) == 0


@pytest.mark.scoreboard
@pytest.mark.timeout(600)
async def test_writes_of_a_stalled_worker_are_refused(crew: Crew, count: Count, record_score: RecordScore) -> None:
    stalls = count(full=50, quick=4)
    accepted = await _late_writes(crew, stalls, fenced=True)
    record_score(
        "SIGSTOP past the lease, then SIGCONT, on Postgres",
        "0 fenced writes accepted",
        f"{stalls} attempts taken over, {accepted} late writes accepted",
    )
    assert accepted == 0


@pytest.mark.timeout(600)
async def test_control_without_the_fence_a_stalled_worker_writes(crew: Crew) -> None:
    """The control of the test above. A worker that sleeps too long loses its database session before it can write, so
    one of a few has to be caught in time."""
    for _ in range(6):
        with suppress(AssertionError):
            if await _late_writes(crew, 2, fenced=False):
                return
        crew.dismiss()  # otherwise the next runs go to workers that nobody stops
    pytest.fail("no late write was accepted: the test above would not notice a missing fence")


async def _late_writes(crew: Crew, stalls: int, *, fenced: bool) -> int:
    """How many checkpoints of attempts are there that were taken over before they could write them."""
    (stalled,) = await crew.hire(fenced=fenced)
    gated = [await crew.start_gated() for _ in range(stalls)]
    for _, gate in gated:
        await until_file(gate / "a.started")
    stalled.signal(signal.SIGSTOP)
    await crew.hire()
    for run, gate in gated:
        await crew.attempted(run, 2)
        open_gates(gate)
    for run, _ in gated:
        assert (await crew.ended(run)).status is RunStatus.SUCCESS
    before = [await _checkpoints(crew, run, attempt=1) for run, _ in gated]
    stalled.signal(signal.SIGCONT)
    await until(lambda: _woke_up(crew, stalled, gated, fenced=fenced), "the stalled worker did not go on")
    after = [await _checkpoints(crew, run, attempt=1) for run, _ in gated]
    if fenced:
        for run, _ in gated:
            ended = await crew.run(run)
            assert (ended.status, ended.attempt) == (RunStatus.SUCCESS, 2)
            assert (await crew.values(run))["log"] == ["t:a", "t:b", "t:c"]
    return sum(after) - sum(before)


async def _woke_up(crew: Crew, stalled: WorkerProcess, gated: list[tuple[Run, Path]], *, fenced: bool) -> bool:
    if fenced:
        return stalled.output.count("attempt was fenced") >= len(gated)
    return all([await _checkpoints(crew, run, attempt=1) >= 4 for run, _ in gated])


async def _checkpoints(crew: Crew, run: Run, *, attempt: int) -> int:
    def found(tx: Tx) -> list[dict[str, Any]]:
        history = checkpoints.history(tx, run.thread_id, "", before=None, limit=None)
        return [json.loads(state.metadata) for state in history]

    return sum(one.get("run_attempt") == attempt for one in await crew.store.read(DEFAULT_TENANT, found))


@pytest.mark.scoreboard
@pytest.mark.promise("SERVE-06")
@pytest.mark.timeout(3600)
async def test_runs_survive_kills_of_workers(
    crew: Crew, folder: Path, count: Count, record_score: RecordScore, longest_takeover: float
) -> None:
    dice, kills, traces, waits = random.Random(11), count(full=200, quick=2), list[Trace](), list[float]()
    await crew.hire(2)
    for number in range(kills):
        fresh = [Trace(folder, len(traces) + more) for more in range(RUNS_AT_ONCE)]
        started = [await _start_steps(crew, trace) for trace in fresh]
        traces += fresh
        await asyncio.sleep(dice.uniform(0, 0.4))  # the random moment is the point of this test
        victim = crew.workers[number % 2]
        victim.kill()
        killed = datetime.now(UTC)
        for trace in fresh:
            trace.note_kill()
        again = asyncio.create_task(asyncio.to_thread(victim.start))
        waits += [wait for wait in await asyncio.gather(*(_taken_up(crew, run, killed) for run in started)) if wait]
        await again
    unfinished = [trace.path.name for trace in traces if not trace.complete]
    repeated = [trace.repeated for trace in traces if trace.repeated]
    record_score(
        "kill -9 of one of two workers over runs of a five-step graph, Postgres",
        "all go on within 5 s, 0 finished steps repeated",
        f"{kills} kills, {len(traces)} runs, {len(waits)} of them hit: {len(unfinished)} unfinished, "
        f"{len(repeated)} repeated, taken up at most {max(waits, default=0):.1f} s later",
    )
    assert not unfinished
    assert not repeated
    assert max(waits, default=0) < longest_takeover


async def _taken_up(crew: Crew, run: Run, killed: datetime) -> float:
    """Waits for the end of the run; returns the seconds until another attempt began, 0 if there was none."""
    wait = 0.0
    while (present := await crew.run(run)).status.active:
        if present.attempt > 1 and not wait:
            wait = (datetime.now(UTC) - killed).total_seconds()
        await asyncio.sleep(0.05)
    return wait


async def _start_steps(crew: Crew, trace: Trace) -> Run:
    input = {"path": str(trace.path), "tag": "t", "delay": 0.05}
    run = await crew.start("steps", input=input, durability="sync")
    trace.thread_id = run.thread_id
    return run


async def _said(worker: WorkerProcess, text: str) -> bool:
    return text in worker.output
