"""Histories in parts have the bytes of those in LangGraph's own SQLite saver, on both databases.

Every history goes to three savers at once: LangGraph's, ours on SQLite and ours on Postgres. The graph reads from one
of ours. In the end every checkpoint and every write of every saver is compared, also in a copy of the thread and after
its history was removed.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from assent.kernel.store import migrations
from assent.kernel.store.tables import runs
from assent.kernel.store.transaction import Tx
from assent.runs.checkpoints import values
from assent.runs.checkpoints.saver import SCOPE, Scope, StoreSaver
from assent.threads.rows import threads
from assent.threads.rows.state import thread_storage
from assent.threads.rows.state.checkpoints import Attempt
from tests.contract.histories import SERDE, TENANT, graph, steps, stored
from tests.contract.stores import AnyStore, migrated_database, opened
from tests.postgres import Cluster
from tests.scoreboard import Count, RecordScore

MEASURES = {
    number: f"histories stored by LangGraph's SQLite saver and by ours on both databases, runs read from {name}"
    for number, name in ((1, "SQLite"), (2, "Postgres"))
}


class Three(BaseCheckpointSaver[int]):
    """Writes to all savers and reads from one. The first saver is LangGraph's. Each has its own attempt."""

    def __init__(self, savers: Sequence[BaseCheckpointSaver[Any]], reads: int) -> None:
        super().__init__(serde=SERDE)
        self.savers, self._reads = savers, reads

    def begin_attempt(self, run_id: str) -> None:
        self._scopes = [Scope(TENANT, Attempt(run_id, 1)) for _ in self.savers]

    def _of(self, number: int, config: Any) -> Any:
        return {**config, "configurable": {**config["configurable"], SCOPE: self._scopes[number]}}

    async def aget_tuple(self, config: Any) -> CheckpointTuple | None:
        return await self.savers[self._reads].aget_tuple(self._of(self._reads, config))

    async def alist(self, config: Any, **options: Any) -> AsyncIterator[CheckpointTuple]:
        async for found in self.savers[self._reads].alist(self._of(self._reads, config), **options):
            yield found

    async def aput(self, config: Any, *stored: Any) -> Any:
        return [await saver.aput(self._of(n, config), *stored) for n, saver in enumerate(self.savers)][-1]

    async def aput_writes(self, config: Any, *writes: Any) -> None:
        for number, saver in enumerate(self.savers):
            await saver.aput_writes(self._of(number, config), *writes)


def begin(tx: Tx, thread_id: str, run_id: str) -> None:
    """A thread with a run under way, so that attempts remember what they have stored."""
    threads.insert(tx, thread_id, {})
    facts = {"assistant_id": "a", "graph_id": "g", "status": "running", "position": 1, "attempt": 1, "answers": False}
    facts |= {
        "temporary": False,
        "multitask_strategy": "reject",
        "metadata": {},
        "kwargs": {},
        "created_at": tx.now(),
        "updated_at": tx.now(),
    }
    tx.insert(runs, run_id=run_id, thread_id=thread_id, **facts)


def end(tx: Tx, run_id: str) -> None:
    tx.sql(f"UPDATE runs SET status = 'success' WHERE tenant_id = '{tx.tenant}' AND run_id = '{run_id}'")


async def play(saver: Three, thread_id: str, run_id: str, history: Sequence[Any]) -> None:
    app = graph(saver)
    for number, (begins, how, place, value) in enumerate(history):
        saver.begin_attempt(run_id)
        here: Any = {"configurable": {"thread_id": thread_id}}
        said = {"act": (how, place, value), "messages": [HumanMessage(f"turn {number} " * 20, id=f"turn {number}")]}
        past = [state async for state in app.aget_state_history(here)] if begins == "fork" else []
        at = past[place % len(past)].config["configurable"] if past else {}
        config = {"configurable": {**here["configurable"], "checkpoint_ns": "", **at}}
        if begins == "update":
            await app.aupdate_state(config, said, as_node="act")
            continue
        asks = not past and bool((await app.aget_state(config)).interrupts)
        await app.ainvoke(Command(resume=[value]) if asks else said, config, durability="sync")


async def compare(saver: Three, stores: Sequence[AnyStore], history: Sequence[Any]) -> int:
    """Plays a history and returns the number of its checkpoints that differ."""
    thread_id, run_id, copy = uuid.uuid4().hex, uuid.uuid4().hex, uuid.uuid4().hex
    for store in stores:
        await store.write(TENANT, begin, thread_id, run_id)
    await play(saver, thread_id, run_id, history)
    expected, *ours = [await stored(each, thread_id) for each in saver.savers]
    differences = sum(different(expected, each) for each in ours)
    for store, own in zip(stores, saver.savers[1:], strict=True):
        await store.write(TENANT, end, run_id)
        await store.write(TENANT, thread_storage.copy_checkpoints, thread_id, copy)
        differences += different(expected, await stored(own, copy))
        await store.write(TENANT, thread_storage.keep_latest, thread_id)
        kept = await stored(own, thread_id)
        newest = {key: value for key, value in expected.items() if key in kept}
        differences += len(newest) != len(kept) or any(states(newest[key]) != states(kept[key]) for key in kept)
        differences += different(expected, await stored(own, copy))
        for gone in (thread_id, copy):
            await store.write(TENANT, threads.remove, gone)
    return differences


def different(expected: dict[str, Any], found: dict[str, Any]) -> int:
    return sum(expected.get(key) != found.get(key) for key in expected.keys() | found.keys())


def states(whole: Any) -> Any:
    """Without the parent, which was removed."""
    checkpoint, facts, _, writes = SERDE.loads_typed(whole)
    return SERDE.dumps_typed([checkpoint, facts, writes])


@pytest.mark.scoreboard
@pytest.mark.parametrize("reads", [1, 2], ids=["reading SQLite", "reading Postgres"])
def test_histories_have_the_bytes_of_langgraphs_own_saver(
    reads: int,
    postgres: Cluster,
    folder: Path,
    count: Count,
    record_score: RecordScore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(values, "AT_ONCE", 3)  # or no list were long enough for more than one group
    total, played, differences = count(full=1000, quick=12), 0, 0

    async def prepare(stack: AsyncExitStack) -> tuple[list[AnyStore], AsyncSqliteSaver]:
        url = f"sqlite:///{folder}/ours.db"
        migrations.upgrade(url)
        urls = [url, stack.enter_context(migrated_database(postgres))]
        stores = [await stack.enter_async_context(opened(url)) for url in urls]
        theirs = await stack.enter_async_context(AsyncSqliteSaver.from_conn_string(f"{folder}/theirs.db"))
        theirs.serde = SERDE
        return stores, theirs

    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        stores, theirs = runner.run(prepare(stack))
        ours = [StoreSaver(store, serde=SERDE) for store in stores]

        @settings(max_examples=total, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        @given(st.lists(steps, min_size=1, max_size=6))
        def play_one(history: list[Any]) -> None:
            nonlocal played, differences
            found = runner.run(compare(Three([theirs, *ours], reads), stores, history))
            played, differences = played + 1, differences + found
            assert not found

        try:
            play_one()
        finally:
            runner.run(stack.aclose())
            result = f"{played} histories, {differences} differences"
            record_score(MEASURES[reads], "≥ 1,000 histories, 0 differences", result)
