"""The store's connections to Postgres: a fair queue of transactions, and a pool that grows and shrinks with it.

Transactions are served in order, and one that waits too long fails with StoreBusy. Where Postgres refuses a further
connection, the queue uses the existing connections for a while, instead of failing the waiting transactions.
"""

from __future__ import annotations

import asyncio
import random
import select
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool
from sqlalchemy.pool import ConnectionPoolEntry, Pool, PoolResetState

from assent.errors import StoreBusy

PATIENCE = 10.0
"""Seconds that a transaction waits for a connection."""

_OPEN = (TransactionStatus.INTRANS, TransactionStatus.INERROR)
_MOST_IDLE = 10.0
"""Seconds. A process that starts waits 30 s for its first connections, which others may hold that are idle."""
_MAKE_DO = 1.0
"""Seconds until the next try to connect after a refusal; up to twice as long, so that processes differ."""


class Line:
    """At most `most` transactions at once, first come, first served."""

    def __init__(self, most: int, *, patience: float = PATIENCE) -> None:
        self._most = most
        self._patience = patience
        self._inside = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._fewer = most
        self._fewer_until = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        await self._join()
        try:
            yield
        finally:
            self._leave()

    def refused(self) -> None:
        """A transaction got no connection: for a while the limit is the number of open connections."""
        self._fewer = max(self._inside - 1, 1)
        self._fewer_until = time.monotonic() + _MAKE_DO * (1 + random.random())  # noqa: S311 - only spreads the retries

    @property
    def _room(self) -> bool:
        most = self._fewer if time.monotonic() < self._fewer_until else self._most
        return self._inside < most

    async def _join(self) -> None:
        if self._room and not self._waiting:
            self._inside += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(self._patience):
                await turn
        except BaseException as error:
            self._give_up(turn)
            if isinstance(error, TimeoutError):
                raise StoreBusy("all connections to the database are in use") from None
            raise

    def _give_up(self, turn: asyncio.Future[None]) -> None:
        with suppress(ValueError):
            self._waiting.remove(turn)
        if turn.done() and not turn.cancelled():  # granted at the same moment
            self._leave()

    def _leave(self) -> None:
        self._inside -= 1
        while self._waiting and self._room:
            turn = self._waiting.popleft()
            if not turn.done():
                self._inside += 1
                turn.set_result(None)


def end_transaction(connection: Any, _record: object, state: PoolResetState) -> None:
    """Rolls back the transaction of a connection that returns to the pool. SQLAlchemy does not, if a listener refused
    its commit: the next transaction would then commit the rest of this one."""
    if state.asyncio_safe and connection.driver_connection.info.transaction_status in _OPEN:
        connection.rollback()


async def check_idle(connection: AsyncConnection[Any]) -> None:
    """Checks a connection of one of psycopg's pools without a round trip: a server that has closed it has sent that."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if poll.poll(0):
        await AsyncConnectionPool.check_connection(connection)


class DirectPool(AsyncConnectionPool):
    """A pool of psycopg that checks idle connections without a round trip.

    It gives up a connection after a second, since a longer back-off delays the reconnect after a restart of the
    database. The first one is tried for as long as the pool opens: others may have all, some of them idle."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **{"reconnect_timeout": 1, **options, "check": check_idle})

    async def open(self, wait: bool = False, timeout: float = 30.0) -> None:
        later, self.reconnect_timeout = self.reconnect_timeout, timeout
        try:
            await super().open(wait, timeout)
        finally:
            self.reconnect_timeout = later


class ElasticPool(Pool):
    """Returns the most recently used connection, and closes idle ones. It opens as many as requested: `Line` limits
    their number."""

    _is_asyncio = True

    def __init__(self, creator: Any, **options: Any) -> None:
        super().__init__(creator, **options)
        self._idle: deque[tuple[float, ConnectionPoolEntry]] = deque()

    def _do_get(self) -> ConnectionPoolEntry:
        self._close_unused()
        return self._idle.pop()[1] if self._idle else self._create_connection()

    def _do_return_conn(self, record: ConnectionPoolEntry) -> None:
        if record.dbapi_connection is not None:  # else it was lost
            self._idle.append((time.monotonic(), record))

    def _close_unused(self) -> None:
        """Keeps the last one for the next transaction."""
        while len(self._idle) > 1 and self._idle[0][0] < time.monotonic() - _MOST_IDLE:
            self._idle.popleft()[1].close()

    def recreate(self) -> ElasticPool:
        return ElasticPool(
            self._creator,
            recycle=self._recycle,
            echo=self.echo,
            logging_name=self._orig_logging_name,
            reset_on_return=self._reset_on_return,
            pre_ping=self._pre_ping,
            _dispatch=self.dispatch,
            dialect=self._dialect,
        )

    def dispose(self) -> None:
        while self._idle:
            self._idle.pop()[1].close()

    def status(self) -> str:
        return f"{len(self._idle)} idle connections"
