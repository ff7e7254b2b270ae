"""Fires crons: starts a run at every due time, once, in whichever process is first.

The run and the cron's next due time are written in one transaction that locks the cron, so a process that dies leaves
either both or neither. A due time without a run is counted as missed, with the reason: no server was there, the run was
refused, or the cron's author may no longer start runs.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timedelta

from assent.errors import AssentError, Unavailable
from assent.identity.mandates import Mandates
from assent.identity.model.access import system
from assent.kernel import events
from assent.kernel.background import Repeating, each
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.runs.crons.payloads import request_of
from assent.runs.runs import Runs
from assent.threads.model.crons import MOST_COUNTED, CatchUp, Cron, Turn, turn
from assent.threads.rows import crons

log = logging.getLogger(__name__)

LOOK_EVERY = timedelta(seconds=5)  # for crons of other processes
_AT_ONCE = 100
_SHORTEST_PAUSE = timedelta(milliseconds=20)
_UNKNOWN = "starting its run failed; the server's log has the reason"

Due = tuple[str, str]
"""A tenant and a cron of it."""


class Firing:
    def __init__(self, store: Store, runs: Runs, mandates: Mandates, *, catch_up: CatchUp = CatchUp.LATEST) -> None:
        self._store = store
        self._runs = runs
        self._mandates = mandates
        self._catch_up = catch_up
        self.looking = Repeating("crons", self._look)

    async def open(self) -> None:
        self._store.bells[crons.BELL] = self.looking.wake
        self.looking.start()

    async def close(self) -> None:
        self._store.bells.pop(crons.BELL, None)
        await self.looking.stop()

    async def look(self) -> timedelta:
        """Fires the crons that are due now, and returns the time until the next one."""
        while True:
            (due, following), now = await self._store.read(None, lambda tx: (crons.due(tx, _AT_ONCE), tx.now()))
            shuffled = random.sample(due, len(due))  # processes that look at once begin with different ones
            await each("crons", shuffled, self._act, on_failure=self._fail)
            if len(due) < _AT_ONCE:
                break
        if due:
            return _SHORTEST_PAUSE
        return LOOK_EVERY if following is None else min(max(following - now, _SHORTEST_PAUSE), LOOK_EVERY)

    async def _look(self) -> float:
        return (await self.look()).total_seconds()

    async def _act(self, due: Due) -> None:
        tenant, cron_id = due
        cron, now = await self._store.read(tenant, lambda tx: (crons.get(tx, cron_id), tx.now()))
        if cron is None or not cron.is_due(now):
            return
        current = turn(cron, now, self._catch_up)
        if current.due is None:
            await self._store.write(tenant, _pass, cron, current, _lateness(current) or "")
            return
        try:
            caller = await self._store.read(tenant, self._mandates.holder, cron.mandate)
            request = request_of(asdict(cron), current.due)
            await self._runs.create_if(caller, cron.thread_id, request, self._claim(cron, current))
        except Unavailable:
            raise
        except AssentError as error:
            await self._store.write(tenant, _pass, cron, _unfired(current), error.message)

    async def _fail(self, due: Due) -> None:
        """Counts a due time as missed after an unexpected error, so that the others go on."""
        tenant, cron_id = due
        cron, now = await self._store.read(tenant, lambda tx: (crons.get(tx, cron_id), tx.now()))
        if cron is not None and cron.is_due(now):
            current = turn(cron, now, CatchUp.LATEST)
            await self._store.write(tenant, _pass, cron, _unfired(current), _UNKNOWN)

    def _claim(self, read: Cron, current: Turn) -> Callable[[Tx, str], bool]:
        def claim(tx: Tx, run_id: str) -> bool:
            """Whether this process fires the cron. Moves it to its next due time."""
            cron = _taken(tx, read)
            if cron is None:
                return False
            self._mandates.holder(tx, cron.mandate)
            crons.fired(tx, cron, current, run_id, _lateness(current))
            return True

        return claim


def _pass(tx: Tx, read: Cron, current: Turn, reason: str) -> None:
    """Counts the due times up to now as missed."""
    cron = _taken(tx, read)
    if cron is None:
        return
    crons.passed(tx, cron, current, reason)
    facts = {"cron": cron.id, "missed": current.missed, "reason": reason, "tenant": tx.tenant}
    log.warning("cron missed a due time", extra=facts)
    if cron.problem != reason:  # once for a row of failures
        told = {"due": _text(cron.next_run_at), "missed": current.missed, "reason": reason}
        events.append(tx, system(tx.tenant), "cron.missed", f"cron:{cron.id}", told)


def _unfired(current: Turn) -> Turn:
    """The latest due time is missed too."""
    return Turn(None, current.missed + 1, current.following)


def _taken(tx: Tx, read: Cron) -> Cron | None:
    """The cron, locked, if it is still as it was read and no other process fires it."""
    cron = crons.take(tx, read.id)
    if cron is None or not cron.is_due(tx.now()):
        return None
    unchanged = (cron.next_run_at, cron.updated_at) == (read.next_run_at, read.updated_at)
    return cron if unchanged else None


def _lateness(current: Turn) -> str | None:
    if not current.missed:
        return None
    number = f"at least {MOST_COUNTED}" if current.missed >= MOST_COUNTED else str(current.missed)
    return f"no server was there to fire it in time: {number} due times had no run"


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
