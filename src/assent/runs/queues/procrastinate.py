"""The queue of several processes: Procrastinate jobs, deferred in the transactions that make runs due.

Our rows determine order and fencing. A job only names a run, and `runs.begin` decides whether the run is due, so a
surplus job has no effect, and `rescue.py` replaces a missing one. Any process on the same Postgres may defer and
cancel; those with an `execute` function also work.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

import psycopg
from procrastinate import JobContext, PsycopgConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job
from procrastinate.worker import Worker

from assent.errors import Unavailable
from assent.kernel.background import Repeating, every
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Handover, Tx
from assent.runs.engine.attempts import Attempts, Execute, Holds, retry_while_unavailable
from assent.runs.queues.heartbeat import BEAT_SECONDS, Heartbeat
from assent.runs.queues.jobs import QUEUE, SCHEMA, install, new_app
from assent.runs.queues.rescue import Remind, Rescue
from assent.threads.model.runs import Run
from assent.threads.rows import runs

log = logging.getLogger(__name__)

_RUN, _WAKE = "run", "wake"
_HELD = f"SELECT 1 FROM {SCHEMA}.procrastinate_jobs WHERE id = %s AND status = 'doing' FOR KEY SHARE"  # noqa: S608
_WAITING = f"""
SELECT set_config('search_path', %s, true), (
    SELECT count(*) FROM {SCHEMA}.procrastinate_jobs WHERE status = 'todo' AND args->>'turn' = %s
)
"""  # noqa: S608
_MOST_AHEAD = 10_000
_EXECUTED_BY = "SELECT id FROM procrastinate_jobs WHERE status = 'doing' AND args->>'run_id' = %(run_id)s"


class ProcrastinateQueue:
    places = None  # the worker that takes a job begins its run

    def __init__(
        self,
        store: Store,
        execute: Execute | None,
        *,
        url: str,
        concurrency: int,
        remind: Remind,
        patience: float = 10,
        connections: int = 4,
        holds: Holds = lambda graph_id: False,
    ) -> None:
        """Without `execute`, this process only defers and cancels. `patience`: seconds that runs may continue during a
        stop. A process that executes runs listens with one of the `connections`, and opens one more for its
        heartbeat."""
        self._store = store
        self._url = url
        self._attempts = Attempts(store, execute, holds) if execute else None
        self._concurrency = concurrency
        self._patience = patience
        self._remind = remind
        self._closing = asyncio.Event()
        self._app = new_app(url, self._closing, connections=connections - 1 if execute else connections)
        self._app.task(name=_RUN, pass_context=True)(self._run)
        self._app.task(name=_WAKE)(self._wake)
        self._worker: Worker | None = None
        self._working = Repeating("worker", every(BEAT_SECONDS, self._work), longest_retry=BEAT_SECONDS)
        self._rescue: Rescue | None = None
        self.active = 0

    async def open(self) -> None:
        try:
            await install(self._url)
            await self._app.open_async()
        except (ConnectorException, psycopg.OperationalError) as error:
            raise Unavailable(f"cannot reach the queue: {error.__cause__ or error}") from error
        self._store.queue = self
        if self._attempts is not None:
            self._rescue = Rescue(self._store, self._connector, self._app.job_manager, self._remind)
            self._working.start()
            self._rescue.looking.start()

    async def close(self) -> None:
        """Waits for runs to end, then returns the rest to the queue for other workers."""
        self._closing.set()
        if self._attempts is not None:
            self._attempts.stop()
        if self._worker is not None:
            self._worker.stop()  # type: ignore[no-untyped-call]
        if self._rescue is not None:
            await self._rescue.looking.stop()
        await self._working.finish()
        self._store.queue = None
        await self._app.close_async()

    async def defer(self, connection: Any, handovers: Sequence[Handover]) -> None:
        try:
            ahead = Counter({handover.turn: await _waiting(connection, handover.turn) for handover in handovers})
            jobs = []
            for handover in handovers:
                jobs.append(_job(handover, ahead[handover.turn]))
                ahead[handover.turn] += 1
            await self._app.job_manager.batch_defer_jobs_async(jobs, connection=connection)
        except (ConnectorException, psycopg.OperationalError) as error:
            raise Unavailable(f"cannot reach the queue: {error.__cause__ or error}") from error

    def take(self, handovers: Sequence[Handover]) -> None:
        """Does nothing: the jobs were deferred in their transaction."""

    async def cancel(self, tenant: str, run_id: str) -> None:
        """Aborts the run's job on any worker. If that fails, the next sweep does it, because the row has the
        request."""
        try:
            for job in await self._connector.execute_query_all_async(_EXECUTED_BY, run_id=run_id):
                await self._app.job_manager.cancel_job_by_id_async(job["id"], abort=True)
        except ConnectorException as error:
            log.warning(
                "cancel run failed, the next sweep retries", extra={"run_id": run_id, "reason": repr(error.__cause__)}
            )

    @property
    def _connector(self) -> PsycopgConnector:
        connector = self._app.connector
        assert isinstance(connector, PsycopgConnector)
        return connector

    async def _work(self) -> None:
        """Runs one worker until it ends. The loop starts another one unless this process is stopping."""
        worker = self._worker = self._new_worker()
        heartbeat = Heartbeat(self._url, lambda: worker.worker_id)
        heartbeat.start()
        try:
            await worker.run()  # type: ignore[no-untyped-call]
        finally:
            heartbeat.stop()
        if not self._closing.is_set():
            log.warning("worker ended, starting another one")

    def _new_worker(self) -> Worker:
        return Worker(
            self._app,
            queues=[QUEUE],
            name="assent",
            concurrency=self._concurrency,
            fetch_job_polling_interval=0.2,
            abort_job_polling_interval=2,
            update_heartbeat_interval=3600,
            stalled_worker_timeout=30,
            delete_jobs="always",
            install_signal_handlers=False,
            shutdown_graceful_timeout=self._patience,
        )

    async def _run(self, context: JobContext, *, tenant: str, run_id: str, turn: str = "") -> None:
        assert self._attempts is not None
        assert context.job.id is not None
        run = await self._attempts.begin(tenant, _begin, run_id, context.job.id)
        if run is None:
            return
        if self._attempts.is_held(run):
            return await self._attempts.hold(tenant, run)
        self.active += 1
        try:
            await self._attempts.execute(tenant, run)
        finally:
            self.active -= 1

    async def _wake(self, *, tenant: str, run_id: str, turn: str = "") -> None:
        await retry_while_unavailable(lambda: self._store.write(tenant, runs.wake, run_id), stopping=self._closing)


def _begin(tx: Tx, run_id: str, job_id: int) -> Run | None:
    """Begins the run only if this worker still holds the job, and not after a stall."""
    return runs.begin(tx, run_id) if tx.sql(_HELD, (job_id,)).first() else None


async def _waiting(connection: psycopg.AsyncConnection[Any], turn: str) -> int:
    """The number of an actor's waiting jobs. Also sets the search path for Procrastinate's own statements."""
    waiting = await (await connection.execute(_WAITING, (SCHEMA, turn))).fetchone()
    return waiting[1] if waiting else 0


def _job(handover: Handover, ahead: int) -> Job:
    """Schedules round-robin by actor: the priority falls with the actor's jobs ahead. Answers come first."""
    return Job(
        queue=QUEUE,
        lock=None,
        queueing_lock=None,
        task_name=_RUN if handover.wake_at is None else _WAKE,
        task_kwargs={"tenant": handover.tenant, "run_id": handover.run_id, "turn": handover.turn},
        priority=-min(ahead, _MOST_AHEAD) if handover.turn else 1,
        scheduled_at=handover.wake_at,
    )
