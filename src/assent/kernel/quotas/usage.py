"""Counts the usage of tenants for the quotas, and logs a warning where a tenant is near one."""

from __future__ import annotations

import logging

from assent.kernel.quotas import quotas
from assent.kernel.store.ports import Store

log = logging.getLogger(__name__)

_NEAR = 0.8


class UsageCount:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._warned: set[tuple[str, str]] = set()

    async def refresh(self) -> None:
        counted = await self._store.read(None, quotas.count)
        self._store.usage.threads = counted.threads
        self._store.usage.stored_bytes = counted.stored_bytes
        limits = self._store.limits
        self._warn("threads", counted.threads, limits.threads)
        self._warn("stored_bytes", counted.stored_bytes, limits.stored_bytes)

    def _warn(self, quota: str, used: dict[str, int], limit: int) -> None:
        for tenant, number in used.items():
            near, warned = number >= _NEAR * limit, (quota, tenant) in self._warned
            if near and not warned:
                facts = {"tenant": tenant, "quota": quota, "used": number, "limit": limit}
                log.warning("tenant is near its quota", extra=facts)
                self._warned.add((quota, tenant))
            elif not near:
                self._warned.discard((quota, tenant))
