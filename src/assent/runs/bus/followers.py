"""Followers of a run or a thread that read from the table: each has a position and reads on after a notice."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from assent.threads.bus import FellBehind
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
    """Follows a run after this number, or after its last frame so far, or the later frames of a thread's runs."""

    def __init__(self, source: Source, topic: Topic, *, after: int | None) -> None:
        self._source = source
        self.topic = topic
        self._positions: dict[str, int] = {} if after is None else {topic.id: after}
        self._begun = after is not None
        self._fell_behind = False
        self._news: dict[str, int | None] = {}
        self._has_news = asyncio.Event()
        self._ready: deque[Frame] = deque()

    def look_at(self, run_id: str, first: int | None) -> None:
        """Announces frames of this run, beginning with this number; None if it is unknown."""
        earlier = self._news.get(run_id)
        self._news[run_id] = first if earlier is None else earlier
        self._has_news.set()

    async def begin(self) -> None:
        """Passes over the frames so far. The source must be listening: later frames are announced, and looked for if
        the source has to listen again meanwhile."""
        self._begun = True
        if not self.topic.of_thread:
            self._positions[self.topic.id] = await self._source.position(self.topic.tenant, self.topic.id)

    def look(self) -> None:
        """Announces frames that may have been missed. A thread may have runs that nobody has announced."""
        if not self._begun:
            return
        if self.topic.of_thread:
            self._fell_behind = True
            self._has_news.set()
        else:
            self.look_at(self.topic.id, None)

    async def next(self) -> Frame:
        while not self._ready:
            await self._has_news.wait()
            if self._fell_behind and not self._news:
                raise FellBehind
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
        if not self._news and not self._fell_behind:
            self._has_news.clear()
        self._ready.extend(seen_from_thread(row.frame, run_id) if self.topic.of_thread else row.frame for row in rows)

    async def _rows(self, run_id: str, first: int | None) -> list[Row]:
        after = self._positions.get(run_id, (first or 1) - 1)
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
