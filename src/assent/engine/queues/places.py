"""How many runs one process executes at once: a count that the store's writer thread and the event loop share.

A run whose turn it is can begin in the very transaction that made it its turn, if there is a place for it; that is
known in the writer's thread. Where there is none it waits for one here, first come, first served.
"""

from __future__ import annotations

import asyncio
from collections import deque
from threading import Lock


class Places:
    def __init__(self, count: int) -> None:
        self._lock = Lock()
        self._free = count
        self._waiting: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()
        self._closed = False

    def take(self) -> bool:
        """A place at once, from any thread; False where there is none, or others wait for one."""
        with self._lock:
            if self._closed or self._waiting or self._free == 0:
                return False
            self._free -= 1
            return True

    async def wait(self) -> None:
        """A place, sooner or later."""
        with self._lock:
            if not self._waiting and self._free > 0:
                self._free -= 1
                return
            loop = asyncio.get_running_loop()
            place = loop.create_future()
            self._waiting.append((loop, place))
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.leave()  # given in the same moment
            raise

    def leave(self) -> None:
        """From any thread: the place is the next one's who waits."""
        with self._lock:
            if not self._waiting:
                self._free += 1
                return
            loop, place = self._waiting.popleft()
        loop.call_soon_threadsafe(self._give, place)

    def close(self) -> None:
        """Nothing begins at once any more: this process is about to end."""
        self._closed = True

    def _give(self, place: asyncio.Future[None]) -> None:
        if place.done():  # whoever waited has gone
            self.leave()
        else:
            place.set_result(None)
