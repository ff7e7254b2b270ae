"""Configures Procrastinate to survive an unavailable database, in a separate Postgres schema.

By default its worker ends when a poll fails, stops listening when it cannot reconnect at once, and abandons a job that
it cannot finish. `RetryingJobs` retries instead. The schema holds only data derived from our rows, so a version that
needs other tables replaces it, and `rescue.py` refills it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Iterable

import psycopg
from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager, NotificationCallback
from procrastinate.schema import SchemaManager
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import make_url

from assent.errors import ConfigError
from assent.kernel.store.drivers.pool import DirectPool
from assent.kernel.store.faults import has_no_connection_left

SCHEMA = "assent_queue"
QUEUE = "runs"

_INSTALL_LOCK = 0x6173736E_0001
_HISTORY = (
    "SELECT tgname FROM pg_trigger WHERE tgrelid = 'procrastinate_jobs'::regclass AND tgname LIKE '%\\_events\\_%'"
)
"""The triggers that add a row per change of a job, deleted with the job. The history of a run is in our own rows."""

_MOST_SECONDS_TO_CONNECT = 30.0
_PAUSE = 0.2

log = logging.getLogger(__name__)


def conninfo(url: str) -> str:
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def options(url: str) -> str:
    """The options of the URL, Procrastinate's schema, and a timeout that releases the locks of stalled clients."""
    own = conninfo_to_dict(conninfo(url)).get("options") or ""
    return f"{own} -c search_path={SCHEMA} -c idle_in_transaction_session_timeout=3s".strip()


def new_app(url: str, stopping: asyncio.Event, *, connections: int) -> App:
    """Uses at most this many connections; a worker opens one more to listen. Once `stopping` is set there are no more
    retries: the rescue finds the remaining jobs."""
    logging.getLogger("procrastinate").setLevel(logging.WARNING)
    connector = PsycopgConnector(
        conninfo=conninfo(url),
        min_size=1,
        max_size=connections,
        max_idle=10,
        timeout=5,
        kwargs={"options": options(url), "connect_timeout": 5, "application_name": "assent-queue"},
        configure=_without_transactions,
        pool_factory=DirectPool,
    )
    app = App(connector=connector)
    app.job_manager = RetryingJobs(connector, stopping)
    return app


async def _without_transactions(connection: psycopg.AsyncConnection) -> None:
    """Autocommit: all statements are single, so one round trip each instead of three."""
    await connection.set_autocommit(True)


async def install(url: str) -> None:
    """Creates or replaces Procrastinate's tables if their version differs. Other processes wait for the lock."""
    try:
        await _install(url)
    except psycopg.errors.InsufficientPrivilege as error:
        hint = f"GRANT CREATE ON DATABASE … TO its role, or CREATE SCHEMA {SCHEMA} for it"
        raise ConfigError(f"cannot create the queue's tables: {error.diag.message_primary}", hint=hint) from None


async def _install(url: str) -> None:
    schema = SchemaManager.get_schema()
    version = f"procrastinate {hashlib.sha256(schema.encode()).hexdigest()[:16]}"
    async with await _connected(url) as connection:
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", [_INSTALL_LOCK])
        cursor = await connection.execute("SELECT obj_description(to_regnamespace(%s), 'pg_namespace')", [SCHEMA])
        (installed,) = await cursor.fetchone() or (None,)
        await connection.execute(f"SET LOCAL search_path TO {SCHEMA}")
        if installed != version:
            if installed is not None:
                await connection.execute(f"DROP SCHEMA {SCHEMA} CASCADE")
            await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
            await connection.execute(f"COMMENT ON SCHEMA {SCHEMA} IS '{version}'")
            await connection.execute(schema)
        await _keep_no_history(connection)


async def _connected(url: str) -> psycopg.AsyncConnection:
    """Waits until other processes close connections that are idle, if they have all."""
    deadline = time.monotonic() + _MOST_SECONDS_TO_CONNECT
    while True:
        try:
            return await psycopg.AsyncConnection.connect(conninfo(url))
        except psycopg.OperationalError as error:
            if not has_no_connection_left(error) or time.monotonic() > deadline:
                raise
        await asyncio.sleep(_PAUSE)


async def _keep_no_history(connection: psycopg.AsyncConnection) -> None:
    """Changes the tables of an earlier release in place: their jobs may be under way."""
    cursor = await connection.execute(_HISTORY)
    for (trigger,) in await cursor.fetchall():
        await connection.execute(sql.SQL("DROP TRIGGER {} ON procrastinate_jobs").format(sql.Identifier(trigger)))


def is_away(error: ConnectorException) -> bool:
    """Whether the connection failed, rather than the statement."""
    return isinstance(error.__cause__, psycopg.OperationalError)


class RetryingJobs(JobManager):
    def __init__(self, connector: PsycopgConnector, stopping: asyncio.Event) -> None:
        super().__init__(connector)
        self._stopping = stopping

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        try:
            return await super().fetch_job(queues, worker_id)
        except ConnectorException as error:
            if not is_away(error):
                raise
        await asyncio.sleep(_PAUSE)
        return None

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        """Retries while the database is unavailable. Ignores a job that another worker has taken over."""
        while True:
            try:
                return await super().finish_job(job, status, delete_job)
            except ConnectorException as error:
                if self._stopping.is_set() or not is_away(error):
                    return log.debug("finish job skipped", extra={"job": job.id})
            await asyncio.sleep(_PAUSE)

    async def update_heartbeat(self, worker_id: int) -> None:
        """Does nothing: `heartbeat.py` sends it outside the event loop."""

    async def listen_for_jobs(
        self, *, on_notification: NotificationCallback, queues: Iterable[str] | None = None
    ) -> None:
        while True:
            try:
                await super().listen_for_jobs(on_notification=on_notification, queues=queues)
            except (ConnectorException, psycopg.Error) as error:
                log.warning("listen for jobs failed", extra={"reason": repr(error.__cause__ or error)})
            await asyncio.sleep(_PAUSE)
