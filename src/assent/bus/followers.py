"""Who follows a run or a thread over the table: knows how far it has read, and reads on when there is news."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from assent.domain.frames import END, Frame, seen_from_thread

_AT_ONCE = 256
_MOST_RUNS = 256


@dataclass(frozen=True, slots=True)
class Row:
    tenant: str
    thread_id: str
    at: datetime
    frame: Frame


class Source(Protocol):
    async def read(self, run_id: str, after: int, limit: int) -> list[Row]: ...

    async def position(self, run_id: str) -> int: ...

    async def mark_shown(self, row: Row) -> None: ...

    def leave(self, follower: TableFollower) -> None: ...


class TableFollower:
    def __init__(self, source: Source, topic: str, *, after: int | None) -> None:
        self._source = source
        self.topic = topic
        self._of_thread = topic.startswith("thread:")
        self._positions: dict[str, int] = {} if after is None else {topic: after}
        self._news: dict[str, int | None] = {}
        self._has_news = asyncio.Event()
        self._ready: deque[Frame] = deque()

    def look_at(self, run_id: str, first: int | None) -> None:
        """There are frames of this run, the first new one with this number; None where that is not known."""
        known = self._news.get(run_id)
        self._news[run_id] = first if known is None else known
        self._has_news.set()

    async def look(self) -> None:
        """Something may have been missed. Who wants only what is to come gets all that comes from here on, however late
        they begin to read."""
        if not self._of_thread and self.topic not in self._positions:
            self._positions[self.topic] = await self._source.position(self.topic)
        for run_id in list(self._positions) if self._of_thread else [self.topic]:
            self.look_at(run_id, None)

    async def next(self) -> Frame:
        while not self._ready:
            await self._has_news.wait()
            await self._read_on()
        return self._ready.popleft()

    async def end(self) -> Frame:
        while (frame := await self.next()).event != END:
            pass
        return frame

    def close(self) -> None:
        self._source.leave(self)

    async def _read_on(self) -> None:
        """Reads about one run. Cut short by an error or a time-out, the news stays news."""
        run_id, first = next(iter(self._news.items()))
        del self._news[run_id]
        try:
            rows = await self._rows(run_id, first)
        except BaseException:
            self._news.setdefault(run_id, first)
            raise
        if len(rows) == _AT_ONCE:
            self._news.setdefault(run_id, first)
        if not self._news:
            self._has_news.clear()
        self._ready.extend(seen_from_thread(row.frame, run_id) if self._of_thread else row.frame for row in rows)

    async def _rows(self, run_id: str, first: int | None) -> list[Row]:
        after = self._positions.get(run_id)
        if after is None:
            after = await self._source.position(run_id) if first is None else first - 1
        rows = await self._source.read(run_id, after, _AT_ONCE)
        if rows and rows[-1].frame.event == END and b'"__interrupt__"' in rows[-1].frame.data and not self._of_thread:
            await self._source.mark_shown(rows[-1])
        self._move(run_id, rows[-1].frame.seq if rows else after)
        return rows

    def _move(self, run_id: str, seq: int) -> None:
        self._positions[run_id] = seq
        if len(self._positions) > _MOST_RUNS:
            del self._positions[next(iter(self._positions))]
