"""Live changes of items, for those who watch: the timeline of their tenant, read on as it grows.

One reader per tenant and process serves every watcher here. A commit of this process wakes it at once; what other
processes commit is found by looking several times a second, for as long as somebody watches. The number of an event
is what a watcher that was away goes on from; one that reads too slowly is let go, and comes back like that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from assent.domain.access import Principal, Scope
from assent.errors import NotFound
from assent.ports import Store
from assent.services.inbox import Inbox
from assent.services.item_views import summary
from assent.services.watchers import Change, Watcher, Watchers
from assent.store import events, items
from assent.store.events import Entry
from assent.store.transaction import Tx

log = logging.getLogger(__name__)

LOOK_EVERY = 0.25
_AT_ONCE = 200
_PREFIX = "item:"


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
        with tail.watched(caller) as watcher:
            await tail.ready.wait()  # from here on it misses nothing; what was before is read below
            while (missed := await self._store.read(caller.tenant, _changes, seq)).last > seq:
                seq = missed.last
                for change in missed.changes:
                    if watcher.ended:
                        return
                    if await self._shown(caller, change):
                        yield change
            async for heard in watcher.heard():
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


class _Tail:
    """The end of a tenant's timeline, read by one task while anyone watches."""

    def __init__(self, store: Store, tenant: str) -> None:
        self._store = store
        self._tenant = tenant
        self._watchers = Watchers()
        self._tasks = list[asyncio.Task[None]]()
        self.grown = asyncio.Event()
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

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()

    def _start(self) -> None:
        if not self._tasks:
            self.ready.clear()
            name = f"live {self._tenant}"
            self._tasks = [
                asyncio.create_task(self._read(), name=name),
                asyncio.create_task(self._watchers.guard(self._store), name=f"{name} guard"),
            ]

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
        found = await self._store.read(self._tenant, _changes, seq)
        for change in found.changes:
            for watcher in self._watchers:
                watcher.tell(change)
        return found.last


@dataclass(frozen=True, slots=True)
class _Batch:
    """A piece of the timeline: what there is to tell of it, and how far it goes. What happened to items that are gone
    is passed over, and does not hold up what came after."""

    last: int
    changes: list[Change]


def _head(tx: Tx) -> int:
    head = events.head(tx)
    return head.seq if head else 0


def _changes(tx: Tx, after: int) -> _Batch:
    entries = events.after(tx, after, _PREFIX, _AT_ONCE)
    found = (_change(tx, entry) for entry in entries)
    last = entries[-1][0].seq if entries else after
    return _Batch(last, [change for change in found if change is not None])


def _change(tx: Tx, entry: Entry) -> Change | None:
    event, _ = entry
    item = items.get(tx, event.subject.removeprefix(_PREFIX))
    return Change(event.seq, event.kind, event.actor, event.at.isoformat(), summary(item)) if item else None
