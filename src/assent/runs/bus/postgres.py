"""Live frames between processes: rows of the `frames` table, and a NOTIFY that names the run.

Followers read from the table at their own pace, so slow ones cost no memory. One connection per process listens, from
the first follower on; after a reconnect, all followers read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg_pool import PoolClosed
from sqlalchemy import make_url

from assent.errors import Unavailable
from assent.kernel.background import Repeating, every
from assent.kernel.store.drivers.pool import DirectPool
from assent.kernel.store.ports import Store
from assent.runs.bus.batches import CHANNEL, PAUSE, FrameWriter
from assent.runs.bus.followers import Row, TableFollower
from assent.threads.model.frames import END, Frame, Stream, Topic
from assent.threads.rows import threads

_REMIND = f"""
    SELECT pg_notify('{CHANNEL}', run_id || E'\\n' || seq || E'\\nthread:' || tenant_id || ':' || thread_id)
    FROM frames WHERE run_id = ANY(%s) AND event = '{END}'
"""  # noqa: S608 - constants only
_READ = """
    SELECT thread_id, at, seq, event, data, id FROM frames
    WHERE tenant_id = %s AND run_id = %s AND seq > %s ORDER BY seq LIMIT %s
"""
_POSITION = f"""
    SELECT coalesce(max(seq), 0) FROM frames WHERE tenant_id = %s AND run_id = %s AND event <> '{END}'
"""  # noqa: S608 - constants only

_LONGEST_RETRY = 2.0
_PATIENCE = 10.0

log = logging.getLogger(__name__)


class PostgresBus:
    shared = True

    def __init__(self, store: Store, url: str, *, connections: int = 2) -> None:
        """Uses at most this many connections, and one more to listen."""
        self._store = store
        self._connections = connections
        address = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        self._conninfo = make_conninfo(
            address,
            application_name="assent-frames",
            connect_timeout=5,
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=3,
        )
        self._followers: dict[str, set[TableFollower]] = {}
        """By the name of their topic: notices carry no more."""
        self._listening = Repeating("frames listener", every(PAUSE, self._listen), longest_retry=_LONGEST_RETRY)
        self._listens = asyncio.Event()

    async def open(self) -> None:
        self._pool = DirectPool(
            self._conninfo,
            kwargs={"autocommit": True, "options": "-c synchronous_commit=off"},
            min_size=1,
            max_size=self._connections,
            max_idle=10,
            timeout=5,
            open=False,
        )
        try:
            await self._pool.open(wait=True)
        except psycopg.OperationalError as error:
            await self._pool.close()
            raise Unavailable(f"live frames cannot be written: no connection to the database: {error}") from error
        self._writer = FrameWriter(self._pool)

    async def close(self) -> None:
        await self._writer.close()
        await self._listening.stop()
        await self._pool.close()

    async def publish(self, stream: Stream, frame: Frame) -> None:
        await self._writer.add(stream, frame)

    async def flush(self, stream: Stream) -> None:
        await self._writer.flush()

    async def end(self, stream: Stream, *last: Frame) -> None:
        self._writer.notify(stream, last[0])

    async def remind(self, run_ids: Sequence[str]) -> None:
        """Repeats the notices of ended runs whose process may have died before it sent them."""
        if run_ids:
            with suppress(psycopg.Error):
                async with self._pool.connection() as connection:
                    await connection.execute(_REMIND, [list(run_ids)])

    def follow(self, topic: Topic, *, after: int = 0, only_end: bool = False) -> TableFollower:
        return self._follower(topic, after)

    def is_read(self, stream: Stream) -> bool:
        return True

    async def follow_now(self, topic: Topic) -> TableFollower:
        """Frames that this process has published before, and not yet written, are not new."""
        follower = self._follower(topic, None)
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._writer.flush()
                await self._listens.wait()
                await follower.begin()
        except TimeoutError:
            follower.close()
            raise Unavailable("live frames cannot be read: the database does not answer") from None
        except BaseException:
            follower.close()
            raise
        return follower

    def leave(self, follower: TableFollower) -> None:
        followers = self._followers.get(follower.topic.name, set())
        followers.discard(follower)
        if not followers:
            self._followers.pop(follower.topic.name, None)

    def is_followed(self, topic: Topic) -> bool:
        """Never, as far as this process can know: the sender of the end marks the questions in it as shown."""
        return False

    async def read(self, tenant: str, run_id: str, after: int, limit: int) -> list[Row]:
        rows = await self._select(_READ, [tenant, run_id, after, limit])
        return [
            Row(tenant, thread_id, at, Frame(seq, event, data.encode(), id))
            for thread_id, at, seq, event, data, id in rows
        ]

    async def position(self, tenant: str, run_id: str) -> int:
        return int((await self._select(_POSITION, [tenant, run_id]))[0][0])

    async def mark_shown(self, row: Row) -> None:
        """Marks only the questions of this end as shown; the follower has not seen later ones."""
        try:
            await self._store.write(row.tenant, threads.mark_shown, row.thread_id, as_of=row.at)
        except Unavailable as error:
            log.warning("mark questions as shown failed", extra={"reason": error.message})

    async def _select(self, query: str, params: list[object]) -> list[tuple[Any, ...]]:
        while True:
            try:
                async with self._pool.connection() as connection:
                    return await (await connection.execute(query, params)).fetchall()
            except PoolClosed:
                raise Unavailable("the server is stopping") from None
            except psycopg.OperationalError as error:
                log.warning("read live frames failed", extra={"reason": str(error)})
            await asyncio.sleep(PAUSE)

    def _follower(self, topic: Topic, after: int | None) -> TableFollower:
        follower = TableFollower(self, topic, after=after)
        self._followers.setdefault(topic.name, set()).add(follower)
        self._listening.start()
        return follower

    async def _listen(self) -> None:
        """Listens until the connection is lost."""
        try:
            async with await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True) as connection:
                await connection.execute(f"LISTEN {CHANNEL}")
                for follower in [follower for followers in self._followers.values() for follower in followers]:
                    follower.look()
                self._listens.set()
                async for notice in connection.notifies():
                    self._spread(notice.payload)
        finally:
            self._listens.clear()

    def _spread(self, news: str) -> None:
        """Passes a notice to its followers. Ignores foreign notices, which any user of the database may send."""
        run_id, first, topic = (*news.split("\n", 2), "", "")[:3]
        if not first.isdecimal():
            return log.debug("ignored a foreign notice")
        for follower in [*self._followers.get(run_id, ()), *self._followers.get(topic, ())]:
            follower.look_at(run_id, int(first))
