"""The Postgres executor: every function runs in a transaction of its own on a pooled psycopg 3 connection.

A function is run again when Postgres asks for it (deadlock, serialization) or when a pooled connection turns out to be
dead *before* the commit was sent. Once the commit is on its way its outcome may be unknown, so it is never repeated:
the caller gets 503 and finds out by reading.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, make_url, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnectionFree
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from assent.errors import Invalid, StoreBusy, Unavailable
from assent.ports import Queue
from assent.store import faults, jsontext
from assent.store.transaction import Tx, forbid_ending, run

P = ParamSpec("P")
T = TypeVar("T")

_ATTEMPTS = 5
_NOW = text("SELECT clock_timestamp()")
# Whoever stalls in the middle of a transaction must not keep others for long from what it has locked.
_OPTIONS = "-c timezone=UTC -c lock_timeout=10s -c idle_in_transaction_session_timeout=10s"


class PostgresStore:
    def __init__(self, url: str, *, connections: int = 10) -> None:
        self.url = url
        self.clock_offset = timedelta()
        self.queue: Queue | None = None
        self.bells: dict[str, Callable[[], None]] = {}
        self._connections = connections
        self._closed = True

    async def open(self) -> None:
        self.engine = _engine(self.url, self._connections)
        self._closed = False

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await self.engine.dispose()

    async def write(
        self, tenant: str | None, function: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        for attempt in range(1, _ATTEMPTS + 1):
            transaction = _Transaction(self._usable_engine())
            try:
                async with transaction as connection:
                    tx, result = await connection.run_sync(self._call, tenant, lambda tx: function(tx, *args, **kwargs))
                    await self._hand_over(connection, tx)
                self._ring(tx)
                return result
            except NoConnectionFree as error:
                raise StoreBusy("all connections to the database are in use") from error
            except DBAPIError as error:
                if attempt == _ATTEMPTS or not transaction.may_repeat(error):
                    raise transaction.explain(error) from error
        raise AssertionError("unreachable")

    async def read(
        self, tenant: str | None, function: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                async with self._snapshot() as connection:
                    _, result = await connection.run_sync(self._call, tenant, lambda tx: function(tx, *args, **kwargs))
                    return result
            except NoConnectionFree as error:
                raise StoreBusy("all connections to the database are in use") from error
            except DBAPIError as error:
                if attempt == _ATTEMPTS or not error.connection_invalidated:
                    raise faults.translate(error) or error from error
        raise AssertionError("unreachable")

    async def backup(self, target: str) -> None:
        raise Invalid(
            "a Postgres database is backed up with pg_dump", hint=f"pg_dump --format=custom --file={target} …"
        )

    @asynccontextmanager
    async def _snapshot(self) -> AsyncIterator[AsyncConnection]:
        async with self._usable_engine().connect() as connection:
            yield await connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            await connection.commit()  # after a rollback psycopg would throw its prepared statements away

    def _usable_engine(self) -> AsyncEngine:
        if self._closed:
            raise Unavailable("the store is closed")
        return self.engine

    def _call(self, connection: Connection, tenant: str | None, function: Callable[[Tx], T]) -> tuple[Tx, T]:
        tx = Tx(connection, tenant, self._clock)
        return tx, run(tx, function)

    async def _hand_over(self, connection: AsyncConnection, tx: Tx) -> None:
        """In the transaction itself: a commit that fails leaves neither the change nor a run in the queue."""
        if tx.handovers and self.queue is not None:
            raw = await connection.get_raw_connection()
            await self.queue.defer(raw.driver_connection, tx.handovers)

    def _ring(self, tx: Tx) -> None:
        for bell in tx.bells & self.bells.keys():
            self.bells[bell]()

    def _clock(self, connection: Connection) -> datetime:
        now: datetime = connection.execute(_NOW).scalar_one()
        return now.astimezone(UTC) + self.clock_offset


class _Transaction:
    """`engine.begin()` that remembers whether the commit was sent, which decides whether a retry is safe."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._committing = False

    async def __aenter__(self) -> AsyncConnection:
        self._connection = await self._engine.connect()
        return self._connection

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if error is None:
                self._committing = True
                await self._connection.commit()
        finally:
            await self._connection.close()

    def may_repeat(self, error: DBAPIError) -> bool:
        return faults.is_retryable(error) or (error.connection_invalidated and not self._committing)

    def explain(self, error: DBAPIError) -> Exception:
        if self._committing and error.connection_invalidated:
            return Unavailable("the database was lost during the commit: look whether it happened, then try again")
        return faults.translate(error) or error


def _engine(url: str, connections: int) -> AsyncEngine:
    engine = create_async_engine(
        make_url(url).set(drivername="postgresql+psycopg"),
        pool_size=connections,
        max_overflow=connections,
        connect_args={"options": _OPTIONS, "application_name": "assent"},
        json_serializer=jsontext.dump,
        json_deserializer=jsontext.load,
    )
    forbid_ending(engine.sync_engine)
    return engine
