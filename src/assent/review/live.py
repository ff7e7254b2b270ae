"""Streams live changes of items to watchers, from the timeline of their tenant.

One reader per tenant and process serves all its watchers. A commit of this process wakes it immediately; commits of
other processes are found by polling several times a second, while there are watchers. A watcher resumes from the number
of its last event; a watcher that reads too slowly is disconnected, and resumes like that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from assent.errors import NotFound
from assent.identity.access import renewed
from assent.identity.model.access import Principal, Scope
from assent.kernel import events
from assent.kernel.background import Repeating, every
from assent.kernel.events import Entry
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.review.inbox import Inbox
from assent.review.item_views import summary
from assent.review.rows import items
from assent.review.watchers import CHECK_EVERY, Change, Watcher, Watchers

LOOK_EVERY = 0.25
_AT_ONCE = 200
_PREFIX = "item:"


class Live:
    def __init__(self, store: Store, inbox: Inbox) -> None:
        self._store = store
        self._inbox = inbox
        self._tails = dict[str, _Tail]()
        self._closed = False

    def open(self) -> None:
        self._closed = False
        self._store.bells[events.BELL] = self._wake

    async def close(self) -> None:
        """Disconnects the watchers, which reconnect after the next start."""
        self._closed = True
        self._store.bells.pop(events.BELL, None)
        for tail in self._tails.values():
            tail.close()

    async def renewed(self, caller: Principal) -> Principal:
        """The caller with the rights of now; raises if the credential was revoked or has expired."""
        return await renewed(self._store, caller)

    def follow(self, caller: Principal, *, after: int | None = None) -> AsyncIterator[Change | None]:
        """Changes since `after`, or from now on; None periodically as a heartbeat. Missing rights raise before the
        stream opens."""
        caller.require(Scope.ITEMS_READ)
        return self._follow(caller, after)

    async def _follow(self, caller: Principal, after: int | None) -> AsyncIterator[Change | None]:
        seq = await self._store.read(caller.tenant, position) if after is None else after
        tail = self._tails.setdefault(caller.tenant, _Tail(self._store, caller.tenant))
        if self._closed:
            return
        with tail.watched(caller) as watcher:
            await tail.ready.wait()  # later changes reach the watcher; earlier ones are read below
            while (missed := await self._store.read(caller.tenant, _changes, seq)).last > seq:
                seq = missed.last
                for change in missed.changes:
                    if watcher.ended:
                        return
                    if await self._shown(caller, change):
                        yield change
            async for news in watcher.changes():
                if news is None or (news.seq > seq and await self._shown(caller, news)):
                    yield news

    async def _shown(self, caller: Principal, change: Change) -> bool:
        """Users of the project's own auth handlers see only the items that these allow."""
        if caller.user is None:
            return True
        try:
            await self._inbox.get(caller, change.item["id"])
        except NotFound:
            return False
        return True

    def _wake(self) -> None:
        for tail in self._tails.values():
            tail.wake()


class _Tail:
    """The end of a tenant's timeline, read by one task while there are watchers."""

    def __init__(self, store: Store, tenant: str) -> None:
        self._store = store
        self._tenant = tenant
        self._watchers = Watchers()
        self._seq: int | None = None
        self._reading = Repeating(f"timeline of {tenant}", self._read, longest_retry=LOOK_EVERY)
        self._guarding = Repeating(
            f"watchers of {tenant}", every(CHECK_EVERY, partial(self._watchers.disconnect_lost, store))
        )
        self.ready = asyncio.Event()

    @contextmanager
    def watched(self, caller: Principal) -> Iterator[Watcher]:
        watcher = Watcher(caller)
        self._watchers.add(watcher)
        self._start()
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)
            if not self._watchers:
                self.stop()

    def close(self) -> None:
        for watcher in self._watchers:
            watcher.end()
        self.stop()

    def wake(self) -> None:
        self._reading.wake()

    def stop(self) -> None:
        self._reading.cancel()
        self._guarding.cancel()

    def _start(self) -> None:
        if not self._reading.running:
            self.ready.clear()
            self._seq = None
            self._reading.start()
            self._guarding.start()

    async def _read(self) -> float:
        seq = self._seq
        self._seq = await self._store.read(self._tenant, position) if seq is None else await self._pass_on(seq)
        self.ready.set()
        return LOOK_EVERY

    async def _pass_on(self, seq: int) -> int:
        batch = await self._store.read(self._tenant, _changes, seq)
        for change in batch.changes:
            for watcher in self._watchers:
                watcher.push(change)
        return batch.last


@dataclass(frozen=True, slots=True)
class _Batch:
    """A part of the timeline: its changes, and the number of its last event. Events of deleted items are skipped, and
    do not block later ones."""

    last: int
    changes: list[Change]


def position(tx: Tx) -> int:
    """The number of the last event so far: later changes are those after it."""
    head = events.head(tx)
    return head.seq if head else 0


def _changes(tx: Tx, after: int) -> _Batch:
    entries = events.after(tx, after, _PREFIX, _AT_ONCE)
    changes = (_change(tx, entry) for entry in entries)
    last = entries[-1][0].seq if entries else after
    return _Batch(last, [change for change in changes if change is not None])


def _change(tx: Tx, entry: Entry) -> Change | None:
    event, _ = entry
    item = items.get(tx, event.subject.removeprefix(_PREFIX))
    return Change(event.seq, event.kind, event.actor, event.at.isoformat(), summary(tx, item)) if item else None
