"""Background work: named tasks that do one thing repeatedly until they are stopped.

An error never ends such a task: it is logged, counted, and the work is retried after a pause that grows with every
failure. `each` isolates the entries of one round from each other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import TypeVar

from assent.errors import Unavailable

T = TypeVar("T")

Work = Callable[[], Awaitable[float | None]]
"""One round; returns the seconds to wait for the next one, or None to wait for `wake`."""

FIRST_RETRY = 0.5
LONGEST_RETRY = 30.0

log = logging.getLogger(__name__)


class Repeating:
    def __init__(
        self, name: str, work: Work, *, first_retry: float = FIRST_RETRY, longest_retry: float = LONGEST_RETRY
    ) -> None:
        self.name = name
        self.failures = 0
        """Since the start of the process."""
        self._work = work
        self._first_retry, self._longest_retry = first_retry, longest_retry
        self._retry = first_retry
        self._awake, self._finishing = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        if not self.running:
            self._task = asyncio.create_task(self._run(), name=self.name)

    def wake(self) -> None:
        """Starts the next round at once, or right after the current one. A retry still waits for its back-off."""
        self._awake.set()

    def cancel(self) -> asyncio.Task[None] | None:
        """Cancels the current round, without waiting for its end."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
        return task

    async def stop(self) -> None:
        """Cancels the current round."""
        if task := self.cancel():
            await asyncio.gather(task, return_exceptions=True)

    async def finish(self) -> None:
        """Waits for the end of the current round; no other follows."""
        self._finishing.set()
        self.wake()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        while not self._finishing.is_set() and not task.cancelling():  # a driver may turn a cancellation into an error
            self._awake.clear()
            try:
                pause = await self._work()
                self._retry = self._first_retry
            except Exception as error:  # noqa: BLE001 - the supervisor must survive every error
                await _wait(self._finishing, self._failed(error))
            else:
                await _wait(self._awake, pause)

    def _failed(self, error: Exception) -> float:
        """Logs the failure, with its traceback once in a row, and returns the delay of the retry."""
        retry, self._retry = self._retry, min(2 * self._retry, self._longest_retry)
        facts = {"task": self.name, "retry_seconds": retry, "reason": repr(error.__cause__ or error)}
        is_news = retry == self._first_retry and not isinstance(error, Unavailable)
        log.warning("background task failed", extra=facts, exc_info=error if is_news else None)
        self.failures += 1
        return retry


async def _wait(event: asyncio.Event, seconds: float | None) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


def every(seconds: float, act: Callable[[], Awaitable[object]]) -> Work:
    async def work() -> float:
        await act()
        return seconds

    return work


async def each(
    name: str,
    entries: Iterable[T],
    act: Callable[[T], Awaitable[object]],
    *,
    on_failure: Callable[[T], Awaitable[object]] | None = None,
) -> None:
    """Acts on every entry. A failing entry is logged and skipped, after `on_failure`; an unreachable store ends the
    round."""
    for entry in entries:
        try:
            await act(entry)
        except Unavailable:
            raise
        except Exception:
            log.exception("entry failed", extra={"task": name, "entry": str(entry)})
            if on_failure is not None:
                await on_failure(entry)
