"""The attempt that makes a gated call: that of a run of this server, or that of a process elsewhere.

A run's attempt is fenced by its run. An attempt elsewhere has an id of its own, and lives as long as its heartbeats
arrive: another attempt waits until then, and afterwards the call is in doubt.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from assent.kernel.store.transaction import Tx
from assent.review.model.grants import Grant
from assent.threads.rows.state import checkpoints
from assent.threads.rows.state.checkpoints import Attempt


@dataclass(frozen=True, slots=True)
class AttemptElsewhere:
    """`actor` is the agent whose process makes the call. `patience`: how long it is alive without heartbeats."""

    id: str
    actor: str
    patience: timedelta


Maker: TypeAlias = Attempt | AttemptElsewhere | None


def hold(tx: Tx, maker: Maker) -> None:
    """Refuses the transaction of an attempt that was taken over."""
    if isinstance(maker, Attempt):
        checkpoints.hold(tx, maker)


def run_of(maker: Maker) -> str | None:
    return maker.run_id if isinstance(maker, Attempt) else None


def number_of(maker: Maker) -> int | None:
    return maker.number if isinstance(maker, Attempt) else None


def actor_of(maker: Maker) -> str:
    """Its name in the timeline."""
    if isinstance(maker, AttemptElsewhere):
        return maker.actor
    return f"run:{maker.run_id}" if maker else "gate"


def begun_by(maker: Maker, now: datetime) -> dict[str, Any]:
    """The columns of a grant that this attempt uses now."""
    elsewhere = maker if isinstance(maker, AttemptElsewhere) else None
    return {
        "run": run_of(maker),
        "number": number_of(maker),
        "by": elsewhere and elsewhere.id,
        "until": elsewhere and now + elsewhere.patience,
    }


def is_own(maker: Maker, grant: Grant) -> bool:
    """Whether this very attempt has started the call: it repeats a request whose reply was lost."""
    return isinstance(maker, AttemptElsewhere) and grant.taken_by == maker.id


def is_alive(grant: Grant, now: datetime) -> bool:
    """Whether the attempt elsewhere that has started the call may still be making it."""
    return grant.alive_until is not None and grant.alive_until > now
