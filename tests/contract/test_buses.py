"""The contract of every bus: it sends live frames to each follower, complete, at the follower's pace, and to no other.

The bus on Postgres is two here: what is published in one process is followed in another.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any

import pytest

from assent.errors import Unavailable
from assent.identity.model.access import DEFAULT_TENANT
from assent.kernel.ids import new_id
from assent.kernel.store.transaction import Tx
from assent.runs.bus.batches import CHANNEL
from assent.runs.bus.memory import MemoryBus
from assent.runs.bus.postgres import PostgresBus
from assent.runs.engine.endings import finish
from assent.threads.bus import Bus, FellBehind, Subscription
from assent.threads.model.frames import END, Frame, Stream, Topic
from assent.threads.model.runs import Outcome, Run, RunStatus, Strategy
from assent.threads.model.threads import ThreadStatus
from assent.threads.rows import frames, runs, threads
from assent.threads.rows.state.checkpoints import Attempt
from tests.contract.stores import AnyStore, both_databases, only_postgres, opened

PATIENCE = 60.0
QUESTION = {"id": "q", "value": "sure?"}


@dataclass
class Line:
    """A bus as the process sees it that executes runs, and as another one does that is asked about them."""

    store: AnyStore
    here: Bus
    there: Bus

    async def stream(self, *, resumable: bool = False, tenant: str = DEFAULT_TENANT, thread: str = "") -> Stream:
        """Of a run that is being executed."""
        stream = Stream(tenant, thread or new_id(), new_id(), 1, resumable)
        await self.store.write(tenant, _executed, stream)
        return stream

    async def publish(self, stream: Stream, *numbers: int) -> None:
        for number in numbers:
            await self.here.publish(stream, _frame(number))

    async def end(self, stream: Stream, number: int, result: bytes = b"{}", *, asks: bool = False) -> None:
        """As the runner does: the end is recorded, then told."""
        last = Frame(number, END, result, str(number))
        await self.here.flush(stream)
        outcome = Outcome(RunStatus.SUCCESS, interrupts={"task": [QUESTION]} if asks else {})
        run: Any = await self.store.read(stream.tenant, runs.get, stream.run_id)
        await self.store.write(
            stream.tenant,
            finish,
            run,
            Attempt(run.id, 1),
            outcome,
            shown=self.here.is_followed(stream.topic),
            last=(stream, [last]) if self.here.shared else None,
        )
        await self.here.end(stream, last)

    async def shown(self, stream: Stream) -> bool:
        thread_row = await self.store.read(stream.tenant, threads.get, stream.thread_id)
        assert thread_row is not None
        return thread_row.shown


@pytest.fixture
async def line(database: str) -> AsyncIterator[Line]:
    async with opened(database) as store, AsyncExitStack() as stack:
        memory = MemoryBus(store)
        here, there = (
            (memory, memory)
            if database.startswith("sqlite")
            else (PostgresBus(store, database), PostgresBus(store, database))
        )
        for bus in (here, there):
            await bus.open()
            stack.push_async_callback(bus.close)
        yield Line(store, here, there)


@both_databases
async def test_a_follower_gets_everything_from_before_the_run_to_its_end(line: Line) -> None:
    stream = await line.stream()
    followed = line.there.follow(stream.topic)
    await line.publish(stream, 1, 2, 3)
    await line.end(stream, 4, b'{"a":1}')
    assert await _numbers(followed, 4) == [1, 2, 3, 4]


@only_postgres
@pytest.mark.parametrize("notice", ["", "junk", "run\nno number\ntopic"])
async def test_notice_of_somebody_else_does_not_end_the_listener(line: Line, notice: str) -> None:
    stream = await line.stream()
    followed = line.there.follow(stream.topic)
    await _listening(line)
    await line.store.write(None, lambda tx: tx.sql("SELECT pg_notify(%s, %s)", (CHANNEL, notice)))
    await line.publish(stream, 1)
    await line.end(stream, 2)
    assert await _numbers(followed, 2) == [1, 2]


@only_postgres
async def test_follower_of_a_closed_bus_gets_an_error(line: Line) -> None:
    stream = await line.stream()
    followed = line.there.follow(stream.topic)
    await _listening(line)
    await line.there.close()
    with pytest.raises(Unavailable):
        await asyncio.wait_for(followed.next(), PATIENCE)


@both_databases
async def test_the_end_carries_the_result_of_a_run_whose_thread_is_gone(line: Line) -> None:
    stream = await line.stream()
    followed = await line.there.follow_now(stream.topic)
    await line.end(stream, 1, b'{"reply":"hi"}')
    await line.store.write(stream.tenant, threads.remove, stream.thread_id)
    last = await asyncio.wait_for(followed.end(), PATIENCE)
    assert (last.event, last.data) == (END, b'{"reply":"hi"}')


@both_databases
async def test_late_follower_gets_only_later_frames(line: Line) -> None:
    stream = await line.stream()
    await line.publish(stream, 1, 2)
    await line.here.flush(stream)
    followed = await line.there.follow_now(stream.topic)
    await line.publish(stream, 3)
    await line.end(stream, 4)
    assert await _numbers(followed, 2) == [3, 4]


@only_postgres
async def test_late_follower_that_reads_slowly_misses_no_frame(line: Line) -> None:
    """News that has not arrived is not taken for news from before: here none arrives at all."""
    stream = await line.stream()
    await line.publish(stream, 1, 2)
    await line.here.flush(stream)
    followed = await line.there.follow_now(stream.topic)
    listener: Any = line.there
    listener._spread = lambda _: None
    await line.publish(stream, 3)
    await line.end(stream, 4)
    await line.here.flush(stream)
    await _lose_listeners(line)
    assert await _numbers(followed, 2) == [3, 4]


@only_postgres
async def test_frames_that_are_not_yet_written_are_not_new(line: Line) -> None:
    stream = await line.stream()
    await line.publish(stream, 1, 2)
    followed = await line.here.follow_now(stream.topic)
    await line.publish(stream, 3)
    await line.end(stream, 4)
    assert await _numbers(followed, 2) == [3, 4]


@only_postgres
async def test_follower_of_a_thread_falls_behind_when_the_listener_is_lost(line: Line) -> None:
    """A run may have begun meanwhile, and nobody has announced it."""
    stream = await line.stream()
    followed = await line.there.follow_now(stream.thread_topic)
    await line.publish(stream, 1)
    assert (await asyncio.wait_for(followed.next(), PATIENCE)).event == "values"
    await _lose_listeners(line)
    with pytest.raises(FellBehind):
        await asyncio.wait_for(followed.next(), PATIENCE)


@only_postgres
async def test_follower_is_refused_when_nothing_can_be_announced(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assent.runs.bus.postgres._PATIENCE", 0.1)
    monkeypatch.setattr("assent.runs.bus.postgres.CHANNEL", "no channel")
    stream = await line.stream()
    with pytest.raises(Unavailable):
        await line.there.follow_now(stream.topic)


@both_databases
async def test_resumed_stream_continues_after_the_last_received_frame(line: Line) -> None:
    """Stored frames and frames not yet stored are sent without a gap."""
    stream = await line.stream(resumable=True)
    await line.publish(stream, *range(1, 101))
    followed = line.there.follow(stream.topic, after=90)
    kept = await line.store.read(stream.tenant, frames.after, stream.run_id, 90)
    await line.end(stream, 101)
    seen = {frame.seq for frame in kept}
    while (frame := await asyncio.wait_for(followed.next(), PATIENCE)).event != END:
        seen.add(frame.seq)
    assert seen == set(range(91, 101))
    kept = await line.store.read(stream.tenant, frames.after, stream.run_id, 0)
    assert [frame.seq for frame in kept] == list(range(1, 101))


@both_databases
async def test_a_thread_is_followed_over_its_runs_and_only_its_own(line: Line) -> None:
    thread = new_id()
    followed = await line.there.follow_now(Topic(DEFAULT_TENANT, thread, of_thread=True))
    stranger = await line.stream(tenant="other", thread=thread)
    await line.publish(stranger, 7)
    await line.here.flush(stranger)
    for _ in range(2):
        stream = await line.stream(thread=thread)
        await line.publish(stream, 1)
        await line.end(stream, 2, b'{"secret":1}')
    seen = [await asyncio.wait_for(followed.next(), PATIENCE) for _ in range(4)]
    assert [frame.event for frame in seen] == ["values", "metadata", "values", "metadata"]
    assert b"run_done" in seen[1].data
    assert not [frame for frame in seen if b"secret" in frame.data or frame.seq == 7]


@both_databases
@pytest.mark.promise("P10")
async def test_follower_of_another_tenant_gets_no_frames_of_a_known_run(line: Line) -> None:
    """The one of the run's own tenant is the control: it gets all of them, in the same way."""
    stream = await line.stream(resumable=True)
    own = line.there.follow(stream.topic)
    other = Topic("other", stream.run_id)
    others = [line.there.follow(other), await line.there.follow_now(other)]
    await _listening(line)
    reading = [asyncio.create_task(other.next()) for other in others]
    await line.publish(stream, 1, 2)
    others.append(line.there.follow(Topic("other", stream.run_id)))
    reading.append(asyncio.create_task(others[-1].next()))
    assert not line.here.is_followed(Topic("another", stream.run_id))
    await line.end(stream, 3, b'{"__interrupt__":[]}', asks=True)
    assert await _numbers(own, 3) == [1, 2, 3]
    await _listening(line)
    done, waiting = await asyncio.wait(reading, timeout=0)
    assert not done, [task.result() for task in done]
    for task in waiting:
        task.cancel()


@only_postgres
async def test_follower_of_another_tenant_gets_no_start_position(line: Line) -> None:
    stream = await line.stream()
    await line.publish(stream, 1, 2, 3)
    await line.here.flush(stream)
    assert isinstance(line.there, PostgresBus)
    assert await line.there.position(stream.tenant, stream.run_id) == 3
    assert await line.there.position("other", stream.run_id) == 0


@both_databases
async def test_a_slow_follower_costs_no_memory_and_delays_nobody(line: Line) -> None:
    """It is cut off, or served from the table at its own pace."""
    stream = await line.stream()
    slow, quick = line.there.follow(stream.topic), await line.there.follow_now(stream.topic)
    for number in range(1, 3001):
        await line.publish(stream, number)
        if number % 500 == 0:
            await line.here.flush(stream)
            assert (await _until(quick, number))[-1] == number
    await line.end(stream, 3001)
    assert (await asyncio.wait_for(quick.end(), PATIENCE)).seq == 3001
    try:
        assert await _until(slow, 3001) == list(range(1, 3002))
    except FellBehind:
        assert not line.here.shared


@both_databases
async def test_closed_follower_gets_no_more_frames(line: Line) -> None:
    stream = await line.stream()
    gone, stays = line.there.follow(stream.topic), line.there.follow(stream.topic)
    gone.close()
    await line.publish(stream, 1)
    await line.end(stream, 2)
    assert await _numbers(stays, 2) == [1, 2]
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(gone.next(), 0.01)


@both_databases
async def test_a_question_counts_as_shown_when_a_follower_is_given_the_end(line: Line) -> None:
    stream, alone = await line.stream(), await line.stream()
    followed = line.there.follow(stream.topic)
    await line.end(stream, 1, b'{"__interrupt__":[]}', asks=True)
    await line.end(alone, 1, b'{"__interrupt__":[]}', asks=True)
    await asyncio.wait_for(followed.end(), PATIENCE)
    assert await line.shown(stream)
    assert not await line.shown(alone)


@only_postgres
async def test_an_end_that_is_delivered_late_does_not_show_the_next_question(line: Line) -> None:
    stream = await line.stream()
    followed = line.there.follow(stream.topic)
    await line.end(stream, 1, b'{"__interrupt__":[]}', asks=True)
    following = await line.stream(thread=stream.thread_id)
    await line.end(following, 1, b'{"__interrupt__":[]}', asks=True)
    await asyncio.wait_for(followed.end(), PATIENCE)
    assert not await line.shown(stream)


@only_postgres
async def test_frames_of_an_attempt_that_was_taken_over_are_refused(line: Line) -> None:
    stream = await line.stream()
    await line.publish(stream, 1)
    await line.here.flush(stream)
    await line.store.write(stream.tenant, runs.begin_again, Attempt(stream.run_id, 1))
    await line.publish(stream, 2)
    await line.here.flush(stream)
    kept = await line.store.read(stream.tenant, frames.after, stream.run_id, 0)
    assert [frame.seq for frame in kept] == [1]


@only_postgres
async def test_unpublished_end_is_published_by_a_reminder(line: Line) -> None:
    """Its worker died between recording it and telling it."""
    stream = await line.stream()
    followed = line.there.follow(stream.topic)
    await _listening(line)
    await line.store.write(stream.tenant, frames.append, stream, [Frame(5, END, b"{}", "5")])
    assert isinstance(line.here, PostgresBus)
    await line.here.remind([stream.run_id])
    assert (await asyncio.wait_for(followed.end(), PATIENCE)).seq == 5


async def _lose_listeners(line: Line) -> None:
    listeners = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE starts_with(query, 'LISTEN')"
    await line.store.write(None, lambda tx: tx.sql(f"{listeners} AND datname = current_database()"))


async def _listening(line: Line) -> None:
    """Until the other process hears: a run of its own comes through."""
    stream = await line.stream()
    followed = line.there.follow(stream.topic)
    await line.publish(stream, 1)
    await asyncio.wait_for(followed.next(), PATIENCE)
    followed.close()


async def _numbers(followed: Subscription, count: int) -> list[int]:
    return [(await asyncio.wait_for(followed.next(), PATIENCE)).seq for _ in range(count)]


async def _until(followed: Subscription, number: int) -> list[int]:
    seen = [0]
    while seen[-1] != number:
        seen += await _numbers(followed, 1)
    return seen[1:]


def _frame(number: int) -> Frame:
    return Frame(number, "values", b'{"n":%d}' % number, str(number))


def _executed(tx: Tx, stream: Stream) -> Run | None:
    if threads.get(tx, stream.thread_id) is None:
        threads.insert(tx, stream.thread_id, {})
    threads.set_status(tx, stream.thread_id, ThreadStatus.BUSY)
    facts = {"assistant_id": "a", "graph_id": "g", "metadata": {}, "kwargs": {}, "temporary": False}
    runs.insert_pending(tx, stream.run_id, stream.thread_id, answers=True, multitask_strategy=Strategy.ENQUEUE, **facts)
    return runs.begin(tx, stream.run_id)


@both_databases
async def test_frames_are_read_unless_every_follower_waits_only_for_the_end(line: Line) -> None:
    stream, other = await line.stream(), await line.stream()
    waits = line.here.follow(Topic(DEFAULT_TENANT, stream.run_id), only_end=True)
    assert line.here.is_read(stream) == line.here.shared
    joins = await line.there.follow_now(Topic(DEFAULT_TENANT, stream.run_id))
    assert line.here.is_read(stream), "the control: one reads all frames"
    await line.publish(stream, 1)
    await line.end(stream, 2, b'"done"')
    assert ((await joins.next()).seq, (await joins.next()).event) == (1, END)
    assert (await asyncio.wait_for(waits.end(), PATIENCE)).data == b'"done"'
    by_thread = await line.there.follow_now(Topic(DEFAULT_TENANT, other.thread_id, of_thread=True))
    assert line.here.is_read(other)
    assert line.here.is_read(replace(stream, resumable=True))
    for follower in (waits, joins, by_thread):
        follower.close()
