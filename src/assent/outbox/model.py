"""A delivery: an entry of the outbox with its target and retry schedule.

It is written in the transaction of its cause, so it exists exactly when the cause has happened, and it is sent at least
once: a receiver recognises a duplicate by the delivery's id.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

WEBHOOK = "webhook"
RESUME = "resume"
"""Resumes the local run that waits for a decision."""

ANSWER = "answer"
"""Answers the question of a thread on another deployment."""

GATE_ANSWER = "gate_answer"
"""Keeps the answer for a gate in a process of its own, which fetches it, and wakes its thread where that is known."""

AUDIT_HEAD = "audit_head"
"""Appends a signed head of the timeline to the operator's file."""

DELAYS = tuple(timedelta(seconds=delay) for delay in (1, 5, 30, 120, 600, 3600, 3 * 3600, 6 * 3600, 12 * 3600))
"""The delay after the first failed attempt, the second, and so on; after the last one it has failed for good."""

JITTER = 0.25
LONGEST_WISH = timedelta(hours=1)


class DeliveryStatus(StrEnum):
    """`pending` waits for `due_at`; `sending` has a lease until `due_at`, then another process takes over."""

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
    owner: str | None = None
    """The actor who named the target, by starting the run or making the request. None where that is not loaded."""


@dataclass(frozen=True, slots=True)
class Due:
    """A new delivery that is due at the commit of its cause."""

    tenant: str
    id: str
    kind: str


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt failed. `final`: a retry cannot help; `wait` is the delay that the receiver asked for. Not
    `attempted`: it was not yet the time to send, which is tried again after exactly `wait`, and does not count."""

    reason: str
    final: bool = False
    wait: timedelta = timedelta()
    attempted: bool = True


class NotCarried(Exception):
    """The delivery cannot be carried in one transaction: it has to be claimed, and its attempt counts."""


def delay_after(attempts: int, failure: Failure, *, dice: float) -> timedelta | None:
    """The delay before the next attempt, or None after the last. `dice` in [0, 1) adds jitter, so that deliveries that
    failed together are not retried together."""
    if not failure.attempted:
        return failure.wait * (1 + JITTER * dice)
    if failure.final or attempts > len(DELAYS):
        return None
    return max(DELAYS[attempts - 1] * (1 + JITTER * dice), min(failure.wait, LONGEST_WISH))
