"""`assent backfill`: items of paused runs that have none, on both databases, repeated, and killed halfway."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from assent.app import load_project, open_backfill, open_services
from assent.kernel.store.tables import TENANT, item_links, item_marks, item_revisions, item_texts, items
from assent.kernel.store.transaction import Tx
from assent.review import thread_items
from assent.review.rows import items as rows
from assent.runs.upkeep.backfill import ItemBackfill
from assent.settings import Settings
from assent.threads.model.runs import RunStatus, Strategy
from assent.threads.model.threads import ThreadStatus
from assent.threads.rows import runs, threads
from assent.threads.rows.state.checkpoints import Attempt
from tests.contract.stores import both_databases

ACME, OTHER = "acme", "other"
REVIEW = {"kind": "workspace_review", "body": "Look"}
KILLED = """
import asyncio, os, signal, sys
from assent.app import load_project, open_backfill
from assent.settings import Settings

settings = Settings(database=sys.argv[1], config="nothing.json")

def on_progress(done, total):
    if done == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    async with open_backfill(settings, load_project(settings)) as backfill:
        await backfill.run(on_progress)

asyncio.run(main())
"""


def pause(tx: Tx, number: int) -> None:
    """A thread that stopped, as an earlier version left it: without an item."""
    thread_id = f"thread-{number:03}"
    threads.insert(tx, thread_id, {"graph_id": "g", "assistant_id": "a"})
    columns = {"assistant_id": "a", "graph_id": "g", "actor": "agent:x", "answers": False, "temporary": False}
    columns |= {"multitask_strategy": Strategy.REJECT, "metadata": {}, "kwargs": {}}
    runs.insert_pending(tx, f"run-{number:03}", thread_id, wake_at=None, webhook=None, **columns)
    run = runs.begin(tx, f"run-{number:03}")
    assert run is not None
    runs.end(tx, Attempt(run.id, run.attempt), RunStatus.SUCCESS, None)
    asked = {"task": [{"id": f"i-{number}", "value": REVIEW if number % 2 else "Which one?"}]}
    state: dict[str, Any] = {"values": {}, "error": None, "next": ["ask"], "interrupts": asked}
    threads.set_state(tx, thread_id, status=ThreadStatus.INTERRUPTED, shown=True, **state)


@asynccontextmanager
async def filling(database: str, *paused: tuple[str, int]) -> AsyncIterator[ItemBackfill]:
    """The command's use case over a database with these paused threads."""
    settings = Settings(database=database, config=Path("nothing.json"))
    async with open_services(settings) as services:
        for tenant, count in paused:
            for number in range(count):
                await services.store.write(tenant, pause, number)
    async with open_backfill(settings, load_project(settings)) as backfill:
        yield backfill


def found(tx: Tx) -> list[tuple[str, str, str | None]]:
    """Thread, type and run of all items, over all tenants."""
    listed = tx.all(items.select().order_by(items.c.tenant_id, items.c.thread_id))
    return [(row.thread_id, row.type, row.run_id) for row in listed]


def silent(done: int, total: int) -> None:
    assert done <= total


@pytest.mark.promise("REVIEW-45")
@both_databases
async def test_paused_runs_get_their_items_once(database: str) -> None:
    async with filling(database, (ACME, 4), (OTHER, 1)) as backfill:
        store = backfill._store
        dry = await backfill.run(silent, dry_run=True)
        assert (dry.threads, dry.created) == (5, 5)
        assert await store.read(None, found) == [], "a dry run writes nothing"
        seen: list[tuple[int, int]] = []
        report = await backfill.run(lambda done, total: seen.append((done, total)), tenant=ACME)
        assert (report.threads, report.created, report.problems) == (4, 4, [])
        assert seen == [(number, 4) for number in (1, 2, 3, 4)]
        kinds = ["question", "workspace_review"] * 2
        expected = [(f"thread-{n:03}", kind, f"run-{n:03}") for n, kind in enumerate(kinds)]
        assert await store.read(None, found) == expected, "only of this tenant"
        reviewed = await store.read(ACME, rows.by_workspace_run, "run-001")
        assert reviewed is not None
        assert reviewed.entity_id == "run-001"
        again = await backfill.run(silent)
        assert (again.threads, again.created) == (5, 1)
        assert (await backfill.run(silent)).created == 0


@pytest.mark.promise("REVIEW-45")
@both_databases
async def test_lost_rows_are_created_again_and_others_stay(database: str) -> None:
    async with filling(database, (ACME, 3)) as backfill:
        store = backfill._store
        await backfill.run(silent)

        def lose(tx: Tx) -> str:
            kept, lost = rows.open_of_thread(tx, "thread-000")[0], rows.open_of_thread(tx, "thread-001")[0]
            for table in (item_links, item_marks, item_texts, item_revisions, items):
                tx.change(table.delete().where(table.c.tenant_id == TENANT, table.c.item_id == lost.id))
            return kept.id

        kept = await store.write(ACME, lose)
        assert (await backfill.run(silent)).created == 1
        assert (await store.read(ACME, rows.open_of_thread, "thread-000", lock=False))[0].id == kept


def _killed_after(database: str, number: int) -> int:
    command = [sys.executable, "-c", KILLED, database, str(number)]
    return subprocess.run(command, capture_output=True, timeout=120, check=False).returncode


@pytest.mark.promise("REVIEW-45")
@both_databases
async def test_backfill_killed_halfway_is_completed_by_the_next(database: str) -> None:
    async with filling(database, (ACME, 20)):
        pass
    assert await asyncio.to_thread(_killed_after, database, 7) == -signal.SIGKILL
    async with filling(database) as backfill:
        before = await backfill._store.read(None, found)
        assert 6 <= len(before) <= 7, "it was halfway"
        report = await backfill.run(silent)
        after = await backfill._store.read(None, found)
        assert len(before) + report.created == 20
        assert [thread for thread, _, _ in after] == [f"thread-{number:03}" for number in range(20)]


@both_databases
async def test_threads_that_wait_for_nobody_get_no_item(database: str) -> None:
    async with filling(database, (ACME, 2)) as backfill:
        store = backfill._store

        def move(tx: Tx) -> None:
            run = runs.get(tx, "run-000")
            assert run is not None
            thread_items.supersede_questions(tx, "thread-000", "agent:x")
            columns = {"assistant_id": "a", "graph_id": "g", "actor": "agent:x", "answers": True, "temporary": False}
            columns |= {"multitask_strategy": Strategy.REJECT, "metadata": {}, "kwargs": {}}
            runs.insert_pending(tx, "answer", "thread-001", wake_at=None, webhook=None, **columns)

        await store.write(ACME, move)
        assert (await backfill.run(silent)).created == 0
