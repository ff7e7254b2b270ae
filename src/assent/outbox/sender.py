"""Sends the outbox: one sender per process, woken by each commit that adds a delivery.

It claims due deliveries, passes each to the carrier of its kind, and records the result. Nothing is lost with the
process: a claim lasts only as long as its lease. Several senders on one Postgres share the work; on SQLite there is
one, and it releases the claims of its predecessor at once.

A new delivery within this database needs no claim: it arrives, or not, in one transaction. A claim follows only where
that did not succeed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from random import SystemRandom

from assent.errors import Unavailable
from assent.kernel.background import Repeating
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.outbox import deliveries
from assent.outbox.model import ANSWER, RESUME, WEBHOOK, Delivery, Due, Failure, NotCarried, delay_after

log = logging.getLogger(__name__)

Carry = Callable[[Delivery], Awaitable[Failure | None]]
"""Delivers to the target; returns None on success."""
Arrive = Callable[[Tx, Delivery], bool]
"""Delivers within the transaction; returns whether it could."""

LEASE = timedelta(seconds=30)  # well above a carrier's timeout
SHORT_LEASE = timedelta(seconds=5)
"""For deliveries within this database: an agent waits for them, so a dead sender must not hold them for long."""
LOOK_EVERY = 5.0  # for the rows of other processes: manual retries, expired claims
_CONCURRENCY = 16
_PER_TARGET = 4
_SHORTEST_PAUSE = 0.05
_AFTER_TROUBLE = 1.0


@dataclass(frozen=True, slots=True)
class _Lane:
    """Kinds with their leases, and what may be claimed of them now."""

    leases: Mapping[str, timedelta]
    busy: Sequence[str] = ()
    room: int = 0


class Sender:
    def __init__(
        self,
        store: Store,
        carriers: Mapping[str, Carry],
        *,
        alone: bool,
        at_once: Mapping[str, Arrive] | None = None,
        concurrency: int = _CONCURRENCY,
    ) -> None:
        """`at_once`: the kinds whose deliveries are within this database."""
        self._store = store
        self._carriers = carriers
        self._at_once = at_once or {}
        leases = {kind: SHORT_LEASE if kind == RESUME else LEASE for kind in carriers}
        elsewhere = [{kind: lease for kind, lease in leases.items() if kind == far} for far in (ANSWER, WEBHOOK)]
        here = {kind: lease for kind, lease in leases.items() if kind not in (ANSWER, WEBHOOK)}
        self._lanes = [lane for lane in (here, *elsewhere) if lane]
        """Kinds with their leases. A remote receiver that does not answer must not delay decisions."""
        self._alone = alone
        self._concurrency = concurrency
        self._under_way: dict[asyncio.Task[None], Delivery] = {}
        self._arriving: set[asyncio.Task[None]] = set()
        self._crowded = False
        """Whether deliveries may wait for the end of one that is under way."""
        self._claiming = Repeating("sender", self._round)

    async def open(self) -> None:
        if self._alone:
            await self._store.write(None, deliveries.release_all)
        self._store.bells[deliveries.BELL] = self._rung
        self._claiming.start()

    async def close(self, *, patience: float = 5.0) -> None:
        """Waits a while for current deliveries; the rest is handed back for the next sender."""
        self._store.bells.pop(deliveries.BELL, None)
        await self._claiming.finish()  # not cancelled: claims of the last round must be sent or handed back
        tasks = [*self._under_way, *self._arriving]
        if tasks:
            await asyncio.wait(tasks, timeout=patience)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def wake(self) -> None:
        self._claiming.wake()

    def _rung(self, *new: Due) -> None:
        at_once = [due for due in new if due.kind in self._at_once][: self._concurrency - len(self._arriving)]
        for due in at_once:
            task = asyncio.create_task(self._arrive(due), name=f"delivery {due.id}")
            self._arriving.add(task)
            task.add_done_callback(self._arriving.discard)
        if not at_once or len(at_once) < len(new):
            self.wake()

    async def _arrive(self, due: Due) -> None:
        """A failure of any kind changes nothing: the claim that follows meets it again, and records it."""
        try:
            delivery = await self._store.write(due.tenant, deliveries.arrive, due.id, self._at_once[due.kind])
        except Exception as error:  # noqa: BLE001 - as said
            if not isinstance(error, NotCarried):
                log.info("deliver at once failed", extra={"delivery": due.id, "reason": repr(error)})
            self.wake()
        else:
            if delivery is not None:
                _log_result(delivery, None)

    async def _round(self) -> float:
        """Starts due deliveries, and returns how long to sleep."""
        lanes = [self._lane(leases) for leases in self._lanes]
        self._crowded = any(lane.busy or not lane.room for lane in lanes)
        free = [lane for lane in lanes if lane.room]
        claims, wait = await self._store.write(None, _claim, free)
        for delivery in chain.from_iterable(claims):
            self._start(delivery)
        if any(len(claimed) == lane.room for claimed, lane in zip(claims, free, strict=True)):  # there may be more
            return 0
        return LOOK_EVERY if wait is None else min(max(wait.total_seconds(), _SHORTEST_PAUSE), LOOK_EVERY)

    def _lane(self, leases: Mapping[str, timedelta]) -> _Lane:
        under_way = sum(delivery.kind in leases for delivery in self._under_way.values())
        return _Lane(leases, self._busy(), min(self._concurrency - under_way, _PER_TARGET))

    def _busy(self) -> list[str]:
        """Targets at their concurrency limit: a slow receiver must not delay the others."""
        targets = Counter(delivery.target for delivery in self._under_way.values())
        return [target for target, count in targets.items() if count >= _PER_TARGET]

    def _start(self, delivery: Delivery) -> None:
        task = asyncio.create_task(self._deliver(delivery), name=f"delivery {delivery.id}")
        self._under_way[task] = delivery
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._under_way[task]
        if self._crowded:
            self.wake()
        if not task.cancelled() and (error := task.exception()):
            log.error("record delivery result failed", exc_info=error)

    async def _deliver(self, delivery: Delivery) -> None:
        try:
            failure = await self._carried(delivery)
        except asyncio.CancelledError:
            await self._store.write(delivery.tenant, deliveries.hand_back, delivery)
            raise
        except Unavailable as error:
            return await self._carry_later(delivery, error)
        dice = SystemRandom().random()
        if await self._store.write(delivery.tenant, deliveries.settle, delivery, failure, dice=dice):
            _log_result(delivery, failure)
        if failure is not None:  # it may be due again before the next round
            self.wake()

    async def _carry_later(self, delivery: Delivery, error: Unavailable) -> None:
        """Our own database is unavailable. The target has refused nothing, so there is no growing back-off."""
        facts = {"delivery": delivery.id, "reason": error.message}
        log.warning("deliver failed: database unavailable", extra=facts)
        await asyncio.sleep(_AFTER_TROUBLE * (0.5 + SystemRandom().random()))
        await self._store.write(delivery.tenant, deliveries.hand_back, delivery)
        self.wake()

    async def _carried(self, delivery: Delivery) -> Failure | None:
        try:
            return await self._carriers[delivery.kind](delivery)
        except Unavailable:
            raise
        except Exception as error:  # a carrier's bug is a failed attempt, which is not repeated forever
            if _is_cancelled():  # a client or a driver may turn a cancellation into an error
                raise asyncio.CancelledError from error
            log.error("carrier failed", exc_info=error, extra={"delivery": delivery.id})
            return Failure("internal error; see the log")


def _claim(tx: Tx, lanes: Iterable[_Lane]) -> tuple[list[list[Delivery]], timedelta | None]:
    """The due deliveries of each lane, and the time until the next one is due."""
    claims = [deliveries.claim(tx, leases=lane.leases, busy=lane.busy, limit=lane.room) for lane in lanes]
    return [claimed for claimed, _ in claims], min((wait for _, wait in claims if wait is not None), default=None)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _log_result(delivery: Delivery, failure: Failure | None) -> None:
    facts = {"delivery": delivery.id, "subject": delivery.subject, "attempt": delivery.attempts}
    if failure is None:
        log.info("delivered", extra=facts)
    elif delay_after(delivery.attempts, failure, dice=0) is None:
        log.warning("deliver failed for good", extra=facts | {"reason": failure.reason})
    else:
        log.info("deliver failed, retrying later", extra=facts | {"reason": failure.reason})
