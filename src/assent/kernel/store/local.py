"""Stores without a server, for blocking callers: over one SQLite file or one Postgres database that several processes
may share.

The functions and their guarantee are those of the server: one returns after its transaction is durable.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeAlias, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from assent.kernel.store import faults, migrations
from assent.kernel.store.drivers.sqlite import _driver, _engine, _translated
from assent.kernel.store.tables import metadata
from assent.kernel.store.transaction import Tx, run

T = TypeVar("T")

MEMORY = ":memory:"
"""In place of a path: a database of this process alone, which is gone with its store."""

_ATTEMPTS = 5
_FIRST_PAUSE_SECONDS = 0.05


class LocalStore:
    def __init__(self, path: Path, tenant: str, *, lock_wait: timedelta = timedelta(seconds=5)) -> None:
        self.path = path
        self.clock_offset = timedelta()
        self._tenant = tenant
        self._lock_wait = lock_wait
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._memory: Connection | None = None

    def close(self) -> None:
        """Gives up what is in memory. A file is not held open."""
        with self._lock:
            if self._memory is not None:
                self._memory.close()
                self._memory = None

    def write(self, function: Callable[[Tx], T]) -> T:
        try:
            with self._lock, self._connected() as connection:
                return self._committed(connection, function)
        except (DBAPIError, sqlite3.Error) as error:
            raise _translated(error) from error

    def _committed(self, connection: Connection, function: Callable[[Tx], T]) -> T:
        raw = _driver(connection)
        raw.execute("BEGIN IMMEDIATE")
        try:
            result = run(Tx(connection, self._tenant, self._clock), function)
            raw.execute("COMMIT")
            return result
        finally:
            if raw.in_transaction:
                raw.execute("ROLLBACK")

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        if str(self.path) != MEMORY:
            with self._opened().connect() as connection:
                yield connection
        else:
            if self._memory is None:
                self._memory = _engine("sqlite://", self._lock_wait).connect()
                metadata.create_all(self._memory)  # migrations cannot reach it
            yield self._memory

    def _opened(self) -> Engine:
        """Created at the first use: naming an inbox in a module must not touch the disk."""
        if self._engine is None:
            url = f"sqlite:///{self.path}"
            migrations.upgrade(url)
            self._engine = _engine(url, self._lock_wait)
        return self._engine

    def _clock(self, connection: Connection) -> datetime:
        return datetime.now(UTC) + self.clock_offset


class LocalPostgres:
    """A transaction per function, on a connection of its own. Repeats those that Postgres asks to repeat."""

    def __init__(self, url: str, tenant: str) -> None:
        self.clock_offset = timedelta()
        self._url = url
        self._tenant = tenant
        self._lock = threading.Lock()
        self._engine: Engine | None = None

    def close(self) -> None:
        """No connection is held open."""

    def write(self, function: Callable[[Tx], T]) -> T:
        for attempt in range(_ATTEMPTS):
            try:
                with self._opened().connect() as connection:
                    result = run(Tx(connection, self._tenant, self._clock), function)
                    connection.commit()
                    return result
            except DBAPIError as error:
                if attempt == _ATTEMPTS - 1 or not faults.is_retryable(error):
                    raise faults.translate(error) or error from error
            threading.Event().wait(_FIRST_PAUSE_SECONDS * 2**attempt)
        raise AssertionError("the last attempt returns or raises")

    def _opened(self) -> Engine:
        """Created at the first use."""
        from assent.kernel.store.drivers.postgres import blocking_engine  # slow to import

        with self._lock:
            if self._engine is None:
                migrations.upgrade(self._url)
                self._engine = blocking_engine(self._url)
            return self._engine

    def _clock(self, connection: Connection) -> datetime:
        from assent.kernel.store.drivers.postgres import clock

        return clock(connection) + self.clock_offset


AnyLocal: TypeAlias = LocalStore | LocalPostgres


def local_store(place: str | Path, tenant: str) -> AnyLocal:
    """Over the database of a `postgresql://` URL, or over the file of a path."""
    if str(place).startswith(("postgresql:", "postgresql+psycopg:")):
        return LocalPostgres(str(place), tenant)
    return LocalStore(Path(place), tenant)
