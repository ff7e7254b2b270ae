"""Writes live frames to the `frames` table in batches, each with a NOTIFY that says whose are new.

What gathers while one batch is on its way is the next one. Nobody waits for the disk: these frames are for whoever
looks now, and the end of a run, which must not be lost, is written in the transaction that records it. A stalled
worker's late frames are refused like its checkpoints.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass, field

import psycopg
from psycopg_pool import AsyncConnectionPool

from assent.domain.frames import Frame, Stream
from assent.errors import Unavailable

CHANNEL = "assent_frames"
PAUSE = 0.2

_PATIENCE = 10.0
_MOST_BYTES = 8 * 1024 * 1024
_WRITE = f"""
    WITH fresh AS (
        SELECT * FROM unnest(
            %s::text[], %s::text[], %s::text[], %s::int[], %s::int[], %s::text[], %s::text[], %s::text[]
        ) AS f (tenant_id, thread_id, run_id, attempt, seq, id, event, data)
    ), written AS (
        INSERT INTO frames (tenant_id, thread_id, run_id, seq, id, event, data, at)
        SELECT tenant_id, thread_id, run_id, seq, id, event, data, clock_timestamp() FROM fresh
        WHERE EXISTS (
            SELECT 1 FROM runs
            WHERE runs.tenant_id = fresh.tenant_id AND runs.run_id = fresh.run_id
            AND runs.attempt = fresh.attempt AND runs.status = 'running'
        )
        ON CONFLICT DO NOTHING
    )
    SELECT pg_notify('{CHANNEL}', news) FROM unnest(%s::text[]) AS news
"""  # noqa: S608 - constants only

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Batch:
    """What is to be written next, and what to tell: run id → its first new number and its thread's topic."""

    frames: list[tuple[Stream, Frame]] = field(default_factory=list)
    news: dict[str, tuple[int, str]] = field(default_factory=dict)
    bytes: int = 0
    count: int = 0

    def add(self, stream: Stream, frame: Frame) -> None:
        self.frames.append((stream, frame))
        self.bytes += len(frame.data)
        self.tell(stream, frame)

    def tell(self, stream: Stream, frame: Frame) -> None:
        self.news.setdefault(stream.run_id, (frame.seq, stream.thread_topic))
        self.count += 1

    def columns(self) -> list[list[object]]:
        columns: list[list[object]] = [[] for _ in range(9)]
        for one, frame in self.frames:
            row = (one.tenant, one.thread_id, one.run_id, one.attempt, frame.seq, frame.id, frame.event, frame.data)
            for column, value in zip(columns, row, strict=False):
                column.append(value.decode() if isinstance(value, bytes) else value)
        columns[-1].extend(f"{run_id}\n{first}\n{topic}" for run_id, (first, topic) in self.news.items())
        return columns


class FrameWriter:
    def __init__(self, pool: AsyncConnectionPool) -> None:
        self._pool = pool
        self._next = _Batch()
        self._added = 0
        self._written = 0
        self._work = asyncio.Event()
        self._progress = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None

    async def add(self, stream: Stream, frame: Frame) -> None:
        """Waits only where the database is so far behind that memory would grow."""
        while self._next.bytes > _MOST_BYTES:
            await self._until(self._written + 1)
        self._next.add(stream, frame)
        self._go_on()

    def tell(self, stream: Stream, frame: Frame) -> None:
        """Of a frame that is in the table already."""
        self._next.tell(stream, frame)
        self._go_on()

    async def flush(self) -> None:
        try:
            await asyncio.wait_for(self._until(self._added), _PATIENCE)
        except TimeoutError:
            raise Unavailable("live frames cannot be written") from None

    async def close(self, *, patience: float = 5.0) -> None:
        """What was added is still written, unless the database is away."""
        with suppress(TimeoutError, Unavailable):
            await asyncio.wait_for(self.flush(), patience)
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _go_on(self) -> None:
        self._added += 1
        self._work.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="frames writer")

    async def _until(self, count: int) -> None:
        async with self._progress:
            await self._progress.wait_for(lambda: self._written >= count)

    async def _run(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            batch, self._next = self._next, _Batch()
            await self._write(batch)
            async with self._progress:
                self._written += batch.count
                self._progress.notify_all()

    async def _write(self, batch: _Batch) -> None:
        columns = batch.columns()
        while True:
            try:
                async with self._pool.connection() as connection:
                    await connection.execute(_WRITE, columns)
                return
            except psycopg.OperationalError as error:
                log.warning("live frames have to wait", extra={"reason": str(error)})
            except psycopg.Error:
                return log.exception("live frames were lost", extra={"frames": batch.count})
            await asyncio.sleep(PAUSE)
