"""Heartbeats of calls that processes elsewhere make: a call whose heartbeats stop is in doubt.

Looks when the next attempt may be overdue, and periodically, because other processes start calls too. Several servers
may share one database: each grant is given up once.
"""

from __future__ import annotations

from datetime import timedelta

from assent.kernel.background import Repeating, each
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.review import thread_items
from assent.review.rows import grants

_LOOK_EVERY = timedelta(seconds=5)
_SHORTEST_PAUSE = timedelta(milliseconds=100)
_AT_ONCE = 100


class Heartbeats:
    def __init__(self, store: Store) -> None:
        self._store = store
        self.looking = Repeating("heartbeats", self._look)

    async def open(self) -> None:
        self.looking.start()

    async def close(self) -> None:
        await self.looking.stop()

    async def look(self) -> timedelta:
        """Gives up silent attempts, and returns the time until the next look."""
        (silent, following), now = await self._store.read(None, lambda tx: (grants.silent(tx, _AT_ONCE), tx.now()))
        await each("heartbeats", silent, self._give_up)
        if silent:
            return _SHORTEST_PAUSE
        return _LOOK_EVERY if following is None else min(max(following - now, _SHORTEST_PAUSE), _LOOK_EVERY)

    async def _look(self) -> float:
        return (await self.look()).total_seconds()

    async def _give_up(self, silent: tuple[str, str]) -> None:
        tenant, grant_id = silent
        await self._store.write(tenant, give_up, grant_id)


def give_up(tx: Tx, grant_id: str) -> None:
    """The process of the call is gone, or cannot be reached: whether the call ran is unknown."""
    grant = grants.give_up(tx, grant_id)
    if grant is not None:
        thread_items.cut_off(tx, [grant], thread_items.SYSTEM)
