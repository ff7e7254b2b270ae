"""Live frames within one process, in bounded queues, so that slow readers do not delay new frames for long.

A follower subscribes before its run is created, so that it misses nothing. After a burst, a run waits for fast
followers; one that falls too far behind is disconnected to limit memory. A resumable stream can be resumed from the
table, and its frames are kept here until they are stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress

from assent.kernel.store.ports import Store
from assent.threads.bus import FellBehind
from assent.threads.model.frames import END, Frame, Stream, Topic, seen_from_thread
from assent.threads.rows import frames

_DEEPEST = 2048
_QUICK = 1000.0
"""Frames per second. Runs wait for followers that read this fast; for slower ones, one second in total."""
_KEEP_EVERY = 64


class Follower:
    """One follower of one topic."""

    def __init__(self, bus: MemoryBus, topic: Topic, *, only_end: bool = False) -> None:
        self._bus = bus
        self.topic = topic
        self.only_end = only_end
        self._frames: asyncio.Queue[Frame] = asyncio.Queue(_DEEPEST)
        self._fell_behind = False
        self._taken = asyncio.Event()
        self._credit = 1.0

    def push(self, frame: Frame) -> None:
        if self._frames.full():
            self._fell_behind = True
        if not self._fell_behind:
            self._frames.put_nowait(frame)

    async def next(self) -> Frame:
        if self._fell_behind and self._frames.empty():
            raise FellBehind
        frame = await self._frames.get()
        self._taken.set()
        return frame

    @property
    def is_behind(self) -> bool:
        return self._credit > 0 and self._frames.qsize() > _DEEPEST // 2

    async def catch_up(self) -> None:
        """Waits for the follower as long as its credit lasts; slow reading uses up the credit."""
        began, left = asyncio.get_running_loop().time(), self._frames.qsize()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._credit):
                while self._frames.qsize() > _DEEPEST // 4:
                    self._taken.clear()
                    await self._taken.wait()
        spent = asyncio.get_running_loop().time() - began
        self._credit -= max(spent - (left - self._frames.qsize()) / _QUICK, 0)

    async def end(self) -> Frame:
        while (frame := await self.next()).event != END:
            pass
        return frame

    def close(self) -> None:
        self._bus.leave(self)


class MemoryBus:
    shared = False

    def __init__(self, store: Store) -> None:
        self._store = store
        self._followers: dict[Topic, set[Follower]] = {}
        self._unkept: dict[Topic, list[Frame]] = {}

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    def follow(self, topic: Topic, *, after: int = 0, only_end: bool = False) -> Follower:
        follower = self._follower(topic, only_end=only_end)
        for frame in self._unkept.get(topic, ()):
            if frame.seq > after:
                follower.push(frame)
        return follower

    async def follow_now(self, topic: Topic) -> Follower:
        return self._follower(topic)

    def leave(self, follower: Follower) -> None:
        followers = self._followers.get(follower.topic, set())
        followers.discard(follower)
        if not followers:
            self._followers.pop(follower.topic, None)

    def is_followed(self, topic: Topic) -> bool:
        return topic in self._followers

    def is_read(self, stream: Stream) -> bool:
        return stream.resumable or any(not follower.only_end for follower in self._followers_of(stream))

    async def publish(self, stream: Stream, frame: Frame) -> None:
        self._push(stream, frame)
        for follower in [follower for follower in self._followers_of(stream) if follower.is_behind]:
            await follower.catch_up()
        if stream.resumable:
            unkept = self._unkept.setdefault(stream.topic, [])
            unkept.append(frame)
            if len(unkept) >= _KEEP_EVERY:
                await self.flush(stream)

    async def flush(self, stream: Stream) -> None:
        batch = list(self._unkept.get(stream.topic, ()))
        if batch:
            await self._store.write(stream.tenant, frames.append, stream, batch)
            self._drop_stored(stream.topic, batch[-1].seq)

    async def end(self, stream: Stream, *last: Frame) -> None:
        for frame in last:
            self._push(stream, frame)
        self._followers.pop(stream.topic, None)
        self._unkept.pop(stream.topic, None)

    def _follower(self, topic: Topic, *, only_end: bool = False) -> Follower:
        follower = Follower(self, topic, only_end=only_end)
        self._followers.setdefault(topic, set()).add(follower)
        return follower

    def _push(self, stream: Stream, frame: Frame) -> None:
        for follower in self._followers.get(stream.topic, ()):
            follower.push(frame)
        for follower in self._followers.get(stream.thread_topic, ()):
            follower.push(seen_from_thread(frame, stream.run_id))

    def _followers_of(self, stream: Stream) -> Iterator[Follower]:
        yield from self._followers.get(stream.topic, ())
        yield from self._followers.get(stream.thread_topic, ())

    def _drop_stored(self, topic: Topic, upto: int) -> None:
        left = [frame for frame in self._unkept.pop(topic, ()) if frame.seq > upto]
        if left:
            self._unkept[topic] = left
