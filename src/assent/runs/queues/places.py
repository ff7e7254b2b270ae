"""Limits the concurrent runs of one process. The store's writer thread and the event loop share the count.

A due run begins in the transaction that made it due, if the writer thread gets a free place. Otherwise it waits here.
Waiting runs are scheduled round-robin by actor, so that one actor's runs do not block another's; runs without an actor,
such as answers, come first.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from threading import Lock
from typing import Any, TypeAlias

from assent.kernel.store.transaction import Tx
from assent.threads.model.runs import Run

_Waiting: TypeAlias = tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]


class Places:
    def __init__(self, count: int, prepare: Callable[[Tx, Run], Any] = lambda tx, run: None) -> None:
        self.prepare = prepare
        self._lock = Lock()
        self._free = count
        self._waiting: OrderedDict[str, deque[_Waiting]] = OrderedDict()
        self._closed = False

    def take(self) -> bool:
        """Takes a place from any thread; False if none is free or others wait."""
        with self._lock:
            if self._closed or self._waiting or self._free == 0:
                return False
            self._free -= 1
            return True

    async def wait(self, turn: str = "") -> None:
        """Waits for a place; `turn` is the actor."""
        with self._lock:
            if self._closed:
                raise asyncio.CancelledError
            if not self._waiting and self._free > 0:
                self._free -= 1
                return
            loop = asyncio.get_running_loop()
            place = loop.create_future()
            self._waiting.setdefault(turn, deque()).append((loop, place))
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.leave()  # the place was assigned at the same moment
            raise

    def leave(self) -> None:
        """Releases a place, from any thread, to the next waiter."""
        with self._lock:
            if not self._waiting:
                self._free += 1
                return
            loop, place = self._next()
        loop.call_soon_threadsafe(self._give, place)

    def _next(self) -> _Waiting:
        """The next waiter. Its actor moves to the end."""
        turn = "" if "" in self._waiting else next(iter(self._waiting))
        line = self._waiting.pop(turn)
        first = line.popleft()
        if line:
            self._waiting[turn] = line
        return first

    def close(self) -> None:
        """Refuses new places and cancels the waiters, because this process is stopping."""
        with self._lock:
            self._closed = True
            waiting = [waiter for line in self._waiting.values() for waiter in line]
            self._waiting.clear()
        for loop, place in waiting:
            loop.call_soon_threadsafe(place.cancel)

    def _give(self, place: asyncio.Future[None]) -> None:
        if place.done():  # the waiter was cancelled
            self.leave()
        else:
            place.set_result(None)
