"""Followers of a run or a thread that read from the table: each has a position and reads on after a notice."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from assent.threads.model.frames import END, Frame, Topic, seen_from_thread

_AT_ONCE = 256
_MOST_RUNS = 256


@dataclass(frozen=True, slots=True)
class Row:
    tenant: str
    thread_id: str
    at: datetime
    frame: Frame


class Source(Protocol):
    async def read(self, tenant: str, run_id: str, after: int, limit: int) -> list[Row]: ...

    async def position(self, tenant: str, run_id: str) -> int: ...

    async def mark_shown(self, row: Row) -> None: ...

    def leave(self, follower: TableFollower) -> None: ...


class TableFollower:
    def __init__(self, source: Source, topic: Topic, *, after: int | None) -> None:
        self._source = source
        self.topic = topic
        self._positions: dict[str, int] = {} if after is None else {topic.id: after}
        self._news: dict[str, int | None] = {}
        self._has_news = asyncio.Event()
        self._ready: deque[Frame] = deque()

    def look_at(self, run_id: str, first: int | None) -> None:
        """Announces frames of this run, beginning with this number; None if it is unknown."""
        earlier = self._news.get(run_id)
        self._news[run_id] = first if earlier is None else earlier
        self._has_news.set()

    async def look(self) -> None:
        """Announces frames that may have been missed. A follower that wants only new frames gets all frames from now
        on, however late it begins to read."""
        topic = self.topic
        if not topic.of_thread and topic.id not in self._positions:
            self._positions[topic.id] = await self._source.position(topic.tenant, topic.id)
        for run_id in list(self._positions) if topic.of_thread else [topic.id]:
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
        """Reads the frames of one run. After an error or a timeout, the notice is kept."""
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
        self._ready.extend(seen_from_thread(row.frame, run_id) if self.topic.of_thread else row.frame for row in rows)

    async def _rows(self, run_id: str, first: int | None) -> list[Row]:
        after = self._positions.get(run_id)
        if after is None:
            after = await self._source.position(self.topic.tenant, run_id) if first is None else first - 1
        rows = await self._source.read(self.topic.tenant, run_id, after, _AT_ONCE)
        if rows and not self.topic.of_thread and _asks(rows[-1].frame):
            await self._source.mark_shown(rows[-1])
        self._move(run_id, rows[-1].frame.seq if rows else after)
        return rows

    def _move(self, run_id: str, seq: int) -> None:
        self._positions[run_id] = seq
        if len(self._positions) > _MOST_RUNS:
            del self._positions[next(iter(self._positions))]


def _asks(frame: Frame) -> bool:
    return frame.event == END and b'"__interrupt__"' in frame.data
