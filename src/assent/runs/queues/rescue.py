"""Rescues runs of dead workers and other runs without a job. One worker at a time checks, twice a second.

A worker without a heartbeat loses its jobs, and a client that stalls inside a transaction loses its connection, since a
suspended process would hold its locks. A thread with a due run but no job gets a new job, whether its worker died, a
notice was lost or the queue was emptied. A surplus job is harmless: `runs.begin` decides whether its run is due.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence

from procrastinate import PsycopgConnector
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager

from assent.kernel.background import Repeating, each, every
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.runs.queues.jobs import QUEUE, SCHEMA
from assent.threads.rows import runs
from assent.threads.rows.state.checkpoints import Attempt

STALLED_SECONDS = 3.0
_SILENT_SECONDS = 2.0  # less, because the last heartbeat may be a second older than the last statement

_LOCK = 0x6173736E_0002
_TICK = 0.5
_LONGEST_RETRY = 2.0
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
_UNCANCELLED = (
    f"{_JOBS} SELECT jobs.id FROM jobs JOIN runs USING (tenant_id, run_id) "  # noqa: S608
    "WHERE jobs.status = 'doing' AND NOT jobs.abort_requested "
    "AND runs.status = 'running' AND runs.cancel IS NOT NULL"
)

log = logging.getLogger(__name__)

Remind = Callable[[Sequence[str]], Awaitable[None]]
"""Notifies the followers of these runs of an end that their worker may have recorded but not announced."""


class Rescue:
    def __init__(self, store: Store, connector: PsycopgConnector, jobs: JobManager, remind: Remind) -> None:
        self._store = store
        self._connector = connector
        self._jobs = jobs
        self._remind = remind
        self._ticks = 0
        self.looking = Repeating("rescue", every(_TICK, self._tick), longest_retry=_LONGEST_RETRY)

    async def _tick(self) -> None:
        self._ticks += 1
        async with self._connector.pool.connection() as connection, connection.transaction():
            lock = await connection.execute("SELECT pg_try_advisory_xact_lock(%s)", [_LOCK])
            if await lock.fetchone() == (True,):
                stalled = await self._take_stalled()
                if stalled or self._ticks % _SWEEP_EVERY == 1:
                    await self.sweep()
                await self._remind([str(job.task_kwargs["run_id"]) for job in stalled])

    async def _take_stalled(self) -> Sequence[Job]:
        stalled = list(await self._jobs.get_stalled_jobs(queue=QUEUE, seconds_since_heartbeat=STALLED_SECONDS))
        for job in stalled:
            assert job.id is not None
            log.warning("worker heartbeat expired, requeueing its run", extra=dict(job.task_kwargs))
            await self._jobs.finish_job_by_id_async(job.id, Status.FAILED, delete_job=True)
        return stalled

    async def sweep(self) -> None:
        """Requeues threads without a job, and aborts running runs that were cancelled."""
        await self._store.read(None, _free)
        stranded = await self._store.read(None, _stranded)
        await each("rescue", stranded.items(), self._resume)
        for job_id in await self._store.read(None, _uncancelled):
            await self._jobs.cancel_job_by_id_async(job_id, abort=True)

    async def _resume(self, stranded: tuple[tuple[str, str], Sequence[Attempt]]) -> None:
        (tenant, thread_id), given_up = stranded
        await self._store.write(tenant, runs.resume, thread_id, given_up, lost=True)


def _stranded(tx: Tx) -> dict[tuple[str, str], list[Attempt]]:
    """Threads without a job, with their runs that are marked as running."""
    stranded: dict[tuple[str, str], list[Attempt]] = defaultdict(list)
    for row in tx.sql(_STRANDED):
        given_up = stranded[row.tenant_id, row.thread_id]
        if row.status == "running":
            given_up.append(Attempt(row.run_id, row.attempt))
    return stranded


def _free(tx: Tx) -> None:
    tx.sql(_FREE)


def _uncancelled(tx: Tx) -> list[int]:
    return [row.id for row in tx.sql(_UNCANCELLED)]
