"""A caller with many reads waits behind themselves: others have their turn after one of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import copy_context

import pytest

from assent.kernel import fair_threads as turns
from assent.kernel.fair_threads import FairThreads, Shares, caller


def submitted(threads: FairThreads, name: str, function: object) -> object:
    def submit() -> object:
        caller.set(name)
        return threads.submit(function)  # type: ignore[arg-type]

    return copy_context().run(submit)


def test_another_caller_has_the_turn_after_the_read_that_is_under_way() -> None:
    threads, go, order = FairThreads(1, "test"), threading.Event(), list[str]()
    submitted(threads, "many", go.wait)
    for number in range(20):
        submitted(threads, "many", lambda number=number: order.append(f"many {number}"))
    for name in ("ana", "ben"):
        submitted(threads, name, lambda name=name: order.append(name))
    go.set()
    threads.shutdown()
    assert order[:4] == ["many 0", "ana", "ben", "many 1"]
    assert [one for one in order if one.startswith("many")] == [f"many {number}" for number in range(20)]


def test_error_of_a_function_reaches_its_caller_and_the_thread_continues() -> None:
    threads = FairThreads(1, "test")
    failing, after = threads.submit(lambda: 1 / 0), threads.submit(lambda: 2)
    with pytest.raises(ZeroDivisionError):
        failing.result(10)
    assert after.result(10) == 2
    threads.shutdown()


def test_cancelled_read_is_skipped() -> None:
    threads, go = FairThreads(1, "test"), threading.Event()
    threads.submit(go.wait)
    cancelled, after = threads.submit(lambda: 1), threads.submit(lambda: 2)
    assert cancelled.cancel()
    go.set()
    assert after.result(10) == 2
    threads.shutdown()


async def test_caller_uses_at_most_its_own_share() -> None:
    shares, held = Shares(1), asyncio.Event()
    entered: list[str] = []

    async def enter(name: str) -> None:
        caller.set(name)
        async with shares.of_caller():
            entered.append(name)
            await held.wait()

    tasks = [asyncio.create_task(enter(name)) for name in ("many", "many", "ana", "", "")]
    for _ in range(5):
        await asyncio.sleep(0)
    assert sorted(entered) == ["", "", "ana", "many"]
    held.set()
    await asyncio.gather(*tasks)
    assert entered.count("many") == 2


async def test_abandoned_reads_of_a_caller_hold_at_most_one_thread() -> None:
    assert await asyncio.create_task(_started_together(turns.one_by_one)) == 1


async def test_control_without_turns_abandoned_reads_hold_every_thread() -> None:
    assert await asyncio.create_task(_started_together(turns.beside)) == turns._FEW


async def _started_together(run: Callable[..., Awaitable[None]]) -> int:
    """How many views of a page that one caller opens and leaves, again and again, are being made at once."""
    caller.set("impatient")
    held, started = threading.Event(), list[int]()

    def work() -> None:
        started.append(1)
        held.wait(30)

    for _ in range(2 * turns._FEW):
        with suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                await run(work)
    try:
        return len(started)
    finally:
        held.set()
