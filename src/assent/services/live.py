"""Live changes of items, for those who watch: the timeline of their tenant, read on as it grows.

One reader per tenant and process serves every watcher here. A commit of this process wakes it at once; what other
processes commit is found by looking several times a second, for as long as somebody watches. The number of an event
is what a watcher that was away goes on from; one that reads too slowly is let go, and comes back like that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from assent.domain.access import Principal, Scope
from assent.errors import NotFound
from assent.ports import Store
from assent.services.inbox import Inbox
from assent.services.item_views import View, summary
from assent.store import events, items
from assent.store.events import Entry
from assent.store.transaction import Tx

log = logging.getLogger(__name__)

LOOK_EVERY = 0.25
HEARTBEAT = 15.0
_AT_ONCE = 200
_MOST_UNREAD = 500
_PREFIX = "item:"


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to an item, and how it stands now."""

    seq: int
    kind: str
    actor: str
    at: str
    item: View

    def told(self) -> dict[str, Any]:
        return {"kind": self.kind, "actor": self.actor, "at": self.at, "item": self.item}


Watcher = asyncio.Queue[Change | None]
"""None: it fell behind, and nothing more will come."""


class Live:
    def __init__(self, store: Store, inbox: Inbox) -> None:
        self._store = store
        self._inbox = inbox
        self._tails = dict[str, _Tail]()

    def open(self) -> None:
        self._store.bells[events.BELL] = self._wake

    async def close(self) -> None:
        self._store.bells.pop(events.BELL, None)
        for tail in self._tails.values():
            tail.stop()

    def follow(self, caller: Principal, *, after: int | None = None) -> AsyncIterator[Change | None]:
        """Changes since `after`, or from now on; None every now and then, to show that the line is alive. Who may not
        look is told so before the line is open."""
        caller.require(Scope.ITEMS_READ)
        return self._follow(caller, after)

    async def _follow(self, caller: Principal, after: int | None) -> AsyncIterator[Change | None]:
        seq = await self._store.read(caller.tenant, _head) if after is None else after
        tail = self._tails.setdefault(caller.tenant, _Tail(self._store, caller.tenant))
        with tail.watched() as watcher:
            await tail.ready.wait()  # from here on it misses nothing; what was before is read below
            while missed := await self._store.read(caller.tenant, _changes, seq):
                for change in missed:
                    seq = change.seq
                    if await self._shown(caller, change):
                        yield change
            async for heard in _heard(watcher):
                if heard is None or (heard.seq > seq and await self._shown(caller, heard)):
                    yield heard

    async def _shown(self, caller: Principal, change: Change) -> bool:
        """A user of the project's own auth handlers sees what those show."""
        if caller.user is None:
            return True
        try:
            await self._inbox.get(caller, change.item["id"])
        except NotFound:
            return False
        return True

    def _wake(self) -> None:
        for tail in self._tails.values():
            tail.grown.set()


async def _heard(watcher: Watcher) -> AsyncIterator[Change | None]:
    while True:
        try:
            async with asyncio.timeout(HEARTBEAT):
                change = await watcher.get()
        except TimeoutError:
            yield None
            continue
        if change is None:
            return
        yield change


class _Tail:
    """The end of a tenant's timeline, read by one task while anyone watches."""

    def __init__(self, store: Store, tenant: str) -> None:
        self._store = store
        self._tenant = tenant
        self._watchers = set[Watcher]()
        self._reading: asyncio.Task[None] | None = None
        self.grown = asyncio.Event()
        self.ready = asyncio.Event()

    def watched(self) -> _Watch:
        return _Watch(self)

    def join(self) -> Watcher:
        watcher = Watcher(_MOST_UNREAD)
        self._watchers.add(watcher)
        if self._reading is None:
            self.ready.clear()
            self._reading = asyncio.create_task(self._read(), name=f"live {self._tenant}")
        return watcher

    def leave(self, watcher: Watcher) -> None:
        self._watchers.discard(watcher)
        if not self._watchers:
            self.stop()

    def stop(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    async def _read(self) -> None:
        seq: int | None = None
        while True:
            self.grown.clear()
            try:
                seq = await self._store.read(self._tenant, _head) if seq is None else await self._pass_on(seq)
                self.ready.set()
            except Exception:  # whatever ails the store, those who watch hear on when it is over
                log.warning("the timeline cannot be read", exc_info=True)
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY):
                    await self.grown.wait()

    async def _pass_on(self, seq: int) -> int:
        for change in await self._store.read(self._tenant, _changes, seq):
            seq = change.seq
            for watcher in list(self._watchers):
                self._tell(watcher, change)
        return seq

    def _tell(self, watcher: Watcher, change: Change) -> None:
        try:
            watcher.put_nowait(change)
        except asyncio.QueueFull:
            self._watchers.discard(watcher)
            watcher.get_nowait()
            watcher.put_nowait(None)


class _Watch:
    def __init__(self, tail: _Tail) -> None:
        self._tail = tail

    def __enter__(self) -> Watcher:
        self._watcher = self._tail.join()
        return self._watcher

    def __exit__(self, *_: object) -> None:
        self._tail.leave(self._watcher)


def _head(tx: Tx) -> int:
    head = events.head(tx)
    return head.seq if head else 0


def _changes(tx: Tx, after: int) -> list[Change]:
    found = (_change(tx, entry) for entry in events.after(tx, after, _PREFIX, _AT_ONCE))
    return [change for change in found if change is not None]


def _change(tx: Tx, entry: Entry) -> Change | None:
    event, _ = entry
    item = items.get(tx, event.subject.removeprefix(_PREFIX))
    return Change(event.seq, event.kind, event.actor, event.at.isoformat(), summary(item)) if item else None
