"""Empties the outbox: one sender per process, woken by the very commit that leaves something to send.

It claims what is due, hands each delivery to the carrier of its kind, and records how that ended. Nothing is lost with
the process: a claim lasts only as long as its lease. Several senders on one Postgres share the work; on SQLite there
is one, and what its predecessor left under way is taken up at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from random import SystemRandom

from assent.domain.deliveries import RESUME, Delivery, Failure, delay_after
from assent.ports import Store
from assent.store import deliveries

log = logging.getLogger(__name__)

Carry = Callable[[Delivery], Awaitable[Failure | None]]
"""Brings one delivery to its target; None where it has arrived."""

LEASE = timedelta(seconds=30)  # well above the time a carrier may take
SHORT_LEASE = timedelta(seconds=5)
"""Of what is carried by a transaction here: an agent waits for it, and whoever died with it must not keep it long."""
LOOK_EVERY = 5.0  # for what other processes left: retries by hand, claims of the dead
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
        self._leases = {kind: SHORT_LEASE if kind == RESUME else LEASE for kind in carriers}
        self._alone = alone
        self._concurrency = concurrency
        self._awake = asyncio.Event()
        self._under_way: dict[asyncio.Task[None], str] = {}
        self._rounds: asyncio.Task[None] | None = None
        self._closing = False

    async def open(self) -> None:
        if self._alone:
            await self._store.write(None, deliveries.release_all)
        self._store.bells[deliveries.BELL] = self.wake
        self._rounds = asyncio.create_task(self._go_round(), name="sender")

    async def close(self, *, patience: float = 5.0) -> None:
        """Lets what is under way arrive for a while; the rest is handed back and sent again by whoever comes next."""
        self._store.bells.pop(deliveries.BELL, None)
        self._closing = True
        self.wake()
        if self._rounds is not None:
            await self._rounds  # not cancelled: what it claims in its last round must be carried or handed back
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=patience)
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    def wake(self) -> None:
        self._awake.set()

    async def _go_round(self) -> None:
        while not self._closing:
            self._awake.clear()
            pause = await self._round()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._awake.wait()

    async def _round(self) -> float:
        """Starts what is due, and says how long to sleep unless woken. Each delivery that ends wakes the sender."""
        room = min(self._concurrency - len(self._under_way), _PER_TARGET)
        if room == 0:
            return LOOK_EVERY
        try:
            claimed, wait = await self._store.write(
                None, deliveries.claim, leases=self._leases, busy=self._busy(), limit=room
            )
        except Exception:  # whatever ails the store, the sender must be there when it is over
            log.warning("the outbox cannot be read", exc_info=True)
            return _AFTER_TROUBLE
        for delivery in claimed:
            self._start(delivery)
        if claimed:
            return 0
        return LOOK_EVERY if wait is None else min(max(wait.total_seconds(), _SHORTEST_PAUSE), LOOK_EVERY)

    def _busy(self) -> list[str]:
        """Targets that have their share: a slow receiver must not keep the others waiting."""
        return [target for target, count in Counter(self._under_way.values()).items() if count >= _PER_TARGET]

    def _start(self, delivery: Delivery) -> None:
        task = asyncio.create_task(self._deliver(delivery), name=f"delivery {delivery.id}")
        self._under_way[task] = delivery.target
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._under_way[task]
        self._awake.set()
        if not task.cancelled() and (error := task.exception()):
            log.error("how a delivery ended could not be recorded; it is sent again", exc_info=error)

    async def _deliver(self, delivery: Delivery) -> None:
        try:
            failure = await self._carried(delivery)
        except asyncio.CancelledError:
            await self._store.write(delivery.tenant, deliveries.hand_back, delivery)
            raise
        dice = SystemRandom().random()
        if await self._store.write(delivery.tenant, deliveries.settle, delivery, failure, dice=dice):
            _tell(delivery, failure)

    async def _carried(self, delivery: Delivery) -> Failure | None:
        try:
            return await self._carriers[delivery.kind](delivery)
        except Exception as error:  # a carrier's bug is a failed attempt, not one that is repeated for ever
            log.error("a carrier broke", exc_info=error, extra={"delivery": delivery.id})
            return Failure("something went wrong here; the log has it")


def _tell(delivery: Delivery, failure: Failure | None) -> None:
    facts = {"delivery": delivery.id, "subject": delivery.subject, "attempt": delivery.attempts}
    if failure is None:
        log.info("delivered", extra=facts)
    elif delay_after(delivery.attempts, failure, dice=0) is None:
        log.warning("a delivery failed for good", extra=facts | {"reason": failure.reason})
    else:
        log.info("a delivery has to wait", extra=facts | {"reason": failure.reason})
