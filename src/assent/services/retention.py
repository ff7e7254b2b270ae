"""Keeps what is kept within its limits: ended sessions and memories, settled deliveries, answers under old keys and the
frames of ended runs go, event payloads beyond their retention are erased."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from assent.domain.access import operator
from assent.ports import Store
from assent.services.audit import Audit
from assent.store import deliveries, frames, memory, requests, sessions
from assent.store.transaction import Tx

REMEMBER_REQUESTS = timedelta(days=2)
"""How long an Idempotency-Key gives the same answer."""


@dataclass(frozen=True, slots=True)
class Pruned:
    sessions: int
    event_payloads: int
    deliveries: int
    frames: int


class Retention:
    def __init__(
        self,
        store: Store,
        audit: Audit,
        *,
        event_payloads: timedelta | None,
        deliveries: timedelta,
        frames: timedelta,
    ) -> None:
        self._store = store
        self._audit = audit
        self._event_payloads = event_payloads
        self._deliveries = deliveries
        self._frames = frames

    async def prune(self) -> Pruned:
        await self._store.write(None, memory.delete_expired)  # not counted: for everyone they were gone already
        await self._store.write(None, _prune_requests)
        ended = await self._store.write(None, sessions.delete_expired)
        settled = await self._store.write(None, _prune_deliveries, self._deliveries)
        outdated = await self._store.write(None, _prune_frames, self._frames)
        return Pruned(ended, await self._expire_payloads(), settled, outdated)

    async def _expire_payloads(self) -> int:
        if self._event_payloads is None:
            return 0
        tenants = await self._audit.tenants()
        return sum([await self._audit.expire_payloads(operator(tenant), self._event_payloads) for tenant in tenants])


def _prune_requests(tx: Tx) -> int:
    return requests.prune(tx, tx.now() - REMEMBER_REQUESTS)


def _prune_frames(tx: Tx, older: timedelta) -> int:
    return frames.delete_outdated(tx, tx.now() - older)


def _prune_deliveries(tx: Tx, older: timedelta) -> int:
    return deliveries.prune(tx, tx.now() - older)
