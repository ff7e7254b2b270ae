"""The end of a run is not lost if the wait for it is cancelled while it is checked or masked for its reader."""

import asyncio
from typing import Any

import pytest

from assent.review.threads.secrets import _Following
from assent.runs.threads.read_access import _Guarded
from assent.threads.model.frames import END, Frame

LAST = Frame(2, END, b"{}", "1-2")


class Run:
    """A subscription whose last frame is read once, as from a queue."""

    def __init__(self) -> None:
        self._frames = [Frame(1, "values", b"{}", "1-1"), LAST]

    async def next(self) -> Frame:
        if not self._frames:
            await asyncio.Event().wait()
        return self._frames.pop(0)

    async def end(self) -> Frame:
        while (frame := await self.next()).event != END:
            pass
        return frame

    def close(self) -> None:
        return None


class Held:
    """Access and view at once: what they do for a frame ends when it is let go."""

    def __init__(self) -> None:
        self.begun, self.go = asyncio.Event(), asyncio.Event()

    async def require(self, *of_whom: Any) -> None:
        self.begun.set()
        await self.go.wait()

    async def frame(self, frame: Frame) -> Frame:
        await self.require()
        return frame


def guarded(held: Any) -> _Guarded:
    subscription = _Guarded(Run(), held, held, "thread")
    subscription._checked = float("-inf")
    return subscription


def followed(held: Any) -> _Following:
    return _Following(Run(), held)


@pytest.mark.parametrize("opened", [guarded, followed])
@pytest.mark.parametrize("again", ["end", "next"])
async def test_end_of_a_cancelled_wait_is_returned_next(opened: Any, again: str) -> None:
    held = Held()
    subscription = opened(held)
    waiting = asyncio.create_task(subscription.end())
    await held.begun.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    held.go.set()
    async with asyncio.timeout(90):
        assert await getattr(subscription, again)() == LAST


async def test_frame_that_was_ready_when_its_wait_was_cancelled_is_returned_next() -> None:
    held = Held()
    subscription = followed(held)
    waiting = asyncio.create_task(subscription.end())
    await held.begun.wait()
    assert subscription._showing is not None
    subscription._showing.add_done_callback(lambda _: waiting.cancel())  # before the wait goes on
    held.go.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    async with asyncio.timeout(90):
        assert await subscription.end() == LAST
