"""Server-sent events and long responses for LangGraph's clients: frames, heartbeats, reconnection headers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import suppress

from fastapi.responses import StreamingResponse

from assent.errors import AssentError
from assent.kernel import jsonable
from assent.threads.bus import FellBehind, Subscription
from assent.threads.model.frames import END, STATE_UPDATE, Frame

_HEARTBEAT_SECONDS = 5.0
_SOON_SECONDS = 1.0
_SLOW = {"error": "SlowReader", "message": "the stream was read too slowly and was closed"}

OnGone = Callable[[], Awaitable[object]]


UNBUFFERED = {"Cache-Control": "no-store", "Connection": "keep-alive", "X-Accel-Buffering": "no"}
HEARTBEAT = b": heartbeat\r\n\r\n"


def sse(frames: AsyncIterator[bytes], location: str) -> StreamingResponse:
    headers = locations(location, "stream")
    return StreamingResponse(frames, media_type="text/event-stream", headers=UNBUFFERED | headers)


def locations(location: str, following: str) -> dict[str, str]:
    """The addresses of the run and of the stream that a disconnected client continues with."""
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
    """Frames until the run ends, with heartbeats. `on_gone` is called if the client disconnects before that."""
    gone: OnGone | None = on_gone
    try:
        async for frame in _beating(subscription, lambda frame: _is_live(frame, after, modes)):
            if frame is None:
                yield HEARTBEAT
            elif frame.event == END:
                gone = None
                return
            else:
                yield encode(frame, with_id=with_id)
    except (FellBehind, AssentError) as error:
        gone = gone if isinstance(error, FellBehind) else None
        yield _closing(error)
    finally:
        subscription.close()
        if gone is not None:
            await asyncio.shield(asyncio.ensure_future(_call(gone)))


async def soon(subscription: Subscription) -> bytes | None:
    """The run's result if the run ends within a second. A short run then needs no stream and no watch for a disconnect,
    which would be most of its cost."""
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
        async for frame in _beating(subscription, lambda frame: frame.event == END):
            if frame is None:
                yield b"\n"
            else:
                gone = None
                yield frame.data
                return
    except AssentError as error:
        gone = None
        yield jsonable.dump({"__error__": _shown(error)})
    finally:
        subscription.close()
        if gone is not None:
            await asyncio.shield(asyncio.ensure_future(_call(gone)))


async def of_thread(
    subscription: Subscription, modes: Collection[str], missed: Sequence[Frame] = ()
) -> AsyncIterator[bytes]:
    """Frames of a thread's runs while the client is connected; `missed` frames come first, without duplicates."""
    sent = {frame.id for frame in missed}
    try:
        for frame in missed:
            if _is_news(frame, modes):
                yield encode(frame, with_id=True)
        async for fresh in _beating(subscription, lambda frame: frame.id not in sent and _is_news(frame, modes)):
            yield HEARTBEAT if fresh is None else encode(fresh, with_id=True)
    except (FellBehind, AssentError) as error:
        yield _closing(error)
    finally:
        subscription.close()


def _closing(error: FellBehind | AssentError) -> bytes:
    """The last event of a stream that its reader may not, or cannot, read on."""
    return b"event: error\r\ndata: " + jsonable.dump(_shown(error)) + b"\r\n\r\n"


def _shown(error: FellBehind | AssentError) -> dict[str, str]:
    return {"error": type(error).__name__, "message": error.message} if isinstance(error, AssentError) else _SLOW


def wanted(frame: Frame, modes: Collection[str] | None) -> bool:
    return modes is None or frame.event.partition("|")[0].partition("/")[0] in modes


def _is_live(frame: Frame, after: int, modes: Collection[str] | None) -> bool:
    return frame.event == END or (frame.seq > after and wanted(frame, modes))


def _is_news(frame: Frame, modes: Collection[str]) -> bool:
    if frame.event == STATE_UPDATE:
        return STATE_UPDATE in modes
    return "run_modes" in modes or ("lifecycle" in modes and frame.event == "metadata")


async def _beating(subscription: Subscription, is_sent: Callable[[Frame], bool]) -> AsyncIterator[Frame | None]:
    """The frames to send, and None as a heartbeat whenever no frame was sent for a while."""
    loop = asyncio.get_running_loop()
    due = loop.time() + _HEARTBEAT_SECONDS
    while True:
        frame: Frame | None = None
        with suppress(TimeoutError):
            async with asyncio.timeout_at(due):
                frame = await subscription.next()
        if frame is not None and is_sent(frame):
            yield frame
        elif loop.time() >= due:
            yield None
        else:
            continue
        due = loop.time() + _HEARTBEAT_SECONDS


async def _call(action: OnGone) -> None:
    await action()
