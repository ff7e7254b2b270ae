"""The contract of every queue: one run at a time on a thread, in order, through cancellations and restarts."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import text

from assent.errors import NotFound, ThreadBusy
from assent.identity.model.access import DEFAULT_TENANT
from assent.kernel.store.transaction import Tx
from assent.settings import Settings
from assent.threads.model.runs import Cancel, Run, RunStatus, Strategy
from assent.threads.model.threads import ThreadStatus
from assent.threads.rows import runs
from assent.threads.rows.state.checkpoints import Attempt
from assent.threads.run_requests import RunRequest
from tests.contract.queues import CALLER, PATIENCE, Site, queue, queue_settings, site
from tests.contract.stores import outside
from tests.scoreboard import Count, RecordScore
from tests.waiting import until

__all__ = ["queue", "queue_settings", "site"]

THREADS = 10
only_embedded = pytest.mark.parametrize("queue", ["embedded"], indirect=True)
only_procrastinate = pytest.mark.parametrize("queue", ["procrastinate"], indirect=True)


async def test_handed_over_run_starts_and_ends(site: Site) -> None:
    thread = await site.thread()
    run = await site.start(thread, "one")
    await site.until_idle()
    ended = await site.run(run)
    assert ended is not None
    assert (ended.status, ended.attempt) == (RunStatus.SUCCESS, 1)
    assert await site.done(thread) == ["one.a", "one.b"]
    assert (await site.row(thread)).status is ThreadStatus.IDLE


async def test_failed_transaction_hands_no_run_over(site: Site) -> None:
    thread = await site.thread()
    first = await site.start(thread, "first", hold=True)
    queued = await site.start(thread, "queued", multitask_strategy=Strategy.ENQUEUE)

    def fail(tx: Tx) -> None:
        tx.hand_over(queued.id)
        raise NotFound("on purpose")

    with pytest.raises(NotFound):
        await site.store.write(DEFAULT_TENANT, fail)
    site.trace.gate("first").set()
    await site.until_idle()
    assert site.trace.tags(thread) == ["first", "queued"]
    assert not site.trace.met
    assert (await site.run(first), await site.run(queued)) != (None, None)


async def test_repeated_handover_has_no_effect(site: Site) -> None:
    """Only the row decides whether it is a run's turn."""
    thread = await site.thread()
    first = await site.start(thread, "first", hold=True)
    behind = await site.start(thread, "behind", multitask_strategy=Strategy.ENQUEUE)

    def too_many(tx: Tx) -> None:
        for run in (first, behind, behind, first):
            tx.hand_over(run.id)

    await site.store.write(DEFAULT_TENANT, too_many)
    site.trace.gate("first").set()
    await site.until_idle()
    assert not site.trace.met
    assert await site.done(thread) == ["first.a", "first.b", "behind.a", "behind.b"]


async def test_runs_of_one_actor_do_not_delay_runs_of_another(queue_settings: Settings) -> None:
    site = Site(queue_settings.model_copy(update={"run_concurrency": 1}))
    async with site.processes(1):
        await site.start(await site.thread(), "held", hold=True)
        await until(lambda: _entered(site, "held"), "the run did not start")
        for number in range(5):
            await site.start(await site.thread(), f"many {number}")
        another = replace(CALLER, id="another", name="another")
        thread = await site.engine.threads.create(another)
        await site.engine.runs.create(another, thread.id, RunRequest("traced", input={"tag": "another"}))
        site.trace.gate("held").set()
        await site.until_idle()
    order = list(dict.fromkeys(tag for _, tag, _ in site.trace.entered))
    assert order == ["held", "many 0", "another", "many 1", "many 2", "many 3", "many 4"]


@pytest.mark.parametrize("how", Cancel)
async def test_a_run_that_is_executed_can_be_cancelled(site: Site, how: Cancel) -> None:
    thread = await site.thread()
    run = await site.start(thread, "held", hold=True)
    await until(lambda: _entered(site, "held"), "the run did not start")
    behind = await site.start(thread, "behind", multitask_strategy=Strategy.ENQUEUE)
    await site.engine.runs.cancel(CALLER, thread, run.id, how)
    await site.until_idle()
    left = await site.run(run)
    if how is Cancel.ROLLBACK:
        assert left is None
    else:
        assert left is not None
        assert left.status is RunStatus.INTERRUPTED
    assert (await site.run(behind) or run).status is RunStatus.SUCCESS
    assert not site.trace.met


async def test_a_run_can_be_cancelled_at_any_moment(site: Site) -> None:
    """Also right when it starts: nothing is left running with nobody at it."""
    started: list[tuple[str, Run]] = []
    for number in range(20):
        thread = await site.thread()
        run = await site.start(thread, f"held {number}", hold=True)
        await asyncio.sleep(number * 0.001)
        await site.engine.runs.cancel_if_active(CALLER, thread, run.id)
        started.append((thread, run))
    await site.until_idle()
    for thread, run in started:
        left = await site.run(run)
        assert left is not None
        assert left.status is RunStatus.INTERRUPTED
        assert (await site.row(thread)).status is not ThreadStatus.BUSY


async def test_a_delayed_run_waits_for_its_time_and_then_for_its_turn(site: Site) -> None:
    thread = await site.thread()
    delayed = await site.start(thread, "delayed", after_seconds=0.5)
    assert (await site.row(thread)).status is ThreadStatus.IDLE
    await site.start(thread, "first", hold=True)
    await until(lambda: _woken(site, delayed), "the delayed run did not wake up")
    await until(lambda: _entered(site, "first"), "the run did not start")
    assert site.trace.tags(thread) == ["first"]
    site.trace.gate("first").set()
    await site.until_idle()
    ran = await site.run(delayed)
    assert ran is not None
    assert ran.started_at is not None
    assert delayed.wake_at is not None
    assert ran.started_at >= delayed.wake_at
    assert site.trace.tags(thread) == ["first", "delayed"]
    assert not site.trace.met


async def test_stop_does_not_wait_for_a_delayed_run(queue_settings: Settings) -> None:
    site = Site(queue_settings.model_copy(update={"run_patience": timedelta(hours=1)}))
    async with asyncio.timeout(PATIENCE):
        async with site.processes(1):
            delayed = await site.start(await site.thread(), "delayed", after_seconds=3600)
        async with site.processes(1):
            left = await site.run(delayed)
    assert left is not None
    assert (left.status, left.wake_at) == (RunStatus.PENDING, delayed.wake_at)


@only_embedded
async def test_delayed_run_whose_wake_up_write_fails_is_woken_later(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    """The embedded queue has no rescue: nothing else looks for the run before the next start."""
    refuse = "CREATE TRIGGER refuse BEFORE UPDATE OF wake_at ON runs BEGIN SELECT RAISE(ABORT, 'refused'); END"
    with outside(site.settings.database).connect() as connection:
        connection.execute(text(refuse))
        delayed = await site.start(await site.thread(), "delayed", after_seconds=0.01)

        async def failed_three_times() -> bool:
            return sum("store call failed" in record.message for record in caplog.records) >= 3

        await until(failed_three_times, "the wake-up was not retried")
        assert not await _woken(site, delayed)
        connection.execute(text("DROP TRIGGER refuse"))
    await site.until_idle()
    ended = await site.run(delayed)
    assert ended is not None
    assert ended.status is RunStatus.SUCCESS


async def test_a_process_that_stops_hands_its_runs_back(queue: str, queue_settings: Settings) -> None:
    site = Site(queue_settings)
    async with site.processes(1):
        thread, other = await site.thread(), await site.thread()
        run = await site.start(thread, "held", hold=True)
        delayed = await site.start(other, "delayed", after_seconds=0.5)
        await until(lambda: _entered(site, "held"), "the run did not start")
    async with site.processes(1):
        await until(lambda: _again(site, run), "the run was not taken up again")
        site.trace.gate("held").set()
        await site.until_idle()
        ended = await site.run(run)
        assert ended is not None
        assert (ended.status, ended.attempt) == (RunStatus.SUCCESS, 2)
        assert await site.done(thread) == ["held.a", "held.b"]
        assert await site.done(other) == ["delayed.a", "delayed.b"]
        assert await site.run(delayed) is not None


async def test_a_run_that_was_begun_before_and_waits_for_a_place_can_be_cancelled(queue_settings: Settings) -> None:
    """Only its next attempt can end it, so it must not lose its turn."""
    site = Site(queue_settings)
    async with site.processes(1):
        started = [await site.start(await site.thread(), tag, hold=True) for tag in ("one", "other")]
        for tag in ("one", "other"):
            await until(partial(_entered, site, tag), "the run did not start")
    site.settings = queue_settings.model_copy(update={"run_concurrency": 1})
    async with site.processes(1):
        await until(lambda: _any(site, started, attempt=2), "no run was taken up again")
        run_rows = [await site.run(run) for run in started]
        [waits] = [run for run in run_rows if run is not None and run.status is RunStatus.PENDING]
        await site.engine.runs.cancel(CALLER, waits.thread_id, waits.id, Cancel.INTERRUPT)
        for tag in ("one", "other"):
            site.trace.gate(tag).set()
        await site.until_idle()
        ended = await site.run(waits)
        assert ended is not None
        assert (ended.status, ended.lost) == (RunStatus.INTERRUPTED, 0)
        assert (await site.row(waits.thread_id)).status is not ThreadStatus.BUSY


@only_procrastinate
async def test_writes_of_a_superseded_attempt_are_refused(site: Site) -> None:
    """Both attempts go on side by side; what the earlier one still writes is refused."""
    thread = await site.thread()
    run = await site.start(thread, "held", hold=True)
    await until(lambda: _entered(site, "held"), "the run did not start")
    await site.store.write(DEFAULT_TENANT, runs.resume, thread, [Attempt(run.id, 1)])
    await until(lambda: _again(site, run), "the run was not taken up again")
    site.trace.gate("held").set()
    await site.until_idle()
    ended = await site.run(run)
    assert ended is not None
    assert (ended.status, ended.attempt) == (RunStatus.SUCCESS, 2)
    assert await site.done(thread) == ["held.a", "held.b"]


@only_procrastinate
async def test_runs_lost_by_the_queue_are_restored_from_rows(site: Site) -> None:
    """Nothing is in it that our own rows do not say as well."""
    held, delayed = await site.thread(), await site.thread()
    first = await site.start(held, "first", hold=True)
    await until(lambda: _entered(site, "first"), "the run did not start")
    queued = await site.start(held, "queued", multitask_strategy=Strategy.ENQUEUE)
    later = await site.start(delayed, "later", after_seconds=0.2)
    await site.store.write(None, _empty_queue)
    site.trace.gate("first").set()
    await site.until_idle()
    assert await site.done(held) == ["first.a", "first.b", "queued.a", "queued.b"]
    assert await site.done(delayed) == ["later.a", "later.b"]
    assert None not in [await site.run(run) for run in (first, queued, later)]


@pytest.mark.promise("SERVE-18")
@pytest.mark.scoreboard
@pytest.mark.timeout(600)
@pytest.mark.parametrize("strategy", [*Strategy, None], ids=lambda one: one or "mixed")
async def test_concurrent_creates_follow_their_strategy(
    site: Site, queue: str, strategy: Strategy | None, count: Count, record_score: RecordScore
) -> None:
    creates = count(full=200, quick=40)
    threads = [await site.thread() for _ in range(THREADS)]
    kinds = list(Strategy)
    asked = [strategy or kinds[number // THREADS % len(kinds)] for number in range(creates)]
    answers = await asyncio.gather(
        *(site.start(threads[n % THREADS], f"{n}", multitask_strategy=asked[n]) for n in range(creates)),
        return_exceptions=True,
    )
    made = {number: answer for number, answer in enumerate(answers) if isinstance(answer, Run)}
    assert all(isinstance(answer, Run | ThreadBusy) for answer in answers), Counter(map(repr, answers))
    await site.until_idle()
    disorder = [thread for thread in threads if not _in_order(site, thread, made)]
    busy = [thread for thread in threads if (await site.row(thread)).status is ThreadStatus.BUSY]
    record_score(
        f"{creates} creates at once over {THREADS} threads, {strategy or 'every strategy mixed'}, {queue}",
        "never two at once on a thread, order kept, no thread left busy",
        f"{len(site.trace.met)} met, {len(disorder)} out of order, {len(busy)} left busy, {len(made)} accepted",
    )
    assert not site.trace.met
    assert not disorder
    assert not busy
    await _check_outcomes(site, threads, made, asked)


def _in_order(site: Site, thread: str, made: dict[int, Run]) -> bool:
    """By when they were let in: their places in line are given again once a run was rolled back."""
    let_in = [made[int(tag)].created_at for tag in site.trace.tags(thread)]
    return let_in == sorted(let_in)


async def _check_outcomes(site: Site, threads: list[str], made: dict[int, Run], asked: list[Strategy]) -> None:
    """Every run that was accepted ended as its strategy, and those after it, say."""
    left = {number: await site.run(run) for number, run in made.items()}
    for thread in threads:
        of_thread = {number: left[number] for number, run in made.items() if run.thread_id == thread}
        last = max(of_thread, key=lambda number: made[number].created_at)
        final = of_thread[last]
        assert final is not None
        assert final.status is RunStatus.SUCCESS
        done = {entry.partition(".")[0] for entry in await site.done(thread)}
        assert all(str(number) in done for number, run in of_thread.items() if run and run.status is RunStatus.SUCCESS)
        assert not [number for number, run in of_thread.items() if run is None and str(number) in done]
    if set(asked) <= {Strategy.ENQUEUE, Strategy.REJECT}:
        assert {run.status for run in left.values() if run} == {RunStatus.SUCCESS}


def _empty_queue(tx: Tx) -> None:
    tx.sql("TRUNCATE assent_queue.procrastinate_jobs CASCADE")


async def _entered(site: Site, tag: str) -> bool:
    return any(tag == entered for _, entered, _ in site.trace.entered)


async def _woken(site: Site, run: Run) -> bool:
    run_row: Any = await site.store.read(DEFAULT_TENANT, runs.get, run.id)
    return run_row.wake_at is None


async def _again(site: Site, run: Run) -> bool:
    run_row = await site.run(run)
    return run_row is not None and run_row.attempt == 2


async def _any(site: Site, several: list[Run], *, attempt: int) -> bool:
    run_rows = [await site.run(run) for run in several]
    return any(run is not None and run.attempt == attempt for run in run_rows)
