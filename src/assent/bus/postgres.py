"""Live frames between processes: rows of the `frames` table, and a NOTIFY that says whose are new.

Followers hear which run has news and read from the table at their own pace, which is why slow ones cost nothing and
nobody falls behind. One connection per process listens, from the first follower on; after it was lost, everyone looks.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg_pool import AsyncConnectionPool
from sqlalchemy import make_url

from assent.bus.batches import CHANNEL, PAUSE, FrameWriter
from assent.bus.followers import Row, TableFollower
from assent.domain.frames import END, Frame, Stream
from assent.errors import Unavailable
from assent.ports import Store
from assent.store import threads

_REMIND = f"""
    SELECT pg_notify('{CHANNEL}', run_id || E'\\n' || seq || E'\\nthread:' || tenant_id || ':' || thread_id)
    FROM frames WHERE run_id = ANY(%s) AND event = '{END}'
"""  # noqa: S608 - constants only
_READ = """
    SELECT tenant_id, thread_id, at, seq, event, data, id FROM frames
    WHERE run_id = %s AND seq > %s ORDER BY seq LIMIT %s
"""
_POSITION = f"SELECT coalesce(max(seq), 0) FROM frames WHERE run_id = %s AND event <> '{END}'"  # noqa: S608

log = logging.getLogger(__name__)


class PostgresBus:
    shared = True

    def __init__(self, store: Store, url: str) -> None:
        self._store = store
        address = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        self._conninfo = make_conninfo(
            address, connect_timeout=5, keepalives_idle=10, keepalives_interval=5, keepalives_count=3
        )
        self._followers: dict[str, set[TableFollower]] = {}
        self._listener: asyncio.Task[None] | None = None

    async def open(self) -> None:
        self._pool = AsyncConnectionPool(
            self._conninfo,
            kwargs={"autocommit": True, "options": "-c synchronous_commit=off"},
            min_size=1,
            max_size=4,
            timeout=5,
            reconnect_timeout=1,  # a pool that waits longer between its tries finds a restarted database too late
            check=AsyncConnectionPool.check_connection,
            open=False,
        )
        await self._pool.open(wait=True)
        self._writer = FrameWriter(self._pool)

    async def close(self) -> None:
        await self._writer.close()
        if self._listener is not None:
            self._listener.cancel()
            await asyncio.gather(self._listener, return_exceptions=True)
        await self._pool.close()

    async def publish(self, stream: Stream, frame: Frame) -> None:
        await self._writer.add(stream, frame)

    async def flush(self, stream: Stream) -> None:
        await self._writer.flush()

    async def end(self, stream: Stream, *last: Frame) -> None:
        self._writer.tell(stream, last[0])

    async def remind(self, run_ids: Sequence[str]) -> None:
        """Tells of ends that were recorded by processes that may have died before they told."""
        if run_ids:
            with suppress(psycopg.Error):
                async with self._pool.connection() as connection:
                    await connection.execute(_REMIND, [list(run_ids)])

    def follow(self, topic: str, *, after: int | None = 0) -> TableFollower:
        follower = TableFollower(self, topic, after=after)
        self._followers.setdefault(topic, set()).add(follower)
        if self._listener is None:
            self._listener = asyncio.create_task(self._listen(), name="frames listener")
        return follower

    def leave(self, follower: TableFollower) -> None:
        followers = self._followers.get(follower.topic, set())
        followers.discard(follower)
        if not followers:
            self._followers.pop(follower.topic, None)

    def is_followed(self, run_id: str) -> bool:
        """Never, as far as this process can know: whoever delivers the end marks the questions in it as shown."""
        return False

    async def read(self, run_id: str, after: int, limit: int) -> list[Row]:
        found = await self._select(_READ, [run_id, after, limit])
        return [
            Row(tenant, thread_id, at, Frame(seq, event, data.encode(), id))
            for tenant, thread_id, at, seq, event, data, id in found
        ]

    async def position(self, run_id: str) -> int:
        return int((await self._select(_POSITION, [run_id]))[0][0])

    async def mark_shown(self, row: Row) -> None:
        """Only the questions of this very end: those of a later one have not been seen by this follower."""
        try:
            await self._store.write(row.tenant, threads.mark_shown, row.thread_id, as_of=row.at)
        except Unavailable as error:
            log.warning("questions could not be marked as shown", extra={"reason": error.message})

    async def _select(self, query: str, params: list[object]) -> list[tuple[Any, ...]]:
        while True:
            try:
                async with self._pool.connection() as connection:
                    return await (await connection.execute(query, params)).fetchall()
            except psycopg.OperationalError as error:
                log.warning("live frames cannot be read", extra={"reason": str(error)})
            await asyncio.sleep(PAUSE)

    async def _listen(self) -> None:
        while True:
            try:
                await self._hear()
            except psycopg.Error as error:
                log.warning("live frames cannot be heard", extra={"reason": str(error)})
            await asyncio.sleep(PAUSE)

    async def _hear(self) -> None:
        async with await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True) as connection:
            await connection.execute(f"LISTEN {CHANNEL}")
            for follower in [one for followers in self._followers.values() for one in followers]:
                await follower.look()
            async for notice in connection.notifies():
                self._spread(notice.payload)

    def _spread(self, news: str) -> None:
        run_id, first, topic = news.split("\n", 2)
        for follower in [*self._followers.get(run_id, ()), *self._followers.get(topic, ())]:
            follower.look_at(run_id, int(first))
