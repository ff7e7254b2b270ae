"""Sends the outbox: one sender per process, woken by each commit that adds a delivery.

It claims due deliveries, passes each to the carrier of its kind, and records the result. Nothing is lost with the
process: a claim lasts only as long as its lease. Several senders on one Postgres share the work; on SQLite there is
one, and it releases the claims of its predecessor at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from random import SystemRandom

from assent.errors import Unavailable
from assent.kernel.background import Repeating
from assent.kernel.store.ports import Store
from assent.outbox import deliveries
from assent.outbox.model import ANSWER, RESUME, WEBHOOK, Delivery, Failure, delay_after

log = logging.getLogger(__name__)

Carry = Callable[[Delivery], Awaitable[Failure | None]]
"""Delivers to the target; returns None on success."""

LEASE = timedelta(seconds=30)  # well above a carrier's timeout
SHORT_LEASE = timedelta(seconds=5)
"""For deliveries within this database: an agent waits for them, so a dead sender must not hold them for long."""
LOOK_EVERY = 5.0  # for the rows of other processes: manual retries, expired claims
_CONCURRENCY = 16
_PER_TARGET = 4
_SHORTEST_PAUSE = 0.05
_AFTER_TROUBLE = 1.0


class Sender:
    def __init__(
        self, store: Store, carriers: Mapping[str, Carry], *, alone: bool, concurrency: int = _CONCURRENCY
    ) -> None:
        self._store = store
        self._carriers = carriers
        leases = {kind: SHORT_LEASE if kind == RESUME else LEASE for kind in carriers}
        elsewhere = [{kind: lease for kind, lease in leases.items() if kind == far} for far in (ANSWER, WEBHOOK)]
        here = {kind: lease for kind, lease in leases.items() if kind not in (ANSWER, WEBHOOK)}
        self._lanes = [lane for lane in (here, *elsewhere) if lane]
        """Kinds with their leases. A remote receiver that does not answer must not delay decisions."""
        self._alone = alone
        self._concurrency = concurrency
        self._under_way: dict[asyncio.Task[None], Delivery] = {}
        self._claiming = Repeating("sender", self._round)

    async def open(self) -> None:
        if self._alone:
            await self._store.write(None, deliveries.release_all)
        self._store.bells[deliveries.BELL] = self.wake
        self._claiming.start()

    async def close(self, *, patience: float = 5.0) -> None:
        """Waits a while for current deliveries; the rest is handed back for the next sender."""
        self._store.bells.pop(deliveries.BELL, None)
        await self._claiming.finish()  # not cancelled: claims of the last round must be sent or handed back
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=patience)
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    def wake(self) -> None:
        self._claiming.wake()

    async def _round(self) -> float:
        """Starts due deliveries, and returns how long to sleep. Each delivery that ends wakes the sender."""
        return min([await self._round_of(lane) for lane in self._lanes], default=LOOK_EVERY)

    async def _round_of(self, lane: Mapping[str, timedelta]) -> float:
        under_way = sum(delivery.kind in lane for delivery in self._under_way.values())
        room = min(self._concurrency - under_way, _PER_TARGET)
        if room == 0:
            return LOOK_EVERY
        claimed, wait = await self._store.write(None, deliveries.claim, leases=lane, busy=self._busy(), limit=room)
        for delivery in claimed:
            self._start(delivery)
        if claimed:
            return 0
        return LOOK_EVERY if wait is None else min(max(wait.total_seconds(), _SHORTEST_PAUSE), LOOK_EVERY)

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

    async def _carry_later(self, delivery: Delivery, error: Unavailable) -> None:
        """Our own database is unavailable. The target has refused nothing, so there is no growing back-off."""
        facts = {"delivery": delivery.id, "reason": error.message}
        log.warning("deliver failed: database unavailable", extra=facts)
        await asyncio.sleep(_AFTER_TROUBLE * (0.5 + SystemRandom().random()))
        await self._store.write(delivery.tenant, deliveries.hand_back, delivery)

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
