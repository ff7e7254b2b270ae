"""Metrics of the queue, the workers of this process, and its answered requests since the start.

The numbers cover the whole server and contain no tenant data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from assent.identity.model.access import Principal, Scope
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.threads.rows import metrics
from assent.threads.rows.metrics import QueueDepth
from assent.threads.rows.remote import deployments


@dataclass(frozen=True, slots=True)
class Workers:
    """The maximum and the current number of runs in this process."""

    most: int
    active: int


@dataclass(frozen=True, slots=True)
class Answered:
    """Label of a counter: method, route pattern and response status."""

    method: str
    path: str
    status: int


@dataclass(frozen=True, slots=True)
class Followed:
    """A deployment that is followed: whether it works, and the seconds since its questions were last read."""

    id: str
    up: bool
    lag: float | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    queue: QueueDepth
    workers: Workers | None
    answered: dict[Answered, int]
    followed: list[Followed]


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
        followed = await self._store.read(None, _followed)
        return Snapshot(queue, self._workers() if self._workers else None, dict(self._answered), followed)


def _followed(tx: Tx) -> list[Followed]:
    listed = (deployment for _, deployment in deployments.everywhere(tx) if not deployment.paused)
    return [Followed(each.id, each.problem is None, each.lag(tx.now())) for each in listed]
