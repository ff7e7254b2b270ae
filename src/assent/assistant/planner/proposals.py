"""What the planner understood, in a sentence beside its proposals: a wrong reading is seen before it is approved."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from assent.assistant.planner import answers
from assent.assistant.planner.goals import Booking, Change, Create, Event
from assent.assistant.planner.replies import say
from assent.assistant.planner.steps import event_of
from assent.assistant.planner.tools import Role
from assent.assistant.planner.tracks import Track, Use

_USUAL_MINUTES = {Role.CREATE: 30, Role.ROOM: 60}


def told(track: Track, due: Use, now: datetime) -> str:
    """Create: Standup, tomorrow 9:00–9:30. Empty for calls that only read."""
    goal = track.goal
    if isinstance(goal, Change) and (known := event_of(track, goal, now)) and due.role in (Role.UPDATE, Role.DELETE):
        before = answers.told(known, now)
        if goal.delete:
            return say("delete", event=before)
        return say("change", before=before, after=_after(known, due.fields, now))
    if isinstance(goal, (Create, Booking)) and due.role in _USUAL_MINUTES:
        return say("create" if due.role is Role.CREATE else "book a room", event=_new(due, now))
    return ""


def _new(due: Use, now: datetime) -> str:
    start = datetime.fromisoformat(due.fields["start"])
    length = timedelta(minutes=due.fields.get("duration_minutes") or _USUAL_MINUTES[due.role])
    event = Event("", due.fields.get("name") or "Meeting", start, start + length, due.fields.get("location"))
    return f"{answers.told(event, now)}{_with(due.fields)}"


def _after(known: Event, fields: Any, now: datetime) -> str:
    start = datetime.fromisoformat(fields["start"]) if fields.get("start") else known.start
    minutes = fields.get("duration_minutes")
    length = timedelta(minutes=minutes) if minutes else (known.end or known.start) - known.start
    name, place = fields.get("name") or known.name, fields.get("location") or known.location
    return answers.told(replace(known, name=name, start=start, end=start + length, location=place), now) + _with(fields)


def _with(fields: Any) -> str:
    said = [*(fields.get("attendees") or ()), fields.get("equipment")]
    return f" ({', '.join(filter(None, said))})" if any(said) else ""
