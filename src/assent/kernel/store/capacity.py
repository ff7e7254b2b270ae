"""Whether Postgres has room for the connections of one more process. Checked once, when a process starts."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx

log = logging.getLogger(__name__)

_CAPACITY = """
    SELECT current_setting('max_connections')::int
        - current_setting('superuser_reserved_connections')::int
        - coalesce(current_setting('reserved_connections', true)::int, 0) AS allowed,
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()) AS used
"""


@dataclass(frozen=True, slots=True)
class Capacity:
    """Connections that Postgres allows to ordinary roles, and those in use."""

    allowed: int
    used: int

    def lack(self, budget: int) -> str | None:
        """Why a process with this budget may run out of connections."""
        if budget > self.allowed:
            return "Postgres allows fewer connections than this process may open"
        if budget > self.allowed - self.used:
            return "Postgres has fewer connections left than this process may open"
        return None


async def warn_of_lack(store: Store, budget: int) -> None:
    """Logs a warning. A process that lacks connections still works: it is slower, and requests can fail with 503."""
    capacity = await store.read(None, _capacity)
    if (lack := capacity.lack(budget)) is not None:
        facts = {"database_connections": budget, "allowed": capacity.allowed, "used": capacity.used}
        log.warning("%s: lower database_connections, or raise max_connections", lack, extra=facts)


def _capacity(tx: Tx) -> Capacity:
    row = tx.sql(_CAPACITY).first()
    assert row is not None
    return Capacity(row.allowed, row.used)
