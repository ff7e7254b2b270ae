"""The queue of a single process: runs start as tasks of its event loop, right after the commit that makes them due.

A file lock allows one process per database, so runs marked as running at the start belong to a dead process.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, Any

from assent.errors import ConfigError
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Handover, Tx
from assent.runs.engine.attempts import Attempts, Execute, Holds
from assent.runs.queues.places import Places
from assent.threads.model.runs import Run
from assent.threads.rows import runs

log = logging.getLogger(__name__)


class EmbeddedQueue:
    def __init__(
        self,
        store: Store,
        execute: Execute,
        *,
        lock: Path | None,
        concurrency: int,
        patience: float = 10,
        holds: Holds = lambda graph_id: False,
        prepare: Callable[[Tx, Run], Any] = lambda tx, run: None,
    ) -> None:
        """`patience`: seconds that runs may continue during a stop. `prepare`: reads what a run begins with."""
        self._store = store
        self._patience = patience
        self._attempts = Attempts(store, execute, holds)
        self._lock_path = lock
        self._lock: IO[str] | None = None
        self.places = Places(concurrency, prepare)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._cancelled: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Event()

    async def open(self) -> None:
        self._lock = _locked(self._lock_path) if self._lock_path else None
        self._store.queue = self
        for tenant, thread_id in await self._store.write(None, _left_behind):
            await self._store.write(tenant, runs.resume, thread_id)

    async def close(self) -> None:
        """Waits for runs to end, then returns the rest to the queue for the next start."""
        self._closing.set()
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
        """Does nothing: `take` starts the runs after the commit."""

    def take(self, handovers: Sequence[Handover]) -> None:
        for handover in handovers:
            if not self._closing.is_set() and (handover.begun or handover.run_id not in self._tasks):
                task = asyncio.create_task(self._run(handover), name=f"run {handover.run_id}")
                self._tasks[handover.run_id] = task
                task.add_done_callback(partial(self._done, handover.run_id))

    def _done(self, run_id: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(run_id) is task:
            del self._tasks[run_id]
        self._cancelled.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("run task failed", extra={"run_id": run_id}, exc_info=error)

    async def cancel(self, tenant: str, run_id: str) -> None:
        if task := self._tasks.pop(run_id, None):
            self._cancelled.add(task)  # allows `take` to start the run again, if it was returned unbegun
            asyncio.get_running_loop().call_soon(
                task.cancel
            )  # after the task's first step, so that a begun run is handled

    @property
    def active(self) -> int:
        return len(self._tasks) + len(self._cancelled)

    async def _run(self, handover: Handover) -> None:
        if handover.wake_at is not None:
            return await self._wake_at(handover.wake_at, handover)
        if handover.begun is None:
            await self._place_for(handover)
        try:
            run = handover.begun or await self._attempts.begin(handover.tenant, runs.begin, handover.run_id)
            held = run if run and self._attempts.is_held(run) else None
            if run is not None and held is None:
                await self._attempts.execute(handover.tenant, run)
        finally:
            self.places.leave()
        if held is not None:
            await self._attempts.hold(handover.tenant, held)

    async def _place_for(self, handover: Handover) -> None:
        """Waits for a slot. A run that is cancelled meanwhile is taken again: if an earlier attempt has begun it, only
        the next one can end it."""
        try:
            await self.places.wait(handover.turn)
        except asyncio.CancelledError:
            self.take([handover])
            raise

    async def _wake_at(self, time: datetime, handover: Handover) -> None:
        """A stop ends the wait: the next start schedules the run again."""
        try:
            async with asyncio.timeout((time - datetime.now(UTC)).total_seconds()):
                await self._closing.wait()
        except TimeoutError:
            await self._wake(handover)

    async def _wake(self, handover: Handover) -> None:
        if task := self._tasks.pop(handover.run_id, None):  # allows `take` to start the run
            self._cancelled.add(task)
        await self._attempts.wake(handover.tenant, handover.run_id)


def _locked(path: Path) -> IO[str]:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600)
    held = path.open("w")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        held.close()
        raise ConfigError(
            "another Assent server executes runs on this database", hint="stop it, or use Postgres for several servers"
        ) from None
    return held


def _left_behind(tx: Tx) -> list[tuple[str, str]]:
    """Threads with runs to continue. Reschedules delayed runs."""
    recovered = runs.recover(tx)
    return list(dict.fromkeys((tenant, thread_id) for tenant, thread_id, _, _ in recovered))
