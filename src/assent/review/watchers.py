"""Watchers of live changes: their unread changes, and their continued right to read.

A stream outlives the authentication of its request, so its credential is checked again every second, once for all its
streams. A stream is closed if its key was revoked, its session has ended, or its person was disabled or may no longer
read. A user of the project's own auth handlers must reconnect through the handler: their stream is closed after a
minute.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any

from assent.identity.access import holder
from assent.identity.model.access import Principal, Scope
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.review.item_views import View

CHECK_EVERY = 1.0
HEARTBEAT = 15.0
HANDLED_FOR = 60.0
_MOST_UNREAD = 500


@dataclass(frozen=True, slots=True)
class Change:
    """An event of an item, and the item's current state."""

    seq: int
    kind: str
    actor: str
    at: str
    item: View

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "actor": self.actor, "at": self.at, "item": self.item}


class Watcher:
    """Its queue is a list and a future: asyncio's takes three kilobytes, and most watchers wait most of the time."""

    __slots__ = ("_news", "_unread", "_until", "caller", "ended")

    def __init__(self, caller: Principal) -> None:
        self.caller = caller
        self.ended = False
        self._unread: list[Change] = []
        self._news: asyncio.Future[None] | None = None
        self._until = time.monotonic() + HANDLED_FOR if caller.user is not None else None

    @property
    def must_reconnect(self) -> bool:
        return self._until is not None and time.monotonic() > self._until

    def push(self, change: Change) -> None:
        """A watcher that reads too slowly is disconnected."""
        if len(self._unread) >= _MOST_UNREAD:
            self.end()
        elif not self.ended:
            self._unread.append(change)
            self._wake()

    def end(self) -> None:
        """Discards unread changes and ends the stream."""
        self.ended = True
        self._unread.clear()
        self._wake()

    async def changes(self) -> AsyncIterator[Change | None]:
        """The changes, and None periodically as a heartbeat."""
        while not self.ended:
            if not self._unread:
                await self._wait()
            if not self._unread and not self.ended:
                yield None
            while self._unread:
                yield self._unread.pop(0)

    async def _wait(self) -> None:
        """Until there is news, or until the next heartbeat."""
        loop = asyncio.get_running_loop()
        self._news = loop.create_future()
        heartbeat = loop.call_later(HEARTBEAT, self._wake)
        try:
            await self._news
        finally:
            heartbeat.cancel()
            self._news = None

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)


class Watchers(set[Watcher]):
    """All watchers of one tenant."""

    async def disconnect_lost(self, store: Store) -> None:
        """Disconnects watchers that may no longer read."""
        held = {watcher.caller.credential for watcher in self if watcher.caller.credential}
        lost = await store.read(None, _lost, held) if held else frozenset()
        for watcher in list(self):
            if watcher.caller.credential in lost or watcher.must_reconnect:
                self.discard(watcher)
                watcher.end()


def _lost(tx: Tx, credentials: Iterable[str]) -> frozenset[str]:
    """The credentials that no longer allow reading. Needs a transaction across tenants."""
    return frozenset(credential for credential in credentials if not _may_look(holder(tx, credential)))


def _may_look(principal: Principal | None) -> bool:
    return principal is not None and principal.may(Scope.ITEMS_READ)
