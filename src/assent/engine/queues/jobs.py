"""Procrastinate, set up to live through a database that is away, in a Postgres schema of its own.

As shipped, its worker ends when a poll meets a database that restarts, stops listening for good when it cannot
reconnect at once, and gives up a job it cannot sign off. `PatientJobs` waits instead. The schema holds nothing that
our own rows do not say as well, so a version that needs other tables simply replaces it: `rescue.py` fills it again.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Iterable

import psycopg
from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager, NotificationCallback
from procrastinate.schema import SchemaManager
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import make_url

from assent.errors import ConfigError

SCHEMA = "assent_queue"
QUEUE = "runs"

_INSTALL_LOCK = 0x6173736E_0001
_PAUSE = 0.2

log = logging.getLogger(__name__)


def conninfo(url: str) -> str:
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def options(url: str) -> str:
    """Those of the address itself, the schema in which Procrastinate finds its tables, and no locks of the stalled."""
    given = conninfo_to_dict(conninfo(url)).get("options") or ""
    return f"{given} -c search_path={SCHEMA} -c idle_in_transaction_session_timeout=3s".strip()


def new_app(url: str, stopping: asyncio.Event) -> App:
    """Once `stopping` is set nothing waits for the database any more: what is left undone will be found."""
    logging.getLogger("procrastinate").setLevel(logging.WARNING)
    connector = PsycopgConnector(
        conninfo=conninfo(url),
        min_size=1,
        max_size=8,
        timeout=5,
        reconnect_timeout=1,  # a pool that waits longer between its tries finds a restarted database too late
        kwargs={"options": options(url), "connect_timeout": 5},
        configure=_without_transactions,
    )
    app = App(connector=connector)
    app.job_manager = PatientJobs(connector, stopping)
    return app


async def _without_transactions(connection: psycopg.AsyncConnection) -> None:
    """All that is asked there is single statements: one way to the database each instead of three."""
    await connection.set_autocommit(True)


async def install(url: str) -> None:
    """Makes Procrastinate's tables, where they are not there or not of this version. One process does, others wait."""
    try:
        await _install(url)
    except psycopg.errors.InsufficientPrivilege as error:
        hint = f"GRANT CREATE ON DATABASE … TO its role, or CREATE SCHEMA {SCHEMA} for it"
        raise ConfigError(f"the queue's tables cannot be made: {error.diag.message_primary}", hint=hint) from None


async def _install(url: str) -> None:
    schema = SchemaManager.get_schema()
    version = f"procrastinate {hashlib.sha256(schema.encode()).hexdigest()[:16]}"
    async with await psycopg.AsyncConnection.connect(conninfo(url)) as connection:
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", [_INSTALL_LOCK])
        found = await connection.execute("SELECT obj_description(to_regnamespace(%s), 'pg_namespace')", [SCHEMA])
        (found_version,) = await found.fetchone() or (None,)
        if found_version == version:
            return
        if found_version is not None:
            await connection.execute(f"DROP SCHEMA {SCHEMA} CASCADE")
        await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        await connection.execute(f"COMMENT ON SCHEMA {SCHEMA} IS '{version}'")
        await connection.execute(f"SET LOCAL search_path TO {SCHEMA}")
        await connection.execute(schema)


def is_away(error: ConnectorException) -> bool:
    """Whether it was the way to the database that failed, rather than what was asked of it."""
    return isinstance(error.__cause__, psycopg.OperationalError)


class PatientJobs(JobManager):
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
        """A job that was taken from this worker meanwhile is not its to finish any more."""
        while True:
            try:
                return await super().finish_job(job, status, delete_job)
            except ConnectorException as error:
                if self._stopping.is_set() or not is_away(error):
                    return log.debug("a job is left to others", extra={"job": job.id})
            await asyncio.sleep(_PAUSE)

    async def update_heartbeat(self, worker_id: int) -> None:
        """Left to `heartbeat.py`: the event loop is no place to prove that a process is alive."""

    async def listen_for_jobs(
        self, *, on_notification: NotificationCallback, queues: Iterable[str] | None = None
    ) -> None:
        while True:
            try:
                await super().listen_for_jobs(on_notification=on_notification, queues=queues)
            except (ConnectorException, psycopg.Error) as error:
                log.warning("the queue's notifications have to wait", extra={"reason": repr(error.__cause__ or error)})
            await asyncio.sleep(_PAUSE)
