"""What the server is busy with: the queue, the workers of this process, the requests it has answered since its start.

Numbers over the whole server, without anything that belongs to a tenant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from assent.domain.access import Principal, Scope
from assent.ports import Store
from assent.store import metrics
from assent.store.metrics import QueueDepth


@dataclass(frozen=True, slots=True)
class Workers:
    """How many runs this process executes at most, and now."""

    most: int
    active: int


@dataclass(frozen=True, slots=True)
class Answered:
    """One kind of request: a method, an address as the routes write it, and the status it got."""

    method: str
    path: str
    status: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    queue: QueueDepth
    workers: Workers | None
    answered: dict[Answered, int]


class Metrics:
    def __init__(self, store: Store, workers: Callable[[], Workers] | None = None) -> None:
        """`workers` is None in a process that executes no runs."""
        self._store = store
        self._workers = workers
        self._answered: Counter[Answered] = Counter()

    def count(self, answered: Answered) -> None:
        self._answered[answered] += 1

    async def snapshot(self, caller: Principal) -> Snapshot:
        caller.require_any(Scope.RUNS_WRITE, Scope.ITEMS_READ, Scope.ADMIN)
        queue = await self._store.read(None, metrics.queue_depth)
        return Snapshot(queue, self._workers() if self._workers else None, dict(self._answered))
