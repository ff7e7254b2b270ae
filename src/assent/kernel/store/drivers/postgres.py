"""The Postgres executor: every function runs in a transaction of its own on a pooled psycopg 3 connection.

A function is retried when Postgres requests it (deadlock, serialization), when no connection was available, or when a
pooled one turns out to be dead *before* the commit was sent. Once the commit was sent its outcome may be unknown, so it
is never repeated: the caller gets 503 and has to read the outcome.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event, make_url, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from assent.errors import Invalid, Unavailable
from assent.kernel import jsontext
from assent.kernel.fair_threads import Shares, caller
from assent.kernel.limits import Limits, Usage
from assent.kernel.store import faults
from assent.kernel.store.drivers.pool import PATIENCE, ElasticPool, Line, end_transaction
from assent.kernel.store.ports import Queue
from assent.kernel.store.transaction import Marks, Tx, forbid_ending, no_marks, run

P = ParamSpec("P")
T = TypeVar("T")

_ATTEMPTS = 5
_FIRST_PAUSE = 0.05
_CONNECT_SECONDS = "10"
_READS_OF_A_CALLER = 4  # at once: the other connections, and the event loop, are for other callers
_MOST_SECONDS = 10.0
"""For one caller's read: a filter over large documents can take minutes."""

_NOW = text("SELECT clock_timestamp()")
# A transaction that stalls must not hold its locks for long.
_OPTIONS = "-c timezone=UTC -c lock_timeout=10s -c idle_in_transaction_session_timeout=10s"


_ENGINE: dict[str, Any] = {
    "hide_parameters": True,  # errors must not put stored data into logs
    "connect_args": {"options": _OPTIONS, "application_name": "assent"},
    "json_serializer": jsontext.dump,
    "json_deserializer": bytes,  # raw: the columns parse it
}


class PostgresStore:
    def __init__(
        self, url: str, *, connections: int = 10, limits: Limits | None = None, patience: float = PATIENCE
    ) -> None:
        """At most `connections` connections. `patience` is the seconds that a transaction waits for one."""
        self.url = url
        self.clock_offset = timedelta()
        self.queue: Queue | None = None
        self.bells: dict[str, Callable[..., None]] = {}
        self.limits = limits or Limits()
        self.usage = Usage()
        self.marks: Marks = no_marks
        self._line = Line(connections, patience=patience)
        self._shares = Shares(_READS_OF_A_CALLER)
        self._closed = True

    async def open(self) -> None:
        self.engine = _engine(self.url)
        self._loop = asyncio.get_running_loop()
        self._closed = False

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await self.engine.dispose()

    async def write(
        self, tenant: str | None, function: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        if self._is_called_elsewhere():
            return await self._on_own_loop(self.write(tenant, function, *args, **kwargs))
        for attempt in range(1, _ATTEMPTS + 1):
            transaction = _Transaction(self._connected)
            try:
                async with transaction as connection:
                    tx, result = await connection.run_sync(self._call, tenant, lambda tx: function(tx, *args, **kwargs))
                    await self._hand_over(connection, tx)
                self._ring(tx)
                return result
            except _NotConnected as error:
                await self._pause_after(attempt, error)
            except DBAPIError as error:
                if attempt == _ATTEMPTS or not transaction.may_repeat(error):
                    raise transaction.explain(error) from error
        raise AssertionError("unreachable")

    async def read(
        self, tenant: str | None, function: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        if self._is_called_elsewhere():
            return await self._on_own_loop(self.read(tenant, function, *args, **kwargs))
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                async with self._shares.of_caller(), self._snapshot() as connection:
                    return await self._call_in_time(connection, tenant, lambda tx: function(tx, *args, **kwargs))
            except _NotConnected as error:
                await self._pause_after(attempt, error)
            except DBAPIError as error:
                if attempt == _ATTEMPTS or not error.connection_invalidated:
                    raise faults.translate(error) or error from error
        raise AssertionError("unreachable")

    def _is_called_elsewhere(self) -> bool:
        """In a node that runs a graph in an event loop of its own. Connections belong to the store's event loop."""
        return not self._closed and asyncio.get_running_loop() is not self._loop

    async def _on_own_loop(self, call: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call, self._loop))

    async def backup(self, target: str) -> None:
        raise Invalid(
            "a Postgres database is backed up with pg_dump", hint=f"pg_dump --format=custom --file={target} …"
        )

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[AsyncConnection]:
        """Waits in the queue for a connection."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._line.turn())
            try:
                connection = await stack.enter_async_context(self._usable_engine().connect())
            except DBAPIError as error:
                self._line.refused()
                raise _NotConnected(error) from error
            yield connection

    async def _pause_after(self, attempt: int, refused: _NotConnected) -> None:
        """Nothing was sent, so it is retried, with exponential back-off and jitter."""
        if attempt == _ATTEMPTS:
            raise faults.translate(refused.error) or refused.error from refused
        await asyncio.sleep(_FIRST_PAUSE * 2 ** (attempt - 1) * (0.5 + random.random()))  # noqa: S311

    @asynccontextmanager
    async def _snapshot(self) -> AsyncIterator[AsyncConnection]:
        async with self._connected() as connection:
            yield await connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            await connection.commit()  # after a rollback psycopg would discard its prepared statements

    def _usable_engine(self) -> AsyncEngine:
        if self._closed:
            raise Unavailable("the store is closed")
        return self.engine

    def _call(self, connection: Connection, tenant: str | None, function: Callable[[Tx], T]) -> tuple[Tx, T]:
        tx = Tx(connection, tenant, self._clock, None, self.limits, self.usage, self.marks)
        return tx, run(tx, function)

    async def _call_in_time(self, connection: AsyncConnection, tenant: str | None, function: Callable[[Tx], T]) -> T:
        """Psycopg cancels the statement in the database at the timeout."""
        try:
            async with asyncio.timeout(_MOST_SECONDS if caller.get() else None):
                _, result = await connection.run_sync(self._call, tenant, function)
                return result
        except TimeoutError as error:
            raise faults.too_long() from error

    async def _hand_over(self, connection: AsyncConnection, tx: Tx) -> None:
        """In the transaction itself: a failed commit leaves neither the change nor a run in the queue."""
        if tx.handovers and self.queue is not None:
            raw = await connection.get_raw_connection()
            await self.queue.defer(raw.driver_connection, tx.handovers)

    def _ring(self, tx: Tx) -> None:
        for bell in tx.bells.keys() & self.bells.keys():
            self.bells[bell](*tx.bells[bell])

    def _clock(self, connection: Connection) -> datetime:
        return clock(connection) + self.clock_offset


def clock(connection: Connection) -> datetime:
    now: datetime = connection.execute(_NOW).scalar_one()
    return now.astimezone(UTC)


class _NotConnected(Exception):
    """No connection is available now."""

    def __init__(self, error: DBAPIError) -> None:
        super().__init__(str(error.orig))
        self.error = error


class _Transaction:
    """A transaction that tracks whether its commit was sent, and so whether a retry is safe."""

    def __init__(self, connect: Callable[[], AbstractAsyncContextManager[AsyncConnection]]) -> None:
        self._connecting = connect()
        self._committing = False

    async def __aenter__(self) -> AsyncConnection:
        self._connection = await self._connecting.__aenter__()
        return self._connection

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if error is None:
                self._committing = True
                await self._connection.commit()
        finally:
            await self._connecting.__aexit__(None, None, None)

    def may_repeat(self, error: DBAPIError) -> bool:
        return faults.is_retryable(error) or (error.connection_invalidated and not self._committing)

    def explain(self, error: DBAPIError) -> Exception:
        if self._committing and error.connection_invalidated:
            return Unavailable("the database was lost during the commit: check whether it took effect, then try again")
        return faults.translate(error) or error


def _engine(url: str) -> AsyncEngine:
    engine = create_async_engine(_address(url), poolclass=ElasticPool, **_ENGINE)
    forbid_ending(engine.sync_engine)
    event.listen(engine.sync_engine, "reset", end_transaction)
    return engine


def blocking_engine(url: str) -> Engine:
    """For a process without an event loop. It holds no connection open, so a fork inherits none."""
    engine = create_engine(_address(url), poolclass=NullPool, **_ENGINE)
    forbid_ending(engine)
    return engine


def _address(url: str) -> URL:
    address = make_url(url).set(drivername="postgresql+psycopg")
    if "connect_timeout" in address.query:
        return address
    return address.update_query_dict({"connect_timeout": _CONNECT_SECONDS})
