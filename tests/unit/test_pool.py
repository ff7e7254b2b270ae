"""The line for connections: fair, bounded, and content with fewer where Postgres gives no more."""

from __future__ import annotations

import asyncio

import pytest

from assent.errors import StoreBusy
from assent.kernel.store.drivers.pool import Line


class Visitors:
    """Those who want a turn, by name, in the order in which they got it."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.served: list[str] = []
        self._done: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def come(self, *names: str) -> None:
        for name in names:
            self._done[name] = asyncio.Event()
            self._tasks[name] = asyncio.create_task(self._visit(name))
            await self._settle()

    async def go(self, name: str) -> None:
        self._done[name].set()
        await self._tasks[name]
        await self._settle()

    async def leave_the_line(self, name: str) -> None:
        self._tasks[name].cancel()
        await asyncio.gather(self._tasks[name], return_exceptions=True)

    async def _visit(self, name: str) -> None:
        async with self.line.turn():
            self.served.append(name)
            await self._done[name].wait()

    async def _settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("assent.kernel.store.drivers.pool.time.monotonic", lambda: now[0])
    return now


async def test_turns_are_given_in_order_up_to_the_limit() -> None:
    visitors = Visitors(Line(2))
    await visitors.come("a", "b", "c", "d")
    assert visitors.served == ["a", "b"]
    await visitors.go("b")
    await visitors.go("a")
    assert visitors.served == ["a", "b", "c", "d"]
    await visitors.come("e")
    assert "e" not in visitors.served
    await visitors.go("d")
    await visitors.go("c")
    await visitors.go("e")


async def test_later_caller_does_not_overtake_waiting_ones() -> None:
    visitors = Visitors(Line(1))
    await visitors.come("a", "b")
    visitors._done["a"].set()
    await visitors.come("c")
    assert visitors.served == ["a", "b"]
    await visitors.go("b")
    await visitors.go("c")


async def test_wait_past_its_timeout_is_busy_and_takes_no_turn() -> None:
    line = Line(1, patience=0)
    async with line.turn():
        with pytest.raises(StoreBusy, match="in use"):
            async with line.turn():
                pass
    async with line.turn():
        pass


async def test_a_cancelled_wait_gives_its_turn_to_the_next() -> None:
    visitors = Visitors(Line(1))
    await visitors.come("a", "b", "c")
    await visitors.leave_the_line("b")
    await visitors.go("a")
    assert visitors.served == ["a", "c"]
    await visitors.go("c")


async def test_after_a_refusal_the_pool_uses_the_open_connections(clock: list[float]) -> None:
    visitors = Visitors(line := Line(10))
    await visitors.come("a", "b", "c")
    line.refused()  # "c" found no connection
    await visitors.go("c")
    await visitors.come("d")
    assert visitors.served == ["a", "b", "c"], "there are two connections, and both are in use"
    await visitors.go("a")
    assert visitors.served[-1] == "d"
    clock[0] += 10
    await visitors.come("e", "f")
    assert visitors.served[-2:] == ["e", "f"], "after a while more are tried"
    for name in "bdef":
        await visitors.go(name)


async def test_after_a_refusal_without_open_connections_one_caller_tries_at_a_time(clock: list[float]) -> None:
    visitors = Visitors(line := Line(10))
    await visitors.come("a")
    line.refused()
    await visitors.go("a")
    await visitors.come("b", "c")
    assert visitors.served == ["a", "b"]
    await visitors.go("b")
    await visitors.go("c")
