"""Crons over processes that are killed: every due time is fired once, or reported as missed.

Each cron ends at a known time, so its due times are known. A run names its due time; the cron counts missed ones.
The control takes the lock away: then several processes fire the same due time.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import func, select

from assent.identity.model.access import DEFAULT_TENANT
from assent.kernel.store.tables import TENANT, crons, runs
from assent.kernel.store.transaction import Tx
from assent.runs.crons.crons import Wanted
from assent.threads.model.crons import Cron, next_after
from assent.threads.rows import crons as rows
from tests.contract.stores import AnyStore, opened
from tests.postgres import Cluster
from tests.scoreboard import Count, RecordScore
from tests.servers import ServerProcess, dev_server
from tests.waiting import until
from tests.workers import CALLER, Crew, crew_on, new_worker

PATIENCE = 300.0
UNLOCKED = """
import sys
from assent.runs.crons import firing
firing._taken = lambda tx, read: read
from assent.surfaces.cli.main import main
sys.argv[0] = "assent"
main()
"""
"""A process that fires whatever it saw to be due, whoever has fired it by now."""

_FIRED = select(runs.c.metadata).where(runs.c.tenant_id == TENANT)
_OPEN = select(func.count()).where(crons.c.tenant_id == TENANT, crons.c.next_run_at.is_not(None))


@dataclass
class Tally:
    due: int = 0
    fired: int = 0
    missed: int = 0
    doubled: int = 0
    lost: int = 0
    invented: int = 0
    kinds: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        return (
            f"{self.due} due times: {self.fired} fired, {self.missed} reported missed, "
            f"{self.doubled} doubled, {self.lost} lost"
        )


def due_times(cron: Cron) -> list[str]:
    """All of a cron that has ended."""
    times, moment = [], next_after(cron.schedule, cron.timezone, cron.created_at, cron.end_time)
    while moment is not None:
        times.append(moment.isoformat())
        moment = next_after(cron.schedule, cron.timezone, moment, cron.end_time)
    return times


async def tally(store: AnyStore, made: Sequence[str]) -> Tally:
    def read(tx: Tx) -> tuple[list[Cron], list[Any]]:
        ended = [cron for cron_id in made if (cron := rows.get(tx, cron_id))]
        return ended, [row.metadata for row in tx.all(_FIRED)]

    ended, fired = await store.read(DEFAULT_TENANT, read)
    counted = Tally()
    by_cron = dict[str, list[str]]()
    for facts in fired:
        by_cron.setdefault(facts["cron_id"], []).append(facts["cron_due"])
    for cron in ended:
        due, runs_of = due_times(cron), by_cron.get(cron.id, [])
        counted.due += len(due)
        counted.fired += len(set(runs_of))
        counted.doubled += len(runs_of) - len(set(runs_of))
        counted.invented += len(set(runs_of) - set(due))
        counted.missed += cron.missed
        counted.lost += abs(len(due) - len(set(runs_of)) - cron.missed)
    return counted


async def all_over(store: AnyStore) -> bool:
    def open_crons(tx: Tx) -> int:
        row = tx.first(_OPEN)
        return int(row[0]) if row else 0

    return await store.read(DEFAULT_TENANT, open_crons) == 0


def schedule(number: int, every: int) -> str:
    """Every so many seconds, spread over them."""
    seconds = ",".join(str(second) for second in range(number % every, 60, every))
    return f"* * * * * {seconds}"


@pytest.fixture
async def crew(postgres: Cluster, folder: Path) -> AsyncIterator[Crew]:
    with postgres.database() as url:
        async with crew_on(url, folder) as crew:
            await crew.engine.firing.close()  # the workers fire
            yield crew


async def make(crew: Crew, number: int, *, every: int, seconds: float) -> list[str]:
    now: datetime = await crew.store.read(DEFAULT_TENANT, lambda tx: tx.now())
    end = now + timedelta(seconds=seconds)
    made = []
    for index in range(number):
        given = {"schedule": schedule(index, every), "end_time": end, "on_run_completed": "keep"}
        body = {"input": {"text": "t"}}
        made.append((await crew.engine.crons.create(CALLER, "slow", Wanted(given, body))).id)
    return made


async def kill_some(crew: Crew, kills: int, *, seconds: float) -> None:
    """One after the other, each replaced at once."""
    dice = random.Random(20261118)
    for _ in range(kills):
        await asyncio.sleep(dice.uniform(0.2, 1.8) * seconds / kills / 2)  # the random moment is the point of this test
        worker = crew.workers.pop(dice.randrange(len(crew.workers)))
        await asyncio.to_thread(worker.kill)
        await crew.hire()


@pytest.mark.scoreboard
@pytest.mark.timeout(1800)
async def test_due_times_are_fired_once_or_reported_over_kills(
    crew: Crew, count: Count, record_score: RecordScore
) -> None:
    number, kills = count(full=1000, quick=40), count(full=20, quick=3)
    every, seconds = count(full=60, quick=5), float(count(full=300, quick=20))
    await crew.hire(3)
    made = await make(crew, number, every=every, seconds=seconds)
    await kill_some(crew, kills, seconds=seconds * 0.7)
    await until(lambda: all_over(crew.store), "some crons do not end", patience=seconds + PATIENCE)  # type: ignore[arg-type]
    counted = await tally(crew.store, made)  # type: ignore[arg-type]
    record_score(
        f"{number} crons over three processes with {kills} kills, Postgres",
        "each due time fired once or reported missed",
        counted,
    )
    assert (counted.doubled, counted.lost, counted.invented) == (0, 0, 0), counted
    assert counted.fired > counted.due / 2, counted


@pytest.mark.scoreboard
@pytest.mark.timeout(600)
async def test_control_without_the_lock_due_times_are_fired_twice(
    crew: Crew, count: Count, record_score: RecordScore
) -> None:
    hired = [new_worker(crew.database, fenced=False, script=UNLOCKED) for _ in range(3)]
    crew.workers += hired
    await asyncio.gather(*(asyncio.to_thread(worker.start) for worker in hired))
    made = await make(crew, 40, every=5, seconds=count(full=40, quick=12))
    await until(lambda: all_over(crew.store), "some crons do not end", patience=PATIENCE)  # type: ignore[arg-type]
    counted = await tally(crew.store, made)  # type: ignore[arg-type]
    record_score("40 crons over three processes without the lock (the control)", "more than 0 doubled", counted)
    assert counted.doubled > 0, counted


@pytest.mark.scoreboard
@pytest.mark.timeout(1800)
async def test_due_times_of_a_killed_server_are_fired_once_or_reported(
    folder: Path, count: Count, record_score: RecordScore
) -> None:
    """On SQLite one process fires; while it is away, due times are missed, and reported."""
    kills, seconds = count(full=20, quick=2), count(full=180, quick=15)
    database = f"sqlite:///{folder}/assent.db"
    server: ServerProcess = dev_server(database)
    await asyncio.to_thread(server.start)
    try:
        made = await _made_over_http(server, count(full=100, quick=20), seconds=seconds)
        dice = random.Random(7)
        for _ in range(kills):
            await asyncio.sleep(dice.uniform(0.2, 1.8) * seconds / kills / 3)  # as above
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
        async with opened(database) as store:
            await until(lambda: all_over(store), "some crons do not end", patience=seconds + PATIENCE)
            counted = await tally(store, made)
    finally:
        await asyncio.to_thread(server.kill)
    record_score(
        f"{len(made)} crons of one process with {kills} kills, SQLite",
        "each due time fired once or reported missed",
        counted,
    )
    assert (counted.doubled, counted.lost, counted.invented) == (0, 0, 0), counted
    assert counted.fired > 0


async def _made_over_http(server: ServerProcess, number: int, *, seconds: float) -> list[str]:
    made = []
    async with httpx.AsyncClient(base_url=server.url, timeout=30) as http:
        for index in range(number):
            end = datetime.now().astimezone() + timedelta(seconds=seconds)
            body = {
                "assistant_id": "echo",
                "schedule": schedule(index, 5),
                "end_time": end.isoformat(),
                "on_run_completed": "keep",
                "input": {"text": "t"},
            }
            response = await http.post("/runs/crons", json=body)
            assert response.status_code == 200, response.text
            made.append(response.json()["cron_id"])
    return made
