"""Keeps what is kept within its limits: ended sessions go, event payloads beyond their retention are erased."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from assent.domain.access import operator
from assent.ports import Store
from assent.services.audit import Audit
from assent.store import sessions


@dataclass(frozen=True, slots=True)
class Pruned:
    sessions: int
    event_payloads: int


class Retention:
    def __init__(self, store: Store, audit: Audit, *, event_payloads: timedelta | None) -> None:
        self._store = store
        self._audit = audit
        self._event_payloads = event_payloads

    async def prune(self) -> Pruned:
        ended = await self._store.write(None, sessions.delete_expired)
        return Pruned(ended, await self._expire_payloads())

    async def _expire_payloads(self) -> int:
        if self._event_payloads is None:
            return 0
        tenants = await self._audit.tenants()
        return sum([await self._audit.expire_payloads(operator(tenant), self._event_payloads) for tenant in tenants])
