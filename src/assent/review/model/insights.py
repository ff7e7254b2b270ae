"""Statistics about decisions: waiting times, outcomes, the age of the backlog, and possible rubber-stamping. Pure
functions over items and decisions; the caller selects the rows.
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
"""The boundaries of the backlog's age groups; the last group is open-ended."""

STAMP_DECISIONS = 10
STAMP_SHARE = 0.95
STAMP_SECONDS = 5.0
"""Thresholds for rubber-stamping: number of decisions, share of approvals, and median seconds for each."""


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
    """The outcome of an item. Items closed without a decision (expired, withdrawn, overtaken) are undecided."""
    return _RESOLUTIONS.get(resolution or "", Outcome.UNDECIDED)


def outcome_said(verbs: Sequence[str], *, sent_back: bool) -> Outcome:
    """The outcome of one decision."""
    refused = sum(verb in _REFUSALS for verb in verbs)
    if sent_back:
        return Outcome.SENT_BACK
    if refused == len(verbs):
        return Outcome.REJECTED
    return Outcome.CHANGED if refused or "edit" in verbs else Outcome.APPROVED


@dataclass(frozen=True, slots=True)
class Asked:
    """One item: its tool, creation time, outcome and decision time."""

    tool: str
    at: datetime
    open: bool
    outcome: Outcome
    decided_at: datetime | None = None

    @property
    def wait(self) -> float | None:
        """The seconds until the decision."""
        if self.open or self.decided_at is None or self.outcome is Outcome.UNDECIDED:
            return None
        return max((self.decided_at - self.at).total_seconds(), 0.0)


@dataclass(frozen=True, slots=True)
class Said:
    """One person's decision, and the creation time of its item."""

    actor: str
    outcome: Outcome
    at: datetime
    asked_at: datetime


T = TypeVar("T", Asked, Said)


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds; None without decisions."""

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
    """The counts of each outcome, for one tool or one reviewer."""

    name: str
    total: int
    counts: dict[Outcome, int]
    waits: Waits

    def share(self, outcome: Outcome) -> float:
        return self.counts.get(outcome, 0) / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class Stamp:
    """A person who approves nearly everything quickly. `pace` is the median time for each decision, in seconds: since
    the question, or since that person's previous decision."""

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
    samples: int = 0
    """The items among them that are sample data."""

    capped: bool = False
    """Whether there are more decisions than are read: then only the latest count."""

    @property
    def sampled(self) -> bool:
        """Whether there are more items than are read: then an even sample is counted."""
        return self.counted < self.asked

    @property
    def decided(self) -> int:
        """The number of decided items; extrapolated from a sample."""
        return round(self.waits.count * self.asked / self.counted) if self.counted else 0


def beginning(now: datetime, days: int) -> datetime:
    """The start of a range of whole days that ends today."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=days - 1)


def waits_of(asked: Iterable[Asked]) -> Waits:
    return _waits([wait for item in asked if (wait := item.wait) is not None])


def periods_of(asked: Sequence[Asked], since: datetime, days: int) -> list[Period]:
    """By day, or by week in a long range; each with the items decided in it."""
    size = timedelta(days=7 if days >= _WEEKLY_FROM else 1)
    count = ceil(timedelta(days=days) / size)
    buckets: list[list[Asked]] = [[] for _ in range(count)]
    for item in asked:
        if item.wait is not None and item.decided_at is not None:
            buckets[min((item.decided_at - since) // size, count - 1)].append(item)
    return [Period(since + i * size, since + (i + 1) * size, waits_of(some)) for i, some in enumerate(buckets)]


def by_tool(asked: Iterable[Asked]) -> list[Rates]:
    """Closed items only; the most frequent tool first."""
    closed = [item for item in asked if not item.open]
    waits = {tool: waits_of(some) for tool, some in _grouped(closed, "tool")}
    return _rates([(item.tool, item.outcome) for item in closed], waits)


def by_reviewer(said: Iterable[Said]) -> list[Rates]:
    decisions = list(said)
    waits = {
        actor: _waits([max((decision.at - decision.asked_at).total_seconds(), 0.0) for decision in some])
        for actor, some in _grouped(decisions, "actor")
    }
    return _rates([(decision.actor, decision.outcome) for decision in decisions], waits)


def stamps_of(said: Iterable[Said]) -> list[Stamp]:
    """Possible rubber-stamping; the fastest first."""
    stamps = [_stamp(actor, some) for actor, some in _grouped(list(said), "actor")]
    return sorted((stamp for stamp in stamps if _is_stamping(stamp)), key=lambda stamp: (stamp.pace, stamp.actor))


def _stamp(actor: str, said: Sequence[Said]) -> Stamp:
    ordered = sorted(said, key=lambda decision: decision.at)
    before = [None, *(decision.at for decision in ordered[:-1])]
    paces = [_pace(decision, last) for decision, last in zip(ordered, before, strict=True)]
    approved = sum(decision.outcome is Outcome.APPROVED for decision in ordered)
    return Stamp(actor, len(ordered), approved, percentile(sorted(paces), 0.5))


def _pace(said: Said, before: datetime | None) -> float:
    """The maximum time that was available for the decision."""
    since = said.asked_at if before is None else max(before, said.asked_at)
    return max((said.at - since).total_seconds(), 0.0)


def _is_stamping(stamp: Stamp) -> bool:
    enough = stamp.decisions >= STAMP_DECISIONS
    return enough and stamp.approved >= STAMP_SHARE * stamp.decisions and stamp.pace <= STAMP_SECONDS


def percentile(ordered: Sequence[float], share: float) -> float:
    """The percentile of sorted values, linearly interpolated."""
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
        Rates(
            name,
            totals[name],
            {outcome: counts[name, outcome] for outcome in Outcome if counts[name, outcome]},
            waits[name],
        )
        for name in order
    ]


def _grouped(entries: Sequence[T], name: str) -> list[tuple[str, list[T]]]:
    ordered = sorted(entries, key=lambda entry: str(getattr(entry, name)))
    return [(key, list(some)) for key, some in groupby(ordered, key=lambda entry: str(getattr(entry, name)))]
