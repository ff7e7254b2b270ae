"""One goal on its way through a conversation, and the two things that can be due for it: a question or a call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from assent.assistant.planner.goals import Change, Create, Event, Goal, Listing, Remark
from assent.assistant.planner.tools import Role


@dataclass(frozen=True, slots=True)
class Ask:
    question: str


@dataclass(frozen=True, slots=True)
class Use:
    """A call, in our own words for fields. One that only prepares another goes alone, before everything else."""

    role: Role
    fields: Mapping[str, Any]
    prepares: bool = False


@dataclass(frozen=True, slots=True)
class Track:
    """`sentence` is what to say about it in the end: while it is None, the goal is open."""

    goal: Goal
    asked: int = 0
    calendars: Mapping[str, str] | None = None
    window: tuple[date, int] | None = None
    events: tuple[Event, ...] = ()
    sentence: str | None = None

    def closed(self, sentence: str) -> Track:
        return replace(self, sentence=sentence)


def opened(goal: Goal) -> Track:
    return Track(goal, sentence=goal.answer if isinstance(goal, Remark) else None)


def with_calendar(track: Track) -> Track:
    """With the id of the calendar that was named, once it is known."""
    goal = track.goal
    if not isinstance(goal, (Create, Change, Listing)) or not goal.calendar or goal.calendar_id:
        return track
    known = {name.casefold(): key for name, key in (track.calendars or {}).items()}
    key = known.get(goal.calendar.casefold())
    return replace(track, goal=replace(goal, calendar_id=key)) if key else track
