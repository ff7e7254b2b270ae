"""Divides the Postgres connections of one process, within its budget."""

from __future__ import annotations

from dataclasses import dataclass

FEWEST = 8
"""The minimum for a process that executes runs to do all its tasks at the same time."""

_PLENTY = 12
_LISTENER = 1
_HEARTBEAT = 1


@dataclass(frozen=True, slots=True)
class Connections:
    """The maximum of connections of each part. One more listens for live frames, from the first follower on, and a
    process that executes runs has one for its heartbeat."""

    store: int
    queue: int
    frames: int


def divide(budget: int, *, executes: bool) -> Connections:
    """A worker of the queue listens with one connection, watches stalled runs with another and needs one for jobs. The
    store gets the rest."""
    more = int(budget >= _PLENTY)
    queue, frames = (3 if executes else 1) + more, 1 + more
    alone = _LISTENER + (_HEARTBEAT if executes else 0)
    return Connections(budget - queue - frames - alone, queue, frames)
