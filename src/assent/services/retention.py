"""Keeps what is kept within its limits: ended sessions and memories, settled deliveries, answers under old keys, closed
items and the frames of ended runs go, event payloads beyond their retention are erased."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from assent.domain.access import operator
from assent.ports import Store
from assent.services.audit import Audit
from assent.store import deliveries, events, frames, item_removal, memory, requests, sessions
from assent.store.transaction import Tx

REMEMBER_REQUESTS = timedelta(days=2)
"""How long an Idempotency-Key gives the same answer."""

_AT_ONCE = 100
_SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Pruned:
    sessions: int
    event_payloads: int
    deliveries: int
    frames: int
    items: int


class Retention:
    def __init__(
        self,
        store: Store,
        audit: Audit,
        *,
        event_payloads: timedelta | None,
        deliveries: timedelta,
        frames: timedelta,
        items: timedelta | None,
    ) -> None:
        self._store = store
        self._audit = audit
        self._event_payloads = event_payloads
        self._deliveries = deliveries
        self._frames = frames
        self._items = items

    async def prune(self) -> Pruned:
        await self._store.write(None, memory.delete_expired)  # not counted: for everyone they were gone already
        await self._store.write(None, _prune_requests)
        ended = await self._store.write(None, sessions.delete_expired)
        settled = await self._store.write(None, _prune_deliveries, self._deliveries)
        outdated = await self._store.write(None, _prune_frames, self._frames)
        closed = await self._remove_items()
        return Pruned(ended, await self._expire_payloads(), settled, outdated, closed)

    async def _remove_items(self) -> int:
        if self._items is None:
            return 0
        return sum([await self._remove_items_of(tenant, self._items) for tenant in await self._audit.tenants()])

    async def _remove_items_of(self, tenant: str, older: timedelta) -> int:
        """A few at a time, so that whoever decides meanwhile does not wait."""
        removed = 0
        while found := await self._store.write(tenant, _prune_items, older):
            removed += found
        return removed

    async def _expire_payloads(self) -> int:
        if self._event_payloads is None:
            return 0
        tenants = await self._audit.tenants()
        return sum([await self._audit.expire_payloads(operator(tenant), self._event_payloads) for tenant in tenants])


def _prune_items(tx: Tx, older: timedelta) -> int:
    """Gone with all that hangs on them. The timeline still says what happened to each and by whom, and verifies; what
    the events quoted of it is erased."""
    gone = item_removal.outdated(tx, tx.now() - older, _AT_ONCE)
    told = (entry for item_id in gone for entry in events.of_subject(tx, f"item:{item_id}"))
    quoted = [event.seq for event, payload in told if payload is not None]
    for item_id in gone:
        item_removal.remove(tx, item_id)
    events.erase(tx, _SYSTEM, quoted, reason=f"retention of closed items, {older.days} days")
    if gone:
        events.append(tx, _SYSTEM, "items.removed", "items", {"items": gone})
    return len(gone)


def _prune_requests(tx: Tx) -> int:
    return requests.prune(tx, tx.now() - REMEMBER_REQUESTS)


def _prune_frames(tx: Tx, older: timedelta) -> int:
    return frames.delete_outdated(tx, tx.now() - older)


def _prune_deliveries(tx: Tx, older: timedelta) -> int:
    return deliveries.prune(tx, tx.now() - older)
