"""Server-sent events and long answers, as LangGraph's clients read them: frames, heartbeats, reconnection headers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import suppress

from fastapi.responses import StreamingResponse

from assent.domain.frames import END, STATE_UPDATE, Frame
from assent.ports import FellBehind, Subscription

_HEARTBEAT_SECONDS = 5.0
_SOON_SECONDS = 1.0
_SLOW = b'{"error":"SlowReader","message":"the stream was read too slowly and has been cut off"}'

OnGone = Callable[[], Awaitable[object]]


def sse(frames: AsyncIterator[bytes], location: str) -> StreamingResponse:
    headers = {"Cache-Control": "no-store", "Connection": "keep-alive", "X-Accel-Buffering": "no"}
    headers |= locations(location, "stream")
    return StreamingResponse(frames, media_type="text/event-stream", headers=headers)


def locations(location: str, following: str) -> dict[str, str]:
    """Where the run is, and where a client whose connection broke goes on."""
    return {"Content-Location": location, "Location": f"{location}/{following}"}


def encode(frame: Frame, *, with_id: bool) -> bytes:
    identity = f"\r\nid: {frame.id}" if with_id else ""
    return b"event: " + frame.event.encode() + b"\r\ndata: " + frame.data + identity.encode() + b"\r\n\r\n"


async def live(
    subscription: Subscription,
    *,
    with_id: bool,
    after: int = 0,
    modes: Collection[str] | None = None,
    on_gone: OnGone | None = None,
) -> AsyncIterator[bytes]:
    """Frames until the run ends, with heartbeats between. `on_gone` is called when the client leaves before that."""
    gone: OnGone | None = on_gone
    try:
        async for frame in _beating(subscription):
            if frame is None:
                yield b": heartbeat\r\n\r\n"
            elif frame.event == END:
                gone = None
                return
            elif frame.seq > after and wanted(frame, modes):
                yield encode(frame, with_id=with_id)
    except FellBehind:
        yield b"event: error\r\ndata: " + _SLOW + b"\r\n\r\n"
    finally:
        subscription.close()
        if gone is not None:
            await asyncio.shield(asyncio.ensure_future(_call(gone)))


async def soon(subscription: Subscription) -> bytes | None:
    """The run's result if it is there within a moment. Nothing has been answered by then, so nothing is listening for
    the client to leave, and no stream has to be opened: most of what a short run would cost."""
    try:
        async with asyncio.timeout(_SOON_SECONDS):
            last = await subscription.end()
    except (TimeoutError, FellBehind):
        return None
    except BaseException:
        subscription.close()
        raise
    subscription.close()
    return last.data


async def result(subscription: Subscription, *, on_gone: OnGone | None = None) -> AsyncIterator[bytes]:
    """The run's result as one JSON document; line breaks before it keep the connection alive."""
    gone: OnGone | None = on_gone
    try:
        async for frame in _beating(subscription):
            if frame is None:
                yield b"\n"
            elif frame.event == END:
                gone = None
                yield frame.data
                return
    finally:
        subscription.close()
        if gone is not None:
            await asyncio.shield(asyncio.ensure_future(_call(gone)))


async def of_thread(
    subscription: Subscription, modes: Collection[str], missed: Sequence[Frame] = ()
) -> AsyncIterator[bytes]:
    """A thread's runs one after another, for as long as the client listens; `missed` comes first, and only once."""
    sent = {frame.id for frame in missed}
    try:
        for frame in missed:
            if _is_news(frame, modes):
                yield encode(frame, with_id=True)
        async for fresh in _beating(subscription):
            if fresh is None:
                yield b": heartbeat\r\n\r\n"
            elif fresh.id not in sent and _is_news(fresh, modes):
                yield encode(fresh, with_id=True)
    except FellBehind:
        yield b"event: error\r\ndata: " + _SLOW + b"\r\n\r\n"
    finally:
        subscription.close()


def wanted(frame: Frame, modes: Collection[str] | None) -> bool:
    return modes is None or frame.event.partition("|")[0].partition("/")[0] in modes


def _is_news(frame: Frame, modes: Collection[str]) -> bool:
    if frame.event == STATE_UPDATE:
        return STATE_UPDATE in modes
    return "run_modes" in modes or ("lifecycle" in modes and frame.event == "metadata")


async def _beating(subscription: Subscription) -> AsyncIterator[Frame | None]:
    """Frames as they come, and None whenever nothing came for a while."""
    while True:
        frame: Frame | None = None
        with suppress(TimeoutError):
            async with asyncio.timeout(_HEARTBEAT_SECONDS):
                frame = await subscription.next()
        yield frame


async def _call(action: OnGone) -> None:
    await action()
