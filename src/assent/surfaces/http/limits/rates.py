"""Rate limits: a token bucket per name, in the memory of this process.

A bucket holds the tokens of `_BURST` seconds, so that a page with its parts, or a client that starts, is not delayed.
Several processes count separately.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from assent.errors import TooManyRequests

_BURST = 2.0
_MOST_NAMES = 20_000


class Rate:
    """`per_second` tokens for each name; 0 is no limit. `hint` names the setting."""

    def __init__(
        self, per_second: float, *, burst: float | None = None, hint: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second = per_second
        self._most = max(per_second * _BURST if burst is None else burst, 1.0)
        self._hint = hint
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def spend(self, name: str) -> None:
        """Takes one token, or raises `TooManyRequests` with the time until there is one."""
        if self._per_second <= 0:
            return
        now = self._clock()
        left = self._left(name, now)
        if left < 1:
            wait = int((1 - left) / self._per_second) + 1
            raise TooManyRequests(retry_after=wait, hint=self._hint)
        self._keep(name, left - 1, now)

    def give_back(self, name: str) -> None:
        """Returns a token for a request that does not count."""
        if name in self._buckets:
            now = self._clock()
            self._keep(name, min(self._left(name, now) + 1, self._most), now)

    def forget(self) -> None:
        self._buckets.clear()

    def _left(self, name: str, now: float) -> float:
        left, since = self._buckets.get(name, (self._most, now))
        return min(left + (now - since) * self._per_second, self._most)

    def _keep(self, name: str, left: float, now: float) -> None:
        if len(self._buckets) >= _MOST_NAMES and name not in self._buckets:
            self._drop_full(now)
        self._buckets[name] = (left, now)

    def _drop_full(self, now: float) -> None:
        """A full bucket equals a new one, so full buckets are dropped. If none is full, the older half is."""
        self._buckets = {name: bucket for name, bucket in self._buckets.items() if self._left(name, now) < self._most}
        if len(self._buckets) >= _MOST_NAMES:
            newest = sorted(self._buckets.items(), key=lambda entry: entry[1][1])[_MOST_NAMES // 2 :]
            self._buckets = dict(newest)
