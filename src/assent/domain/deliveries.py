"""A delivery: what the outbox carries to where it takes effect, and when it is tried again.

It is written in the transaction that decides it, so it exists exactly when what it tells has happened, and it is sent
at least once: a receiver knows a second arrival by the delivery's id.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

WEBHOOK = "webhook"
RESUME = "resume"
"""Carries a decision to the run here that waits for it."""

DELAYS = tuple(timedelta(seconds=delay) for delay in (1, 5, 30, 120, 600, 3600, 3 * 3600, 6 * 3600, 12 * 3600))
"""How long to wait after the first failed attempt, the second, and so on; after the last one it has failed for good."""

JITTER = 0.25
LONGEST_WISH = timedelta(hours=1)


class DeliveryStatus(StrEnum):
    """`pending` waits for `due_at`; `sending` is under way, and is taken over by another process after `due_at`."""

    PENDING = "pending"
    SENDING = "sending"
    DELIVERED = "delivered"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Delivery:
    id: str
    tenant: str
    kind: str
    subject: str
    target: str
    body: str
    status: DeliveryStatus
    attempts: int
    due_at: datetime | None
    attempted_at: datetime | None
    delivered_at: datetime | None
    failure: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt failed. `final` where trying again cannot help; `wait` is how long the receiver asked us to."""

    reason: str
    final: bool = False
    wait: timedelta = timedelta()


def delay_after(attempts: int, failure: Failure, *, dice: float) -> timedelta | None:
    """How long to wait before the next attempt, or None where this was the last. `dice` in [0, 1) spreads those that
    failed together, so that they do not come back together."""
    if failure.final or attempts > len(DELAYS):
        return None
    return max(DELAYS[attempts - 1] * (1 + JITTER * dice), min(failure.wait, LONGEST_WISH))
