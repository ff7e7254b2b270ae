"""Supervised background tasks: an error delays the next round and never ends the task; a stop always does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from assent.errors import Unavailable
from assent.kernel.background import Repeating, each, every

PATIENCE = 10.0


class Rounds:
    """Work that fails as often as it is told to."""

    def __init__(self, *, failures: int = 0) -> None:
        self.begun = 0
        self._failures = failures
        self._changed = asyncio.Event()

    async def __call__(self) -> float | None:
        self.begun += 1
        self._changed.set()
        if self.begun <= self._failures:
            raise ValueError("on purpose")
        return None

    async def reach(self, number: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while self.begun < number:
                self._changed.clear()
                await self._changed.wait()


async def test_failing_round_is_logged_counted_and_retried(caplog: pytest.LogCaptureFixture) -> None:
    work = Rounds(failures=3)
    task = Repeating("counting", work, first_retry=0.001)
    with caplog.at_level(logging.WARNING, "assent.kernel.background"):
        task.start()
        await work.reach(4)
    await task.stop()
    assert task.failures == 3
    retries = [record.__dict__["retry_seconds"] for record in caplog.records]
    assert retries == [0.001, 0.002, 0.004]
    assert {record.__dict__["task"] for record in caplog.records} == {"counting"}


async def test_wake_begins_the_next_round_and_does_not_shorten_a_retry() -> None:
    work, failing = Rounds(), Rounds(failures=1)
    tasks = Repeating("works", work), Repeating("fails", failing, first_retry=3600, longest_retry=3600)
    for task in tasks:
        task.start()
    await work.reach(1)
    await failing.reach(1)
    for task in tasks:
        task.wake()
    await work.reach(2)
    assert failing.begun == 1
    for task in tasks:
        await task.stop()


async def test_wake_during_a_round_is_followed_by_another_round() -> None:
    begun = 0

    async def work() -> None:
        nonlocal begun
        begun += 1
        if begun == 1:
            task.wake()

    task = Repeating("woken", work)
    task.start()
    async with asyncio.timeout(PATIENCE):
        while begun < 2:  # noqa: ASYNC110 - the round itself has nothing to wait for
            await asyncio.sleep(0)
    await task.stop()


@pytest.mark.parametrize("error", [Unavailable("lost"), ValueError("lost")])
async def test_stop_ends_a_round_whose_driver_turns_the_cancellation_into_an_error(error: Exception) -> None:
    begun = asyncio.Event()

    async def statement() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise error from None

    task = Repeating("statement", statement)
    task.start()
    await asyncio.wait_for(begun.wait(), PATIENCE)
    await asyncio.wait_for(task.stop(), PATIENCE)
    assert not task.running


async def test_finish_lets_the_round_under_way_end_and_begins_no_other() -> None:
    begun, go_on, ended = asyncio.Event(), asyncio.Event(), list[str]()

    async def work() -> float:
        begun.set()
        await go_on.wait()
        ended.append("round")
        return 0

    task = Repeating("careful", work)
    task.start()
    await asyncio.wait_for(begun.wait(), PATIENCE)
    finishing = asyncio.create_task(task.finish())
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.wait_for(finishing, PATIENCE)
    assert ended == ["round"]


async def test_cancelled_task_can_be_started_again_at_once() -> None:
    work = Rounds()
    task = Repeating("again", work)
    task.start()
    await work.reach(1)
    task.cancel()
    task.start()
    await work.reach(2)
    await task.stop()


async def test_every_returns_its_period() -> None:
    assert await every(7, Rounds())() == 7


def _refusing(bad: Any, error: Exception) -> tuple[list[Any], Callable[[Any], Any]]:
    done: list[Any] = []

    async def act(entry: Any) -> None:
        if entry == bad:
            raise error
        done.append(entry)

    return done, act


async def test_failing_entry_is_skipped() -> None:
    done, act = _refusing(2, ValueError("unreadable"))
    put_off: list[int] = []

    async def postpone(entry: int) -> None:
        put_off.append(entry)

    await each("numbers", [1, 2, 3], act, on_failure=postpone)
    assert (done, put_off) == ([1, 3], [2])


async def test_store_that_cannot_be_reached_ends_the_round() -> None:
    done, act = _refusing(2, Unavailable("away"))
    with pytest.raises(Unavailable):
        await each("numbers", [1, 2, 3], act)
    assert done == [1]
