"""Writes live frames to the `frames` table in batches, each with a NOTIFY that names the runs.

Frames that arrive during a write form the next batch. Writes do not wait for the disk: the frames are for live
followers, and the end of a run, which must not be lost, is written in the transaction that records it. Late frames of
a stalled worker are fenced, as its checkpoints are.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass, field

import psycopg
from psycopg_pool import AsyncConnectionPool

from assent.errors import Unavailable
from assent.kernel.background import Repeating
from assent.threads.model.frames import Frame, Stream

CHANNEL = "assent_frames"
PAUSE = 0.2
_LONGEST_RETRY = 2.0

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
    """The next frames to write, and the notices to send: run id → its first new number and its thread's topic."""

    frames: list[tuple[Stream, Frame]] = field(default_factory=list)
    news: dict[str, tuple[int, str]] = field(default_factory=dict)
    bytes: int = 0
    count: int = 0

    def add(self, stream: Stream, frame: Frame) -> None:
        self.frames.append((stream, frame))
        self.bytes += len(frame.data)
        self.notify(stream, frame)

    def notify(self, stream: Stream, frame: Frame) -> None:
        self.news.setdefault(stream.run_id, (frame.seq, stream.thread_topic.name))
        self.count += 1

    def columns(self) -> list[list[object]]:
        columns: list[list[object]] = [[] for _ in range(9)]
        for stream, frame in self.frames:
            row = (
                stream.tenant,
                stream.thread_id,
                stream.run_id,
                stream.attempt,
                frame.seq,
                frame.id,
                frame.event,
                frame.data,
            )
            for column, value in zip(columns, row, strict=False):
                column.append(value.decode() if isinstance(value, bytes) else value)
        columns[-1].extend(f"{run_id}\n{first}\n{topic}" for run_id, (first, topic) in self.news.items())
        return columns


class FrameWriter:
    def __init__(self, pool: AsyncConnectionPool) -> None:
        self._pool = pool
        self._current, self._next = _Batch(), _Batch()
        self._added = 0
        self._written = 0
        self._progress = asyncio.Condition()
        self._writing = Repeating("frames writer", self._write_next, first_retry=PAUSE, longest_retry=_LONGEST_RETRY)

    async def add(self, stream: Stream, frame: Frame) -> None:
        """Waits only while the next batch is full, which limits memory."""
        while self._next.bytes > _MOST_BYTES:
            await self._until(self._written + 1)
        self._next.add(stream, frame)
        self._wake()

    def notify(self, stream: Stream, frame: Frame) -> None:
        """Announces a frame that is already in the table."""
        self._next.notify(stream, frame)
        self._wake()

    async def flush(self) -> None:
        try:
            await asyncio.wait_for(self._until(self._added), _PATIENCE)
        except TimeoutError:
            raise Unavailable("live frames cannot be written") from None

    async def close(self, *, patience: float = 5.0) -> None:
        """Writes the remaining frames, unless the database is unavailable."""
        with suppress(TimeoutError, Unavailable):
            await asyncio.wait_for(self.flush(), patience)
        await self._writing.stop()

    def _wake(self) -> None:
        self._added += 1
        self._writing.start()
        self._writing.wake()

    async def _until(self, count: int) -> None:
        async with self._progress:
            await self._progress.wait_for(lambda: self._written >= count)

    async def _write_next(self) -> None:
        """Writes one batch. A failed batch is retried before later frames."""
        if not self._current.count:
            self._current, self._next = self._next, _Batch()
        if self._current.count:
            await self._write(self._current)
            written, self._current = self._current.count, _Batch()
            async with self._progress:
                self._written += written
                self._progress.notify_all()

    async def _write(self, batch: _Batch) -> None:
        try:
            async with self._pool.connection() as connection:
                await connection.execute(_WRITE, batch.columns())
        except psycopg.OperationalError:
            raise
        except Exception:
            log.exception("write live frames failed", extra={"frames": batch.count})
