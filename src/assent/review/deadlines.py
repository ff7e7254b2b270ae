"""Deadlines: expires, escalates and reminds about items that are not decided in time.

Runs after every change of an item in this process, and periodically. Each due item gets its own transaction that
checks it again, so several processes may share one database. Nothing in here approves.
"""

from __future__ import annotations

from datetime import timedelta

from assent.kernel.background import Repeating, each
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.review import changes
from assent.review.decisions.decide import withdraw
from assent.review.model.items import Due, Item
from assent.review.model.lifecycle import Escalated, Reminded
from assent.review.model.policies import Deciders
from assent.review.model.questions import Resolution
from assent.review.model.search.terms import Terms
from assent.review.rows import items

LOOK_EVERY = timedelta(seconds=30)  # for changes by other processes
_AT_ONCE = 100
_SHORTEST_PAUSE = timedelta(milliseconds=20)
_AFTER_FAILURE = timedelta(minutes=5)
_SYSTEM = "system"


class Deadlines:
    def __init__(self, store: Store) -> None:
        self._store = store
        self.looking = Repeating("deadlines", self._look)

    async def open(self) -> None:
        self._store.bells[items.BELL] = self.looking.wake
        self.looking.start()

    async def close(self) -> None:
        self._store.bells.pop(items.BELL, None)
        await self.looking.stop()

    async def look(self) -> timedelta:
        """Handles the items that are due now, and returns the time until the next one."""
        while True:
            (due, following), now = await self._store.read(None, lambda tx: (items.due(tx, _AT_ONCE), tx.now()))
            await each("deadlines", due, self._act, on_failure=self._postpone)
            if len(due) < _AT_ONCE:
                break
        if due:
            return _SHORTEST_PAUSE
        return LOOK_EVERY if following is None else min(max(following - now, _SHORTEST_PAUSE), LOOK_EVERY)

    async def _look(self) -> float:
        return (await self.look()).total_seconds()

    async def _act(self, due: tuple[str, str]) -> None:
        tenant, item_id = due
        await self._store.write(tenant, act, item_id)

    async def _postpone(self, due: tuple[str, str]) -> None:
        """Retries a failed item later, after the others."""
        tenant, item_id = due
        await self._store.write(tenant, items.postpone, item_id, _AFTER_FAILURE)


def act(tx: Tx, item_id: str) -> None:
    """Expires, escalates or reminds about one item, if that is still due."""
    item = items.lock(tx, item_id)
    if item is None or item.due is None or item.due_at is None or item.due_at > tx.now():
        return
    if not item.status.open:
        items.change(tx, item, due_at=None, due=None)
    elif item.due is Due.EXPIRE:
        withdraw(tx, item, Resolution.EXPIRED, "nobody decided in time, so it has expired", actor=_SYSTEM)
    elif item.due is Due.ESCALATE:
        _escalate(tx, item)
    else:
        changes.apply(tx, _SYSTEM, item, Reminded())


def _escalate(tx: Tx, item: Item) -> None:
    """Lets more people decide, and addresses the item to them."""
    recipient = _named(Terms.from_json(item.policy).escalate_to)
    changes.apply(tx, _SYSTEM, item, Escalated(recipient=recipient))


def _named(deciders: Deciders) -> str | None:
    return next(iter((*deciders.people, *deciders.groups, *deciders.roles)), None)
