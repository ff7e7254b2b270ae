"""The queue of one process: runs start as tasks of its own event loop, right after the commit that made it their turn.

One process per database, held by a file lock, so what is marked running when it opens was left by one that died.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO

from assent.domain.runs import Run
from assent.errors import ConfigError
from assent.ports import Store
from assent.store import runs, threads
from assent.store.transaction import Handover, Tx

log = logging.getLogger(__name__)

Execute = Callable[[str, Run], Awaitable[None]]


class EmbeddedQueue:
    def __init__(self, store: Store, execute: Execute, *, lock: Path | None, concurrency: int) -> None:
        self._store = store
        self._execute = execute
        self._lock_path = lock
        self._lock: IO[str] | None = None
        self._slots = asyncio.Semaphore(concurrency)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._closing = False

    async def open(self) -> None:
        self._lock = _locked(self._lock_path) if self._lock_path else None
        self._store.queue = self
        for tenant, thread_id in await self._store.write(None, _left_behind):
            await self._store.write(tenant, _resume_thread, thread_id)

    async def close(self, *, patience: float = 10.0) -> None:
        """Lets runs come to their end for a while, then hands the rest back for the next start."""
        self._closing = True
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=patience)
        for task in list(self._tasks.values()):
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._store.queue = None
        if self._lock is not None:
            self._lock.close()

    def take(self, handovers: Sequence[Handover]) -> None:
        for handover in handovers:
            if not self._closing and handover.run_id not in self._tasks:
                task = asyncio.create_task(self._carry(handover), name=f"run {handover.run_id}")
                self._tasks[handover.run_id] = task
                task.add_done_callback(partial(self._done, handover.run_id))

    def _done(self, run_id: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(run_id) is task:
            del self._tasks[run_id]
        if not task.cancelled() and (error := task.exception()):
            log.error("a run could not be carried to its end", extra={"run_id": run_id}, exc_info=error)

    def cancel(self, tenant: str, run_id: str) -> None:
        if task := self._tasks.get(run_id):
            task.cancel()

    @property
    def active(self) -> int:
        return len(self._tasks)

    async def _carry(self, handover: Handover) -> None:
        if handover.wake_at is not None:
            await asyncio.sleep(max((handover.wake_at - datetime.now(UTC)).total_seconds(), 0))
            return await self._wake(handover)
        async with self._slots:
            run = await self._store.write(handover.tenant, runs.begin, handover.run_id)
            if run is not None:
                await self._execute(handover.tenant, run)

    async def _wake(self, handover: Handover) -> None:
        self._tasks.pop(handover.run_id, None)  # so that the run itself can be taken
        await self._store.write(handover.tenant, runs.wake, handover.run_id)


def _locked(path: Path) -> IO[str]:
    path.parent.mkdir(parents=True, exist_ok=True)
    held = path.open("w")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        held.close()
        raise ConfigError(
            "another Assent server executes runs on this database", hint="stop it, or use Postgres for several"
        ) from None
    return held


def _left_behind(tx: Tx) -> list[tuple[str, str]]:
    """Threads with runs to go on with; delayed runs are timed again."""
    found = runs.recover(tx)
    return list(dict.fromkeys((tenant, thread_id) for tenant, thread_id, _, _ in found))


def _resume_thread(tx: Tx, thread_id: str) -> None:
    thread = threads.lock(tx, thread_id)
    if thread is None:
        return
    for run in runs.active(tx, thread_id):
        if run.wake_at is not None and run.wake_at > tx.now():
            tx.hand_over(run.id, run.wake_at)
    runs.promote(tx, thread_id, waits=thread.waits)
