"""The queue of many processes: jobs of Procrastinate, deferred in the very transactions that make it a run's turn.

Order and fencing are our rows'. A job only says "look at this run": `runs.begin` decides whether it is its turn, so a
job too many does no harm, and one too few is found by `rescue.py`. Any process on the same Postgres may defer and
cancel; those that were given something to execute with also work.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import psycopg
from procrastinate import JobContext, PsycopgConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job
from procrastinate.worker import Worker

from assent.domain.runs import Run
from assent.engine.attempts import Attempts, Execute, patiently
from assent.engine.queues.heartbeat import BEAT_SECONDS, Heartbeat
from assent.engine.queues.jobs import QUEUE, SCHEMA, install, new_app
from assent.engine.queues.rescue import Remind, Rescue
from assent.errors import Unavailable
from assent.ports import Store
from assent.store import runs
from assent.store.transaction import Handover, Tx

log = logging.getLogger(__name__)

_RUN, _WAKE = "run", "wake"
_HELD = f"SELECT 1 FROM {SCHEMA}.procrastinate_jobs WHERE id = %s AND status = 'doing' FOR KEY SHARE"  # noqa: S608
_EXECUTED_BY = "SELECT id FROM procrastinate_jobs WHERE status = 'doing' AND args->>'run_id' = %(run_id)s"


class ProcrastinateQueue:
    places = None  # whichever worker takes a run begins it

    def __init__(
        self,
        store: Store,
        execute: Execute | None,
        *,
        url: str,
        concurrency: int,
        remind: Remind,
        patience: float = 10,
    ) -> None:
        """Without `execute` this process only hands over and cancels. `patience` is for how many seconds a stop lets
        runs go on."""
        self._store = store
        self._url = url
        self._attempts = Attempts(store, execute) if execute else None
        self._concurrency = concurrency
        self._patience = patience
        self._remind = remind
        self._closing = asyncio.Event()
        self._app = new_app(url, self._closing)
        self._app.task(name=_RUN, pass_context=True)(self._run)
        self._app.task(name=_WAKE)(self._wake)
        self._worker: Worker | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self.active = 0

    async def open(self) -> None:
        await install(self._url)
        await self._app.open_async()
        self._store.queue = self
        if self._attempts is not None:
            rescue = Rescue(self._store, self._connector, self._app.job_manager, self._remind)
            self._tasks = [asyncio.create_task(self._work(), name="worker")]
            self._tasks += [asyncio.create_task(rescue.run(), name="rescue")]

    async def close(self) -> None:
        """Lets runs come to their end for a while, then hands the rest to other workers."""
        self._closing.set()
        if self._attempts is not None:
            self._attempts.stop()
        if self._worker is not None:
            self._worker.stop()  # type: ignore[no-untyped-call]
        for task in self._tasks[1:]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._store.queue = None
        await self._app.close_async()

    async def defer(self, connection: Any, handovers: Sequence[Handover]) -> None:
        try:
            await connection.execute(f"SET LOCAL search_path TO {SCHEMA}")
            await self._app.job_manager.batch_defer_jobs_async([_job(one) for one in handovers], connection=connection)
        except (ConnectorException, psycopg.OperationalError) as error:
            raise Unavailable(f"the queue cannot be reached: {error.__cause__ or error}") from error

    def take(self, handovers: Sequence[Handover]) -> None:
        """Nothing: they were deferred in their transaction."""

    async def cancel(self, tenant: str, run_id: str) -> None:
        """Wherever it is executed. Where that cannot be said now, the next sweep says it: the wish is in the row."""
        try:
            for job in await self._connector.execute_query_all_async(_EXECUTED_BY, run_id=run_id):
                await self._app.job_manager.cancel_job_by_id_async(job["id"], abort=True)
        except ConnectorException as error:
            log.warning("a run has to be stopped later", extra={"run_id": run_id, "reason": repr(error.__cause__)})

    @property
    def _connector(self) -> PsycopgConnector:
        connector = self._app.connector
        assert isinstance(connector, PsycopgConnector)
        return connector

    async def _work(self) -> None:
        """A worker at a time, for as long as this process is not asked to stop: whatever ended one, the next begins."""
        while not self._closing.is_set():
            worker = self._worker = self._new_worker()
            heartbeat = Heartbeat(self._url, lambda worker=worker: worker.worker_id)  # type: ignore[misc]
            heartbeat.start()
            try:
                await worker.run()  # type: ignore[no-untyped-call]
            except Exception as error:  # noqa: BLE001 - a supervisor outlives whatever it supervises
                log.warning("the worker failed", extra={"reason": repr(error.__cause__ or error)})
            finally:
                heartbeat.stop()
            if not self._closing.is_set():
                log.warning("the worker starts again")
                await asyncio.sleep(BEAT_SECONDS)

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

    async def _run(self, context: JobContext, *, tenant: str, run_id: str) -> None:
        assert self._attempts is not None
        assert context.job.id is not None
        run = await self._attempts.begin(tenant, _begin, run_id, context.job.id)
        if run is None:
            return
        self.active += 1
        try:
            await self._attempts.carry(tenant, run)
        finally:
            self.active -= 1

    async def _wake(self, *, tenant: str, run_id: str) -> None:
        await patiently(lambda: self._store.write(tenant, runs.wake, run_id), stopping=self._closing)


def _begin(tx: Tx, run_id: str, job_id: int) -> Run | None:
    """A job that was taken from a stalled worker starts nothing when that worker wakes up."""
    return runs.begin(tx, run_id) if tx.sql(_HELD, (job_id,)).first() else None


def _job(handover: Handover) -> Job:
    return Job(
        queue=QUEUE,
        lock=None,
        queueing_lock=None,
        task_name=_RUN if handover.wake_at is None else _WAKE,
        task_kwargs={"tenant": handover.tenant, "run_id": handover.run_id},
        scheduled_at=handover.wake_at,
    )
