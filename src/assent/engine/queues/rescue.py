"""Finds what dead workers left, and whatever else nobody is at. One worker at a time looks, twice a second.

A worker whose heart has stopped loses its jobs, and whoever stalls in the middle of a transaction its connection: a
process that was merely stopped would hold its locks for as long as it likes. A thread that has something to do but no
job in the queue is gone on with, whatever the reason: its worker died, a signal was lost, the queue was emptied.
Looking too often does no harm: a job whose run is not due any more ends at once, because `runs.begin` decides.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence

from procrastinate import PsycopgConnector
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager

from assent.engine.queues.jobs import QUEUE, SCHEMA
from assent.ports import Store
from assent.store import runs
from assent.store.checkpoints import Attempt
from assent.store.transaction import Tx

STALLED_SECONDS = 3.0
_SILENT_SECONDS = 2.0  # less, because by then the last heartbeat may be a second older than the silence

_LOCK = 0x6173736E_0002
_TICK = 0.5
_SWEEP_EVERY = 10
_JOBS = (
    "WITH jobs AS MATERIALIZED (SELECT id, task_name, status, abort_requested, "  # noqa: S608 - constants only
    "args->>'tenant' AS tenant_id, args->>'run_id' AS run_id "
    f"FROM {SCHEMA}.procrastinate_jobs WHERE status IN ('todo', 'doing')) "
)
_STRANDED = (
    f"{_JOBS}, carried AS (SELECT runs.tenant_id, runs.thread_id FROM jobs JOIN runs USING (tenant_id, run_id) "  # noqa: S608
    "WHERE task_name = 'run') "
    "SELECT runs.tenant_id, runs.thread_id, runs.run_id, runs.attempt, runs.status FROM runs "
    "JOIN threads USING (tenant_id, thread_id) "
    "WHERE runs.status IN ('pending', 'running') AND runs.wake_at IS NULL "
    "AND (threads.status = 'busy' OR runs.answers OR runs.status = 'running') "
    "AND NOT EXISTS (SELECT 1 FROM carried "
    "WHERE carried.tenant_id = runs.tenant_id AND carried.thread_id = runs.thread_id) "
    "UNION ALL "
    "SELECT runs.tenant_id, runs.thread_id, runs.run_id, runs.attempt, runs.status FROM runs "
    "WHERE runs.status = 'pending' AND runs.wake_at IS NOT NULL "
    "AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.tenant_id = runs.tenant_id AND jobs.run_id = runs.run_id)"
)
_FREE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "  # noqa: S608
    "WHERE datname = current_database() AND usename = current_user AND application_name = 'assent' "
    "AND state <> 'idle' AND wait_event = 'ClientRead' "
    f"AND state_change < clock_timestamp() - interval '{_SILENT_SECONDS} seconds' "
    "AND EXISTS (SELECT 1 FROM pg_locks WHERE pg_locks.pid = pg_stat_activity.pid "
    "AND relation IN ('runs'::regclass, 'threads'::regclass) AND mode IN ('RowShareLock', 'RowExclusiveLock'))"
)
_UNHEARD = (
    f"{_JOBS} SELECT jobs.id FROM jobs JOIN runs USING (tenant_id, run_id) "  # noqa: S608
    "WHERE jobs.status = 'doing' AND NOT jobs.abort_requested "
    "AND runs.status = 'running' AND runs.cancel IS NOT NULL"
)

log = logging.getLogger(__name__)

Remind = Callable[[Sequence[str]], Awaitable[None]]
"""Tells the followers of these runs about an end that their worker may have recorded and not told."""


class Rescue:
    def __init__(self, store: Store, connector: PsycopgConnector, jobs: JobManager, remind: Remind) -> None:
        self._store = store
        self._connector = connector
        self._jobs = jobs
        self._remind = remind
        self._ticks = 0

    async def run(self) -> None:
        while True:
            try:
                await self._tick()
            except Exception as error:  # noqa: BLE001 - nobody else would look: whatever it was, the next try comes
                log.warning("the rescue has to wait", extra={"reason": repr(error.__cause__ or error)})
            await asyncio.sleep(_TICK)

    async def _tick(self) -> None:
        self._ticks += 1
        async with self._connector.pool.connection() as connection, connection.transaction():
            taken = await connection.execute("SELECT pg_try_advisory_xact_lock(%s)", [_LOCK])
            if await taken.fetchone() == (True,):
                stalled = await self._take_stalled()
                if stalled or self._ticks % _SWEEP_EVERY == 1:
                    await self.sweep()
                await self._remind([str(job.task_kwargs["run_id"]) for job in stalled])

    async def _take_stalled(self) -> Sequence[Job]:
        stalled = list(await self._jobs.get_stalled_jobs(queue=QUEUE, seconds_since_heartbeat=STALLED_SECONDS))
        for job in stalled:
            assert job.id is not None
            log.warning("a worker does not answer: its run goes on elsewhere", extra=dict(job.task_kwargs))
            await self._jobs.finish_job_by_id_async(job.id, Status.FAILED, delete_job=True)
        return stalled

    async def sweep(self) -> None:
        """Goes on with threads that nobody is at, and stops runs whose end was asked for unheard."""
        await self._store.read(None, _free)
        for (tenant, thread_id), given_up in (await self._store.read(None, _stranded)).items():
            await self._store.write(tenant, runs.resume, thread_id, given_up)
        for job_id in await self._store.read(None, _unheard):
            await self._jobs.cancel_job_by_id_async(job_id, abort=True)


def _stranded(tx: Tx) -> dict[tuple[str, str], list[Attempt]]:
    """Threads without a job, and those of their runs that are marked as running."""
    found: dict[tuple[str, str], list[Attempt]] = defaultdict(list)
    for row in tx.sql(_STRANDED):
        given_up = found[row.tenant_id, row.thread_id]
        if row.status == "running":
            given_up.append(Attempt(row.run_id, row.attempt))
    return found


def _free(tx: Tx) -> None:
    tx.sql(_FREE)


def _unheard(tx: Tx) -> list[int]:
    return [row.id for row in tx.sql(_UNHEARD)]
