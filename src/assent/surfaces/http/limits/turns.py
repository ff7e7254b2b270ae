"""Turns: limits how many requests of one caller execute at once, and how many more wait, in order.

The database has few readers and one writer, which serve requests in order of arrival. Without turns, all requests of a
caller who sends many at once would precede the next request of every other caller.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

from assent.errors import TooManyRequests


@dataclass(slots=True)
class _Line:
    """The requests of one caller: how many have their turn, and those that wait, the oldest first."""

    taken: int = 0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)


class Turns:
    def __init__(self, most: int, most_waiting: int) -> None:
        self._most = most
        self._most_waiting = most_waiting
        self._lines: dict[str, _Line] = {}

    async def take(self, name: str) -> bool:
        """Waits for the request's turn. Returns whether it had to wait."""
        line = self._lines.setdefault(name, _Line())
        if line.taken < self._most:
            line.taken += 1
            return False
        if len(line.waiting) >= self._most_waiting:
            raise TooManyRequests(
                "this caller has too many requests waiting to be executed",
                hint="see the settings max_executing_per_caller and max_waiting_per_caller",
            )
        await self._wait(name, line)
        return True

    def end(self, name: str) -> None:
        """Passes the turn to the request that has waited longest."""
        line = self._lines[name]
        while line.waiting:
            turn = line.waiting.popleft()
            if not turn.done():
                return turn.set_result(None)
        line.taken -= 1
        if line.taken == 0:
            del self._lines[name]

    async def _wait(self, name: str, line: _Line) -> None:
        turn = asyncio.get_running_loop().create_future()
        line.waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the turn was granted at the same moment
                self.end(name)
            elif turn in line.waiting:
                line.waiting.remove(turn)
            raise
