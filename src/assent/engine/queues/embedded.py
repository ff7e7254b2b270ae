"""The queue of one process: runs start as tasks of its own event loop, right after the commit that made it their turn.

One process per database, held by a file lock, so what is marked running when it opens was left by one that died.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, Any

from assent.engine.attempts import Attempts, Execute
from assent.engine.queues.places import Places
from assent.errors import ConfigError
from assent.ports import Store
from assent.store import runs
from assent.store.transaction import Handover, Tx

log = logging.getLogger(__name__)


class EmbeddedQueue:
    def __init__(
        self, store: Store, execute: Execute, *, lock: Path | None, concurrency: int, patience: float = 10
    ) -> None:
        """`patience` is for how many seconds a stop lets runs go on."""
        self._store = store
        self._patience = patience
        self._attempts = Attempts(store, execute)
        self._lock_path = lock
        self._lock: IO[str] | None = None
        self.places = Places(concurrency)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._cancelled: set[asyncio.Task[None]] = set()
        self._closing = False

    async def open(self) -> None:
        self._lock = _locked(self._lock_path) if self._lock_path else None
        self._store.queue = self
        for tenant, thread_id in await self._store.write(None, _left_behind):
            await self._store.write(tenant, runs.resume, thread_id)

    async def close(self) -> None:
        """Lets runs come to their end for a while, then hands the rest back for the next start."""
        self._closing = True
        self.places.close()
        self._attempts.stop()
        tasks = [*self._tasks.values(), *self._cancelled]
        if tasks:
            await asyncio.wait(tasks, timeout=self._patience)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._store.queue = None
        if self._lock is not None:
            self._lock.close()

    async def defer(self, connection: Any, handovers: Sequence[Handover]) -> None:
        """Nothing: `take` starts them after the commit."""

    def take(self, handovers: Sequence[Handover]) -> None:
        for handover in handovers:
            if not self._closing and (handover.begun or handover.run_id not in self._tasks):
                task = asyncio.create_task(self._carry(handover), name=f"run {handover.run_id}")
                self._tasks[handover.run_id] = task
                task.add_done_callback(partial(self._done, handover.run_id))

    def _done(self, run_id: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(run_id) is task:
            del self._tasks[run_id]
        self._cancelled.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("a run could not be carried to its end", extra={"run_id": run_id}, exc_info=error)

    async def cancel(self, tenant: str, run_id: str) -> None:
        if task := self._tasks.pop(run_id, None):
            self._cancelled.add(task)  # the run itself can be taken again: it may have been given back unbegun
            asyncio.get_running_loop().call_soon(task.cancel)  # after its first step: a run that was begun is seen to

    @property
    def active(self) -> int:
        return len(self._tasks) + len(self._cancelled)

    async def _carry(self, handover: Handover) -> None:
        if handover.wake_at is not None:
            await asyncio.sleep(max((handover.wake_at - datetime.now(UTC)).total_seconds(), 0))
            return await self._wake(handover)
        if handover.begun is None:
            await self.places.wait()
        try:
            run = handover.begun or await self._attempts.begin(handover.tenant, runs.begin, handover.run_id)
            if run is not None:
                await self._attempts.carry(handover.tenant, run)
        finally:
            self.places.leave()

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
