"""Attempts of runs that survive cancellations and an unavailable database.

A begun attempt is always ended or returned to the queue, so that no run stays marked as running without a worker. After
an attempt aborted by the database, this process starts the next one when the database is available again.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar

from assent.errors import Unavailable
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.threads.model.runs import Run
from assent.threads.rows import runs
from assent.threads.rows.state.checkpoints import Attempt, Fenced

log = logging.getLogger(__name__)

Execute = Callable[[str, Run], Awaitable[None]]
Holds = Callable[[str], bool]
P = ParamSpec("P")
T = TypeVar("T")

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0


class Attempts:
    """Execution of due runs, for both queues."""

    def __init__(self, store: Store, execute: Execute, holds: Holds = lambda graph_id: False) -> None:
        """`holds`: whether runs of a graph are not executed, because only another process can load it."""
        self._store = store
        self._execute = execute
        self._holds = holds
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Ends all retries, because this process is stopping. The remaining runs are rescued."""
        self._stopping.set()

    async def begin(
        self, tenant: str, function: Callable[Concatenate[Tx, P], Run | None], *args: P.args, **kwargs: P.kwargs
    ) -> Run | None:
        """Begins an attempt with `runs.begin` or a function around it. After a cancellation, returns the attempt to the
        queue."""
        write = partial(self._store.write, tenant, function, *args, **kwargs)
        starting = asyncio.ensure_future(self._retry(write))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            run = await starting
            if run is not None:
                await self._store.write(tenant, runs.hand_back, Attempt(run.id, run.attempt))
            raise

    async def wake(self, tenant: str, run_id: str) -> None:
        """A delayed run joins its thread's order. Nothing else looks for the run before the next start, so every error
        is retried until the store takes the write."""
        write = partial(self._store.write, tenant, runs.wake, run_id)
        await retry_while_unavailable(write, stopping=self._stopping, retry_on=Exception)

    def is_held(self, run: Run) -> bool:
        """Whether the run waits for its graph. A cancelled run ends without it."""
        return run.cancel is None and self._holds(run.graph_id)

    async def hold(self, tenant: str, run: Run) -> None:
        """Waits until this process stops or the run is cancelled, then returns the run to the queue."""
        log.warning("load graph failed, run is on hold", extra={"run_id": run.id, "graph_id": run.graph_id})
        try:
            await self._stopping.wait()
        finally:
            await uncancelled(self._store.write(tenant, runs.hand_back, Attempt(run.id, run.attempt)))

    async def execute(self, tenant: str, run: Run) -> None:
        """Executes a begun run until it has ended, was taken over, or is returned to the queue."""
        current: Run | None = run
        pause = _FIRST_PAUSE
        while current is not None:
            try:
                return await self._execute(tenant, current)
            except Unavailable as error:
                log.warning(
                    "execute attempt failed, the store is unavailable",
                    extra={"run_id": run.id, "reason": error.message},
                )
            except asyncio.CancelledError:
                await uncancelled(self._store.write(tenant, runs.hand_back, Attempt(current.id, current.attempt)))
                raise
            current = await uncancelled(self._next(tenant, Attempt(current.id, current.attempt), pause))
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _retry(self, action: Callable[[], Awaitable[T]]) -> T:
        return await retry_while_unavailable(action, stopping=self._stopping)

    async def _next(self, tenant: str, held: Attempt, pause: float) -> Run | None:
        """The next attempt after one aborted by the database. The pause is needed because the database may accept this
        write and refuse those of the run. None if another process continues the run."""
        await _rest(self._stopping, pause)
        if self._stopping.is_set():
            return await self._store.write(tenant, runs.hand_back, held)
        run = await self._retry(partial(self._store.write, tenant, runs.begin_again, held))
        if run is None:
            log.warning("attempt was fenced", extra={"run_id": held.run_id, "attempt": held.number})
        return run


async def retry_while_unavailable(
    action: Callable[[], Awaitable[T]],
    *,
    stopping: asyncio.Event | None = None,
    most_seconds: float = float("inf"),
    retry_on: type[Exception] = Unavailable,
) -> T:
    """Retries with back-off for as long as the store fails this way."""
    loop, stopping, pause = asyncio.get_running_loop(), stopping or asyncio.Event(), _FIRST_PAUSE
    give_up = loop.time() + most_seconds
    while True:
        try:
            return await action()
        except retry_on as error:
            if stopping.is_set() or loop.time() > give_up:
                raise
            is_news = pause == _FIRST_PAUSE and not isinstance(error, Unavailable)
            log.warning("store call failed", extra={"reason": str(error)}, exc_info=error if is_news else None)
        await _rest(stopping, pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


async def _rest(stopping: asyncio.Event, pause: float) -> None:
    """Waits for about `pause` seconds, or until this process stops. The jitter spreads retries of runs that were
    aborted together."""
    with suppress(TimeoutError):
        await asyncio.wait_for(stopping.wait(), pause * (0.5 + random.random()))  # noqa: S311 - jitter


def is_lasting(error: BaseException) -> bool:
    """Whether another attempt would raise the same error, because it comes from the graph or its data. Errors do not
    last if this process stops, the run was taken over, or the database is unavailable."""
    if isinstance(error, asyncio.CancelledError):  # a node can raise one too
        task = asyncio.current_task()
        return task is not None and not task.cancelling()
    return not isinstance(error, Fenced | Unavailable | SystemExit | KeyboardInterrupt | GeneratorExit)


async def uncancelled(action: Coroutine[Any, Any, T]) -> T:
    """Completes the action even if this task is cancelled."""
    task = asyncio.ensure_future(action)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task])
    return task.result()
