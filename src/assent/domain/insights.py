"""What the inbox tells about deciding: how long it takes, what comes of it, how old the backlog is, and who may be
agreeing without looking. Pure sums over what was asked and said; whoever reads the rows says which.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import groupby
from math import ceil
from typing import TypeVar

RANGES = (7, 30, 90)
_WEEKLY_FROM = 90
AGES = (timedelta(hours=1), timedelta(days=1), timedelta(days=3), timedelta(days=7))
"""Where one age of the backlog ends and the next begins; the last one has no end."""

STAMP_DECISIONS = 10
STAMP_SHARE = 0.95
STAMP_SECONDS = 5.0
"""So many decisions, of which so many approve, with so little time for each at the middle: worth a second look."""


class Outcome(StrEnum):
    APPROVED = "approved"
    CHANGED = "changed"
    REJECTED = "rejected"
    SENT_BACK = "sent_back"
    UNDECIDED = "undecided"


_RESOLUTIONS = {
    "accepted": Outcome.APPROVED,
    "responded": Outcome.APPROVED,
    "answered_elsewhere": Outcome.APPROVED,
    "edited": Outcome.CHANGED,
    "partial": Outcome.CHANGED,
    "rejected": Outcome.REJECTED,
    "declined": Outcome.REJECTED,
    "ignored": Outcome.REJECTED,
}
_REFUSALS = frozenset({"reject", "ignore", "decline", "cancel"})


def outcome_of(resolution: str | None) -> Outcome:
    """How an item ended. What nobody decided (expired, withdrawn, overtaken) counts as undecided."""
    return _RESOLUTIONS.get(resolution or "", Outcome.UNDECIDED)


def outcome_said(verbs: Sequence[str], *, sent_back: bool) -> Outcome:
    """What one decision came to."""
    refused = sum(verb in _REFUSALS for verb in verbs)
    if sent_back:
        return Outcome.SENT_BACK
    if refused == len(verbs):
        return Outcome.REJECTED
    return Outcome.CHANGED if refused or "edit" in verbs else Outcome.APPROVED


@dataclass(frozen=True, slots=True)
class Asked:
    """One item: when it was asked, what for, and how and when it was decided, if it was."""

    tool: str
    at: datetime
    open: bool
    outcome: Outcome
    decided_at: datetime | None = None

    @property
    def wait(self) -> float | None:
        """How long it took to be decided, in seconds."""
        if self.open or self.decided_at is None or self.outcome is Outcome.UNDECIDED:
            return None
        return max((self.decided_at - self.at).total_seconds(), 0.0)


@dataclass(frozen=True, slots=True)
class Said:
    """One person's decision, and when what it is about had been asked."""

    actor: str
    outcome: Outcome
    at: datetime
    asked_at: datetime


T = TypeVar("T", Asked, Said)


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds; None where nothing was decided."""

    count: int = 0
    median: float | None = None
    p90: float | None = None


@dataclass(frozen=True, slots=True)
class Period:
    start: datetime
    end: datetime
    waits: Waits


@dataclass(frozen=True, slots=True)
class Rates:
    """How often it came to what, for one tool or one reviewer."""

    name: str
    total: int
    counts: dict[Outcome, int]
    waits: Waits

    def share(self, outcome: Outcome) -> float:
        return self.counts.get(outcome, 0) / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class Stamp:
    """Someone who agrees to nearly everything at once. `pace` is the middle of the time there was for each, in
    seconds: since it was asked, or since that person's decision before."""

    actor: str
    decisions: int
    approved: int
    pace: float


@dataclass(frozen=True, slots=True)
class Report:
    days: int
    since: datetime
    until: datetime
    asked: int
    counted: int
    open: int
    waits: Waits
    periods: list[Period]
    tools: list[Rates]
    reviewers: list[Rates]
    stamps: list[Stamp]
    backlog: list[int] = field(default_factory=list)
    oldest: datetime | None = None
    everyone: bool = False
    capped: bool = False
    """Whether people said more than is read: then it is what they said last."""

    @property
    def sampled(self) -> bool:
        """Whether more was asked than is read: then an even sample of it is counted."""
        return self.counted < self.asked

    @property
    def decided(self) -> int:
        """How much of it was decided; of a sample, as much in proportion."""
        return round(self.waits.count * self.asked / self.counted) if self.counted else 0


def beginning(now: datetime, days: int) -> datetime:
    """The first moment of a range: whole days, today among them."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=days - 1)


def waits_of(asked: Iterable[Asked]) -> Waits:
    return _waits([wait for one in asked if (wait := one.wait) is not None])


def periods_of(asked: Sequence[Asked], since: datetime, days: int) -> list[Period]:
    """By day, or by week in a long range; each with what was decided in it."""
    size = timedelta(days=7 if days >= _WEEKLY_FROM else 1)
    count = ceil(timedelta(days=days) / size)
    found: list[list[Asked]] = [[] for _ in range(count)]
    for one in asked:
        if one.wait is not None and one.decided_at is not None:
            found[min((one.decided_at - since) // size, count - 1)].append(one)
    return [Period(since + i * size, since + (i + 1) * size, waits_of(some)) for i, some in enumerate(found)]


def by_tool(asked: Iterable[Asked]) -> list[Rates]:
    """Only what is closed; the most asked first."""
    closed = [one for one in asked if not one.open]
    waits = {tool: waits_of(some) for tool, some in _grouped(closed, "tool")}
    return _rates([(one.tool, one.outcome) for one in closed], waits)


def by_reviewer(said: Iterable[Said]) -> list[Rates]:
    found = list(said)
    waits = {
        actor: _waits([max((one.at - one.asked_at).total_seconds(), 0.0) for one in some])
        for actor, some in _grouped(found, "actor")
    }
    return _rates([(one.actor, one.outcome) for one in found], waits)


def stamps_of(said: Iterable[Said]) -> list[Stamp]:
    """Who may be agreeing without looking; the quickest first."""
    found = [_stamp(actor, some) for actor, some in _grouped(list(said), "actor")]
    return sorted((one for one in found if _is_stamping(one)), key=lambda one: (one.pace, one.actor))


def _stamp(actor: str, said: Sequence[Said]) -> Stamp:
    ordered = sorted(said, key=lambda one: one.at)
    before = [None, *(one.at for one in ordered[:-1])]
    paces = [_pace(one, last) for one, last in zip(ordered, before, strict=True)]
    approved = sum(one.outcome is Outcome.APPROVED for one in ordered)
    return Stamp(actor, len(ordered), approved, percentile(sorted(paces), 0.5))


def _pace(said: Said, before: datetime | None) -> float:
    """The most time there can have been for it."""
    since = said.asked_at if before is None else max(before, said.asked_at)
    return max((said.at - since).total_seconds(), 0.0)


def _is_stamping(stamp: Stamp) -> bool:
    enough = stamp.decisions >= STAMP_DECISIONS
    return enough and stamp.approved >= STAMP_SHARE * stamp.decisions and stamp.pace <= STAMP_SECONDS


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value below which this share of them lies, between two of them in proportion."""
    place = (len(ordered) - 1) * share
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _waits(seconds: Sequence[float]) -> Waits:
    ordered = sorted(seconds)
    return Waits(len(ordered), percentile(ordered, 0.5), percentile(ordered, 0.9)) if ordered else Waits()


def _rates(pairs: Sequence[tuple[str, Outcome]], waits: dict[str, Waits]) -> list[Rates]:
    totals, counts = Counter(name for name, _ in pairs), Counter(pairs)
    order = sorted(totals, key=lambda name: (-totals[name], name))
    return [
        Rates(name, totals[name], {one: counts[name, one] for one in Outcome if counts[name, one]}, waits[name])
        for name in order
    ]


def _grouped(found: Sequence[T], name: str) -> list[tuple[str, list[T]]]:
    ordered = sorted(found, key=lambda one: str(getattr(one, name)))
    return [(key, list(some)) for key, some in groupby(ordered, key=lambda one: str(getattr(one, name)))]
