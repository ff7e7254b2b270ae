"""The bus as use cases need it: live frames of runs and threads, published and followed."""

from __future__ import annotations

from typing import Protocol

from assent.threads.model.frames import Frame, Stream, Topic


class FellBehind(Exception):
    """This follower missed frames: it reads too slowly, or the connection that announces frames was lost."""


class Subscription(Protocol):
    """One follower of one topic."""

    async def next(self) -> Frame:
        """Waits for the next frame. `FellBehind` where the bus cannot wait for this follower."""
        ...

    async def end(self) -> Frame:
        """Waits for the end and skips everything before it."""
        ...

    def close(self) -> None: ...


class Bus(Protocol):
    """Publishes live frames of a run to its followers, in this or another process."""

    @property
    def shared(self) -> bool:
        """Whether followers may be in other processes. They read the table, so the end must be in it when the run has
        ended; the process that delivers the end marks its questions as shown."""
        ...

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    def follow(self, topic: Topic, *, after: int = 0, only_end: bool = False) -> Subscription:
        """Frames of a run with a higher number than `after`, as far as they are not in the table already. Follow before
        creating a run, and nothing is missed. `only_end`: the frames before the end may be left out."""
        ...

    async def follow_now(self, topic: Topic) -> Subscription:
        """Frames that are published after this returns. `Unavailable` where they could be missed."""
        ...

    def is_followed(self, topic: Topic) -> bool:
        """Whether someone in this process follows the run, and will be given its end by `end`."""
        ...

    def is_read(self, stream: Stream) -> bool:
        """Whether frames before the end have a reader, now or later. The others need not be published."""
        ...

    async def publish(self, stream: Stream, frame: Frame) -> None: ...

    async def flush(self, stream: Stream) -> None:
        """Returns when all published frames that belong in the table are there."""
        ...

    async def end(self, stream: Stream, *last: Frame) -> None:
        """Ends the stream after these frames: nothing will be published on it any more."""
        ...
