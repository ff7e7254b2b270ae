"""Enforces retention: removes ended sessions and memories, settled deliveries, old idempotent answers, closed items and
the frames of ended runs, and erases event payloads beyond their retention."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from assent.audit.service import Audit
from assent.identity.model.access import operator
from assent.identity.rows import challenges, sessions
from assent.kernel import events
from assent.kernel.store import idempotency
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.outbox import deliveries
from assent.review.rows import item_removal
from assent.threads.rows import frames
from assent.threads.rows.memory import items as memory

REMEMBER_REQUESTS = timedelta(days=2)
"""How long an Idempotency-Key returns the same answer."""

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
        await self._store.write(None, memory.delete_expired)  # not counted: callers could not read them any more
        await self._store.write(None, _prune_requests)
        await self._store.write(None, challenges.delete_expired)
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
        """In small batches, so that concurrent decisions do not wait."""
        removed = 0
        while batch := await self._store.write(tenant, _prune_items, older):
            removed += batch
        return removed

    async def _expire_payloads(self) -> int:
        if self._event_payloads is None:
            return 0
        tenants = await self._audit.tenants()
        return sum([await self._audit.expire_payloads(operator(tenant), self._event_payloads) for tenant in tenants])


def _prune_items(tx: Tx, older: timedelta) -> int:
    """Removes items with all dependent rows and erases the payloads of their events; the events stay and verify."""
    outdated = item_removal.outdated(tx, tx.now() - older, _AT_ONCE)
    entries = (entry for item_id in outdated for entry in events.of_subject(tx, f"item:{item_id}"))
    seqs = [event.seq for event, payload in entries if payload is not None]
    for item_id in outdated:
        item_removal.remove(tx, item_id)
    events.erase(tx, _SYSTEM, seqs, reason=f"retention of closed items, {older.days} days")
    if outdated:
        events.append(tx, _SYSTEM, "items.removed", "items", {"items": outdated})
    return len(outdated)


def _prune_requests(tx: Tx) -> int:
    return idempotency.prune(tx, tx.now() - REMEMBER_REQUESTS)


def _prune_frames(tx: Tx, older: timedelta) -> int:
    return frames.delete_outdated(tx, tx.now() - older)


def _prune_deliveries(tx: Tx, older: timedelta) -> int:
    return deliveries.prune(tx, tx.now() - older)
