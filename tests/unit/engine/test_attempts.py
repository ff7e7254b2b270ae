"""What carries an attempt through cancellations and a database that is away."""

from __future__ import annotations

import asyncio

import pytest

from assent.engine.attempts import patiently, to_the_end
from assent.errors import Unavailable


class Database:
    """Away for some calls, then there."""

    def __init__(self, away: int) -> None:
        self.away = away
        self.calls = 0

    async def ask(self) -> str:
        self.calls += 1
        if self.calls <= self.away:
            raise Unavailable("gone fishing")
        return "answer"


async def test_what_is_tried_patiently_succeeds_once_the_database_is_back() -> None:
    database = Database(away=2)
    assert await patiently(database.ask) == "answer"
    assert database.calls == 3


async def test_patience_ends_when_the_process_stops() -> None:
    stopping = asyncio.Event()
    trying = asyncio.create_task(patiently(Database(away=1000).ask, stopping=stopping))
    await asyncio.sleep(0)
    stopping.set()
    with pytest.raises(Unavailable):
        await asyncio.wait_for(trying, 5)


async def test_patience_ends_after_its_time() -> None:
    with pytest.raises(Unavailable):
        await patiently(Database(away=1000).ask, most_seconds=0)


async def test_what_has_to_end_ends_whoever_cancels() -> None:
    gate, ended = asyncio.Event(), []

    async def record() -> str:
        await gate.wait()
        ended.append(True)
        return "recorded"

    task = asyncio.create_task(to_the_end(record()))
    for _ in range(3):
        await asyncio.sleep(0)
        task.cancel()
    await asyncio.sleep(0)
    gate.set()
    assert await asyncio.wait_for(task, 5) == "recorded"
    assert ended
