"""The SQLite executor: one writer thread that commits in groups, and reader threads with their own snapshots.

All functions that are queued during a commit run in the next transaction, a savepoint each, and become durable by one
fsync. A caller gets its result only after that commit. When the group's commit fails, or SQLite rolled the whole
transaction back, every function of the group is run again, alone: functions are re-runnable.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine, NullPool, create_engine, event, make_url
from sqlalchemy.exc import DBAPIError

from assent.errors import StoreBusy, Unavailable
from assent.kernel import jsontext
from assent.kernel.fair_threads import FairThreads, Shares, caller
from assent.kernel.limits import Limits, Usage
from assent.kernel.store import faults, migrations, vectors
from assent.kernel.store.ports import Queue
from assent.kernel.store.transaction import Handover, Marks, Tx, forbid_ending, no_marks, run

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger(__name__)

_LARGEST_GROUP = 256
_MOST_SECONDS = 10.0
"""For one caller's read: a filter over large documents can take minutes."""

_STEPS = 20_000  # of SQLite's virtual machine between two checks of the clock, about a millisecond
_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "temp_store=MEMORY")


class _GroupLost(RuntimeError):
    """SQLite ended the transaction by itself (disk full, I/O error): earlier functions of the group are undone too."""


@dataclass(slots=True)
class _Job:
    tenant: str | None
    run: Callable[[Tx], Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None
    handovers: list[Handover] = field(default_factory=list)
    bells: dict[str, list[Any]] = field(default_factory=dict)
    read_only: bool = False


class SqliteStore:
    def __init__(
        self,
        url: str,
        *,
        readers: int = 3,
        lock_wait: timedelta = timedelta(seconds=5),
        limits: Limits | None = None,
    ) -> None:
        """`lock_wait` is how long a write waits for another writing process before it fails with StoreBusy."""
        self.url = url
        self.clock_offset = timedelta()
        self.queue: Queue | None = None
        self.bells: dict[str, Callable[..., None]] = {}
        self.limits = limits or Limits()
        self.usage = Usage()
        self.marks: Marks = no_marks
        self._file = make_url(url).database
        self._readers = readers
        self._shares = Shares(max(readers - 1, 1))
        self._lock_wait = lock_wait
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._connection: Connection | None = None
        self._closed = True

    @property
    def in_memory(self) -> bool:
        return self._file in (None, "", ":memory:")

    async def open(self) -> None:
        self._engine = _engine(self.url, self._lock_wait)
        await asyncio.to_thread(self._prepare)
        self._writer = threading.Thread(target=self._serve, name="assent-writer", daemon=True)
        self._pool = FairThreads(self._readers, "assent-reader")
        self._local = threading.local()
        self._opened: list[Connection] = []
        self._closed = False
        self._writer.start()

    def _prepare(self) -> None:
        connection = self._connected()
        if self.in_memory:  # migrations cannot open it
            migrations.create_tables(connection)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._jobs.put(None)
        await asyncio.to_thread(self._writer.join)
        await asyncio.to_thread(self._pool.shutdown)
        self._give_up_connection()
        for connection in self._opened:
            connection.close()

    async def write(
        self, tenant: str | None, function: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        result: T = await self._submit(tenant, lambda tx: function(tx, *args, **kwargs), read_only=False)
        return result

    async def read(
        self, tenant: str | None, function: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        if self.in_memory:  # a memory database exists only in the writer's connection
            result: T = await self._submit(tenant, lambda tx: function(tx, *args, **kwargs), read_only=True)
            return result
        if self._closed:
            raise Unavailable("the store is closed")
        seconds = _MOST_SECONDS if caller.get() else None
        call = partial(self._read, tenant, lambda tx: function(tx, *args, **kwargs), seconds)
        return await self._shares.run(lambda: self._pool.submit(call))

    async def backup(self, target: str) -> None:
        await asyncio.to_thread(self._copy, Path(target))

    async def _submit(self, tenant: str | None, function: Callable[[Tx], Any], *, read_only: bool) -> Any:
        if self._closed:
            raise Unavailable("the store is closed")
        loop = asyncio.get_running_loop()
        job = _Job(tenant, function, loop, loop.create_future(), read_only=read_only)
        self._jobs.put(job)
        return await job.future

    # The writer thread

    def _serve(self) -> None:
        """An error never ends this thread: every later write would wait forever."""
        while group := self._next_group():
            try:
                self._commit(group)
            except BaseException as error:
                log.exception("commit group of writes failed", extra={"writes": len(group)})
                self._give_up_connection()
                for job in group:
                    self._leave_places(job.handovers)
                _fail(group, error)
            self._wake_callers(group)

    def _next_group(self) -> list[_Job]:
        """Waits for one job, then takes all others in the queue. Empty when the store closes."""
        group: list[_Job] = []
        while (job := self._jobs.get()) is not None:
            group.append(job)
            if len(group) == _LARGEST_GROUP or self._jobs.empty():
                return group
        if group:
            self._jobs.put(None)  # closing: finish this group first, then stop
        return group

    def _commit(self, group: list[_Job]) -> None:
        try:
            connection = self._connected()
            raw = _driver(connection)
            raw.execute("BEGIN IMMEDIATE")
            for job in group:
                self._attempt(job, connection, raw)
            raw.execute("COMMIT")
        except (DBAPIError, sqlite3.Error, _GroupLost) as error:
            self._give_up_connection()
            for job in group:
                self._leave_places(job.handovers)
            if len(group) == 1 or isinstance(_translated(error), StoreBusy):
                _fail(group, error)
            else:
                for job in group:
                    self._commit([job])

    def _attempt(self, job: _Job, connection: Connection, raw: sqlite3.Connection) -> None:
        """Runs one function of a group. Its failure undoes only itself."""
        job.result, job.error, job.handovers, job.bells = None, None, [], {}
        places = self.queue.places if self.queue else None
        tx = Tx(connection, job.tenant, self._clock, places, self.limits, self.usage, self.marks)
        raw.execute("SAVEPOINT job")
        try:
            job.result = _run_read_only(tx, job.run, raw) if job.read_only else run(tx, job.run)
            job.handovers, job.bells = tx.handovers, tx.bells
        except BaseException as error:  # noqa: BLE001 - every error belongs to the caller, not to this thread
            job.error = _translated(error)
            self._leave_places(tx.handovers)
            if raw.in_transaction:
                raw.execute("ROLLBACK TO job")
        if not raw.in_transaction or _has_ended(connection):
            raise _GroupLost("the transaction ended before its functions did")
        raw.execute("RELEASE job")

    def _leave_places(self, handovers: list[Handover]) -> None:
        """Frees the slots of runs that were begun in a transaction that is undone."""
        if self.queue is not None and self.queue.places is not None:
            for _ in filter(lambda handover: handover.begun, handovers):
                self.queue.places.leave()
        handovers.clear()

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = self._engine.connect()
        return self._connection

    def _give_up_connection(self) -> None:
        """Closes a failed connection; the next group opens another. In memory the connection is the database."""
        connection = self._connection
        if connection is None:
            return
        if self.in_memory and not self._closed:
            if _driver(connection).in_transaction:
                _driver(connection).execute("ROLLBACK")
            if _has_ended(connection):
                connection.rollback()
            return
        self._connection = None
        connection.invalidate()
        connection.close()

    def _wake_callers(self, group: list[_Job]) -> None:
        """Wakes the callers, each event loop once."""
        for loop, jobs in groupby(sorted(group, key=lambda job: id(job.loop)), key=lambda job: job.loop):
            with suppress(RuntimeError):  # that loop is closed: no caller waits there
                loop.call_soon_threadsafe(self._settle, list(jobs))

    def _settle(self, jobs: list[_Job]) -> None:
        """Committed runs are handed over whether or not their caller still waits. Callers get their results first: the
        caller can follow a run before it executes, and a run's end is published before the next run begins."""
        for job in jobs:
            if job.future.done():
                continue
            if job.error is None:
                job.future.set_result(job.result)
            else:
                job.future.set_exception(job.error)
        for job in jobs:
            if self.queue is not None and job.handovers and job.error is None:
                self.queue.take(job.handovers)
            for bell in job.bells.keys() & self.bells.keys() if job.error is None else ():
                self.bells[bell](*job.bells[bell])

    def _clock(self, connection: Connection) -> datetime:
        """SQLite runs in this process, so its clock is this machine's."""
        return datetime.now(UTC) + self.clock_offset

    # The reader threads

    def _read(self, tenant: str | None, function: Callable[[Tx], T], most_seconds: float | None) -> T:
        try:
            connection = self._reader()
            raw = _driver(connection)
            raw.execute("BEGIN")
            if most_seconds is not None:
                until = time.monotonic() + most_seconds
                raw.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
            try:
                return run(Tx(connection, tenant, self._clock, None, self.limits, self.usage, self.marks), function)
            finally:
                raw.set_progress_handler(None, 0)
                if raw.in_transaction:
                    raw.execute("ROLLBACK")
        except (DBAPIError, sqlite3.Error) as error:
            raise _translated(error) from error

    def _reader(self) -> Connection:
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._engine.connect()
            connection.exec_driver_sql("PRAGMA query_only=ON")
            self._opened.append(connection)
        return connection

    def _copy(self, target: Path) -> None:
        target.touch(mode=0o600)
        with closing(sqlite3.connect(str(self._file))) as source, closing(sqlite3.connect(target)) as copy:
            source.backup(copy)


def _engine(url: str, lock_wait: timedelta) -> Engine:
    """AUTOCOMMIT stops SQLAlchemy from managing transactions: we send BEGIN, SAVEPOINT and COMMIT as driver SQL."""
    engine = create_engine(
        url,
        isolation_level="AUTOCOMMIT",
        poolclass=NullPool,
        hide_parameters=True,  # errors must not put stored data into logs
        connect_args={"check_same_thread": False, "timeout": lock_wait.total_seconds()},
        json_serializer=jsontext.dump,
        json_deserializer=jsontext.load,
    )
    event.listen(engine, "connect", _prepare)
    forbid_ending(engine)
    return engine


def _prepare(raw: sqlite3.Connection, _record: object) -> None:
    for pragma in _PRAGMAS:
        raw.execute(f"PRAGMA {pragma}")
    raw.create_function(vectors.FUNCTION, 2, vectors.product, deterministic=True)


def _run_read_only(tx: Tx, function: Callable[[Tx], T], raw: sqlite3.Connection) -> T:
    """Runs a read-only function where there is no reader connection."""
    raw.execute("PRAGMA query_only=ON")
    try:
        return run(tx, function)
    finally:
        raw.execute("PRAGMA query_only=OFF")


def _has_ended(connection: Connection) -> bool:
    """Whether SQLAlchemy considers the transaction ended: a function tried to end it."""
    transaction = connection.get_transaction()
    return transaction is not None and not transaction.is_active


def _driver(connection: Connection) -> sqlite3.Connection:
    raw = connection.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)
    return raw


def _translated(error: BaseException) -> BaseException:
    if isinstance(error, StopIteration):  # cannot be set on a future
        return RuntimeError("a store function raised StopIteration")
    if isinstance(error, sqlite3.Error):
        error = DBAPIError.instance("the transaction", None, error, sqlite3.Error)
    return (faults.translate(error) or error) if isinstance(error, DBAPIError) else error


def _fail(group: list[_Job], error: BaseException) -> None:
    for job in group:
        job.error = job.error or _translated(error)
