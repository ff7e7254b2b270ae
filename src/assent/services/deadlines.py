"""Time: what happens to items that nobody decides. One look at the table of due things, whoever makes it.

Woken by every change of an item in this process, and by the clock. Each due item is handled in a transaction of its
own that looks again, so several processes on one database do not get in each other's way. Nothing in here approves.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from datetime import datetime, timedelta

from assent.domain.items import Due, Item
from assent.domain.policies import Deciders
from assent.domain.questions import Resolution
from assent.domain.terms import Terms, next_due
from assent.ports import Store
from assent.services.deciding import withdraw
from assent.store import events, items
from assent.store.transaction import Tx

log = logging.getLogger(__name__)

LOOK_EVERY = timedelta(seconds=30)  # for what other processes have changed
_AT_ONCE = 100
_SHORTEST_PAUSE = timedelta(milliseconds=20)
_SYSTEM = "system"


class Deadlines:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._awake = asyncio.Event()
        self._rounds: asyncio.Task[None] | None = None
        self._wakes_at: datetime | None = None

    async def open(self) -> None:
        self._store.bells[items.BELL] = self._awake.set
        self._rounds = asyncio.create_task(self._go_round(), name="deadlines")

    async def close(self) -> None:
        self._store.bells.pop(items.BELL, None)
        if self._rounds is not None:
            self._rounds.cancel()
            with suppress(asyncio.CancelledError):
                await self._rounds

    async def look(self) -> timedelta:
        """Does what is due now, and says how long nothing else will be."""
        while True:
            (due, following), now = await self._store.read(None, lambda tx: (items.due(tx, _AT_ONCE), tx.now()))
            for tenant, item_id in due:
                await self._store.write(tenant, act, item_id)
            if len(due) < _AT_ONCE:
                break
        if due:
            return _SHORTEST_PAUSE
        return LOOK_EVERY if following is None else min(max(following - now, _SHORTEST_PAUSE), LOOK_EVERY)

    async def _go_round(self) -> None:
        while True:
            self._awake.clear()
            try:
                pause = await self.look()
            except Exception:  # whatever ails the store, time must go on when it is over
                log.warning("deadlines cannot be looked at", exc_info=True)
                pause = timedelta(seconds=1)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause.total_seconds()):
                    await self._awake.wait()


def act(tx: Tx, item_id: str) -> None:
    """Does what time has to do about one item, if it still has to."""
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
        _remind(tx, item)


def _remind(tx: Tx, item: Item) -> None:
    items.change(tx, item, **_following(item))
    events.append(tx, _SYSTEM, "item.reminded", item.subject, {"recipient": item.recipient})


def _escalate(tx: Tx, item: Item) -> None:
    """Others may decide as well from now on, and it is addressed to them."""
    terms = Terms.from_json(item.policy)
    recipient = _named(terms.escalate_to)
    items.change(tx, item, recipient=recipient, policy={**item.policy, "escalated": True}, **_following(item))
    events.append(tx, _SYSTEM, "item.escalated", item.subject, {"from": item.recipient, "to": recipient})


def _following(item: Item) -> dict[str, datetime | Due | None]:
    assert item.due_at is not None
    plan = Terms.from_json(item.policy).schedule(item.created_at, item.expires_at)
    due_at, due = next_due(plan, item.due_at)
    return {"due_at": due_at, "due": due}


def _named(deciders: Deciders) -> str | None:
    return next(iter((*deciders.people, *deciders.groups, *deciders.roles)), None)
