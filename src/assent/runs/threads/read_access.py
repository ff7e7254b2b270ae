"""Continued access to a followed thread.

A stream outlives the authentication of its request. Before a frame is passed on, the reader's credential and the
thread's visibility are checked again, at most once a second for each credential and thread; an idle stream is checked
every few seconds. Users of the project's own auth handlers have no credential of Assent: the handlers are asked again.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from assent.errors import AssentError, Forbidden
from assent.identity.access import holder
from assent.identity.model.access import Principal, Scope
from assent.identity.model.visibility import Visible
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.threads.access import ThreadAccess
from assent.threads.bus import Subscription
from assent.threads.model.frames import END, Frame
from assent.threads.rows import threads

_CHECK_EVERY = 1.0
_CHECK_IDLE_EVERY = 2.0
"""More often than the heartbeats of streams: each of them begins a new wait for a frame."""
_MOST_REMEMBERED = 4096


class ReadAccess:
    def __init__(self, store: Store, may: ThreadAccess) -> None:
        self._store = store
        self._may = may
        self._checked = dict[tuple[str | None, str, str], float]()

    def guard(self, subscription: Subscription, caller: Principal, thread_id: str) -> Subscription:
        """The subscription, which raises `Forbidden` as soon as the caller may no longer read the thread."""
        return _Guarded(subscription, self, caller, thread_id)

    async def require(self, caller: Principal, thread_id: str) -> None:
        key = (caller.credential, caller.actor, thread_id)
        if time.monotonic() - self._checked.get(key, -_CHECK_EVERY) < _CHECK_EVERY:
            return
        self._checked.pop(key, None)
        if not await self._holds(caller, thread_id):
            raise Forbidden("your access to this thread has ended")
        if len(self._checked) >= _MOST_REMEMBERED:
            self._checked.clear()
        self._checked[key] = time.monotonic()

    async def _holds(self, caller: Principal, thread_id: str) -> bool:
        current: Principal | None = caller
        if caller.credential is not None:
            current = await self._store.read(None, holder, caller.credential)
        if current is None or not (current.may(Scope.ITEMS_READ) or current.may(Scope.RUNS_WRITE)):
            return False
        try:
            visible = await self._may.read(current, thread_id)
        except AssentError:
            return False
        return await self._store.read(caller.tenant, _is_visible, thread_id, visible)


class _Guarded:
    def __init__(self, inner: Subscription, access: ReadAccess, caller: Principal, thread_id: str) -> None:
        self._inner = inner
        self._access = access
        self._caller = caller
        self._thread_id = thread_id
        self._frame: Frame | None = None
        self._checked = time.monotonic()

    async def next(self) -> Frame:
        """A frame whose check was cancelled is returned next."""
        while self._frame is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_CHECK_IDLE_EVERY):
                    self._frame = await self._inner.next()
            await self._require()
        frame, self._frame = self._frame, None
        return frame

    async def end(self) -> Frame:
        while self._frame is None or self._frame.event != END:
            self._frame = await self._inner.end()
        await self._require()
        last, self._frame = self._frame, None
        return last

    def close(self) -> None:
        self._inner.close()

    async def _require(self) -> None:
        """The access was checked when the stream was opened."""
        if time.monotonic() - self._checked >= _CHECK_EVERY:
            await self._access.require(self._caller, self._thread_id)
            self._checked = time.monotonic()


def _is_visible(tx: Tx, thread_id: str, visible: Visible | None) -> bool:
    """Also true for a deleted thread: its stream ends by itself."""
    thread = threads.get(tx, thread_id, values=False)
    return thread is None or thread.shown_to(visible)
