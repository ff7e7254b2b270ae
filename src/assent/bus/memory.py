"""Live frames within one process: bounded queues, the newest frame never waits for a slow reader.

A follower subscribes before its run is created, so that it misses nothing. One that falls too far behind is cut off
instead of growing memory; a resumable stream can be taken up again from the table, and what is on its way there is
kept here until it has arrived.
"""

from __future__ import annotations

import asyncio

from assent.domain.frames import END, Frame

_DEEPEST = 2048


class FellBehind(Exception):
    """This follower reads more slowly than the run writes."""


class Subscription:
    """One follower of one topic: a run's id, or `thread:` and a thread's."""

    def __init__(self, bus: MemoryBus, topic: str) -> None:
        self._bus = bus
        self.topic = topic
        self._frames: asyncio.Queue[Frame] = asyncio.Queue(_DEEPEST)
        self._fell_behind = False

    def push(self, frame: Frame) -> None:
        if self._frames.full():
            self._fell_behind = True
        if not self._fell_behind:
            self._frames.put_nowait(frame)

    async def next(self) -> Frame:
        if self._fell_behind and self._frames.empty():
            raise FellBehind
        return await self._frames.get()

    async def end(self) -> Frame:
        """Waits for the end and lets everything before it pass."""
        while (frame := await self.next()).event != END:
            pass
        return frame

    def close(self) -> None:
        self._bus.leave(self)


class MemoryBus:
    def __init__(self) -> None:
        self._followers: dict[str, set[Subscription]] = {}
        self._unkept: dict[str, list[Frame]] = {}

    def follow(self, topic: str, *, unkept: bool = False) -> Subscription:
        """Everything published from now on; with `unkept` also what a resumable stream has not written down yet."""
        subscription = Subscription(self, topic)
        for frame in self._unkept.get(topic, ()) if unkept else ():
            subscription.push(frame)
        self._followers.setdefault(topic, set()).add(subscription)
        return subscription

    def leave(self, subscription: Subscription) -> None:
        followers = self._followers.get(subscription.topic, set())
        followers.discard(subscription)
        if not followers:
            self._followers.pop(subscription.topic, None)

    def publish(self, topic: str, frame: Frame, *, unkept: bool = False) -> None:
        if unkept:
            self._unkept.setdefault(topic, []).append(frame)
        for subscription in self._followers.get(topic, ()):
            subscription.push(frame)

    def kept(self, topic: str, upto: int) -> None:
        """Frames up to this one are in the table now."""
        left = [frame for frame in self._unkept.pop(topic, ()) if frame.seq > upto]
        if left:
            self._unkept[topic] = left

    def forget(self, topic: str) -> None:
        """The run has ended and its followers have been told: nothing will be published here again."""
        self._followers.pop(topic, None)
        self._unkept.pop(topic, None)

    def is_followed(self, topic: str) -> bool:
        return topic in self._followers
