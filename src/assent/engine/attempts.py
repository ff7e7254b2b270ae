"""An attempt through what happens around it: a cancellation at the wrong moment, a database that is away for a while.

What has begun in a transaction is followed to its end, so that no run is left marked as running with nobody at it. An
attempt that the database cut off is followed by the next one, in the same place, as soon as the database answers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar

from assent.domain.runs import Run
from assent.errors import Unavailable
from assent.ports import Store
from assent.store import runs
from assent.store.checkpoints import Attempt
from assent.store.transaction import Tx

log = logging.getLogger(__name__)

Execute = Callable[[str, Run], Awaitable[None]]
P = ParamSpec("P")
T = TypeVar("T")

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0


class Attempts:
    """What both queues do with a run whose turn it is."""

    def __init__(self, store: Store, execute: Execute) -> None:
        self._store = store
        self._execute = execute
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """From now on nothing is tried again: this process ends, and what is left will be found."""
        self._stopping.set()

    async def begin(
        self, tenant: str, function: Callable[Concatenate[Tx, P], Run | None], *args: P.args, **kwargs: P.kwargs
    ) -> Run | None:
        """Starts an attempt by `runs.begin`, or a function around it. Cancelled meanwhile, it gives back what it has
        started."""
        write = partial(self._store.write, tenant, function, *args, **kwargs)
        starting = asyncio.ensure_future(self._patiently(write))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            run = await starting
            if run is not None:
                await self._store.write(tenant, runs.hand_back, Attempt(run.id, run.attempt))
            raise

    async def carry(self, tenant: str, run: Run) -> None:
        """Executes a run that was begun until it has ended, was taken over, or is handed back."""
        current: Run | None = run
        while current is not None:
            try:
                return await self._execute(tenant, current)
            except Unavailable as error:
                log.warning("an attempt was cut off", extra={"run_id": run.id, "reason": error.message})
            held = Attempt(current.id, current.attempt)
            current = await self._patiently(partial(self._store.write, tenant, runs.begin_again, held))
        log.warning("attempt was taken over", extra={"run_id": run.id})

    async def _patiently(self, action: Callable[[], Awaitable[T]]) -> T:
        return await patiently(action, stopping=self._stopping)


async def patiently(
    action: Callable[[], Awaitable[T]], *, stopping: asyncio.Event | None = None, most_seconds: float = float("inf")
) -> T:
    """Tries again for as long as the database is away."""
    loop, stopping, pause = asyncio.get_running_loop(), stopping or asyncio.Event(), _FIRST_PAUSE
    give_up = loop.time() + most_seconds
    while True:
        try:
            return await action()
        except Unavailable as error:
            if stopping.is_set() or loop.time() > give_up:
                raise
            log.warning("the database is away", extra={"reason": error.message})
        with suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


async def to_the_end(action: Coroutine[Any, Any, T]) -> T:
    """Runs it to its end, whoever cancels meanwhile."""
    task = asyncio.ensure_future(action)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task])
    return task.result()
