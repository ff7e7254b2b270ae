"""Crons: runs that start by a schedule, and the rules for due times that no server was there for.

A schedule has five fields (minute, hour, day of month, month, day of week), or a sixth for seconds, or is an alias like
`@daily`. It is read in its time zone: a time that a change of the clock skips is the first moment after the change, and
a time that occurs twice is due twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import CroniterError, croniter

from assent.errors import Invalid
from assent.identity.model.visibility import Visible, shows
from assent.threads.model.threads import Visibility

LATE = timedelta(minutes=1)
"""A due time this far in the past was missed, where missed times are skipped."""

MOST_COUNTED = 1000
"""Of the due times that a cron missed at once."""

_LONGEST = 200
_YEARS = 12  # 29 February is eight years from the last one around 2100


class CatchUp(StrEnum):
    """The handling of missed due times: the latest one fires once, or none."""

    LATEST = "latest"
    SKIP = "skip"


class Completion(StrEnum):
    """The fate of the thread of a run that a cron without a thread started."""

    DELETE = "delete"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Cron:
    id: str
    assistant_id: str
    thread_id: str | None
    owner: str
    visibility: Visibility
    mandate: dict[str, Any]
    """The identity that its runs have, as `identity.mandates` records it."""
    schedule: str
    timezone: str | None
    end_time: datetime | None
    enabled: bool
    on_run_completed: Completion | None
    payload: dict[str, Any]
    metadata: dict[str, Any]
    next_run_at: datetime | None
    """None after its end."""
    created_at: datetime
    updated_at: datetime
    last_run_id: str | None = None
    last_due_at: datetime | None = None
    missed: int = 0
    """The number of due times without a run."""
    problem: str | None = None
    """Why it missed the latest of them."""

    def open_to(self, actor: str) -> bool:
        return self.owner == actor or self.visibility is Visibility.SHARED

    def shown_to(self, visible: Visible | None) -> bool:
        return shows(visible, self.metadata, self.open_to)

    def is_due(self, now: datetime) -> bool:
        return self.enabled and self.next_run_at is not None and self.next_run_at <= now

    def following(self, now: datetime) -> datetime | None:
        """Its first due time after this moment."""
        return next_after(self.schedule, self.timezone, now, self.end_time)


@dataclass(frozen=True, slots=True)
class Turn:
    """The due times of a cron up to now: the one to fire, the number of missed ones, and the next."""

    due: datetime | None
    missed: int
    following: datetime | None


def require_schedule(schedule: str, timezone: str | None, now: datetime) -> None:
    """Refuses a schedule that is invalid or never due."""
    zone_of(timezone)
    is_random = any(field[:1] in ("r", "R") for field in schedule.split())
    if len(schedule) > _LONGEST or is_random or not croniter.is_valid(schedule):
        raise _invalid(schedule, "Invalid cron schedule.")
    if next_after(schedule, timezone, now, None) is None:
        raise _invalid(schedule, "It is never due.")


def zone_of(timezone: str | None) -> tzinfo:
    if timezone is None:
        return UTC
    try:
        return ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Invalid(
            f"Invalid timezone: '{timezone[:80]}'. Use IANA timezone format (e.g. 'America/New_York')."
        ) from None


def next_after(schedule: str, timezone: str | None, moment: datetime, end: datetime | None) -> datetime | None:
    """The first due time after this moment; None where it is after the end."""
    try:
        following = _iterate(schedule, timezone, moment).get_next(datetime).astimezone(UTC)
    except CroniterError:
        return None
    return None if end is not None and following > end else following


def turn(cron: Cron, now: datetime, catch_up: CatchUp) -> Turn:
    """Of a cron that is due."""
    due = cron.next_run_at
    assert due is not None
    until = now if cron.end_time is None else min(now, cron.end_time)
    latest = _latest_until(cron, due, until)
    missed = _count(cron, due, latest)
    if catch_up is CatchUp.SKIP and now - latest > LATE:
        return Turn(None, missed + 1, cron.following(now))
    return Turn(latest, missed, cron.following(now))


def _latest_until(cron: Cron, due: datetime, moment: datetime) -> datetime:
    """The last due time from `due` on. Goes on from an earlier one, as firing does, because a due time looks different
    from both sides of a change of the clock."""
    back = _iterate(cron.schedule, cron.timezone, moment)
    earlier = [back.get_prev(datetime).astimezone(UTC) for _ in range(3)][-1]
    latest = due
    following = next_after(cron.schedule, cron.timezone, max(due, earlier), None)
    while following is not None and following <= moment:
        latest, following = following, next_after(cron.schedule, cron.timezone, following, None)
    return latest


def _count(cron: Cron, first: datetime, before: datetime) -> int:
    """The due times from `first` on that are before the other one."""
    number, due = 0, first
    while due < before and number < MOST_COUNTED:
        number += 1
        due = next_after(cron.schedule, cron.timezone, due, None) or before
    return number


def _iterate(schedule: str, timezone: str | None, moment: datetime) -> croniter:
    return croniter(schedule, moment.astimezone(zone_of(timezone)), max_years_between_matches=_YEARS)


def _invalid(schedule: str, reason: str) -> Invalid:
    return Invalid(
        f"Invalid cron schedule: '{schedule[:80]}'. Reason: {reason} Ensure the schedule uses the standard cron format "
        "(minute hour day_of_month month day_of_week). Example: '*/5 * * * *' for every 5 minutes."
    )
