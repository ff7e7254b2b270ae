"""Those who watch live changes: what each of them has not read yet, and whether they may still look.

A line stays open long after its request was let in, so the credential that opened it is asked for again every second,
once for all the lines it opened. A line whose key was revoked, whose session has ended, whose person was disabled or
may not read any more is closed. A user of the project's own auth handlers comes back through the handler instead: their
line is closed after a minute.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any

from assent.domain.access import Principal, Scope
from assent.ports import Store
from assent.services.access import holder
from assent.services.item_views import View
from assent.store.transaction import Tx

log = logging.getLogger(__name__)

CHECK_EVERY = 1.0
HEARTBEAT = 15.0
HANDLED_FOR = 60.0
_MOST_UNREAD = 500


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


class Watcher:
    def __init__(self, caller: Principal) -> None:
        self.caller = caller
        self.ended = False
        self._unread = asyncio.Queue[Change | None](_MOST_UNREAD)
        self._until = time.monotonic() + HANDLED_FOR if caller.user is not None else None

    @property
    def must_come_back(self) -> bool:
        return self._until is not None and time.monotonic() > self._until

    def tell(self, change: Change) -> None:
        """One that reads too slowly is let go."""
        if self._unread.full():
            self.end()
        elif not self.ended:
            self._unread.put_nowait(change)

    def end(self) -> None:
        """Nothing more is told from here on, not even what was on its way."""
        self.ended = True
        while not self._unread.empty():
            self._unread.get_nowait()
        self._unread.put_nowait(None)

    async def heard(self) -> AsyncIterator[Change | None]:
        """What it is told, and None every now and then, to show that the line is alive."""
        while not self.ended:
            try:
                async with asyncio.timeout(HEARTBEAT):
                    change = await self._unread.get()
            except TimeoutError:
                yield None
                continue
            if change is not None:
                yield change


class Watchers(set[Watcher]):
    """Everyone who watches one tenant."""

    async def guard(self, store: Store) -> None:
        while True:
            await asyncio.sleep(CHECK_EVERY)
            try:
                await self._let_go(store)
            except Exception:  # a store that cannot be read has no news either
                log.warning("whether those who watch still may cannot be read", exc_info=True)

    async def _let_go(self, store: Store) -> None:
        held = {one.caller.credential for one in self if one.caller.credential}
        lost = await store.read(None, _lost, held) if held else frozenset()
        for watcher in list(self):
            if watcher.caller.credential in lost or watcher.must_come_back:
                self.discard(watcher)
                watcher.end()


def _lost(tx: Tx, credentials: Iterable[str]) -> frozenset[str]:
    """Those that let nobody look any more. Needs a transaction across tenants."""
    return frozenset(one for one in credentials if not _may_look(holder(tx, one)))


def _may_look(principal: Principal | None) -> bool:
    return principal is not None and principal.may(Scope.ITEMS_READ)
