"""The planner's final answers: short, true, and built from the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from assent.assistant.planner import calendars, slots
from assent.assistant.planner.dates import dates
from assent.assistant.planner.goals import Booking, Change, Create, Directions, Event, Goal, Listing, Places, Slots
from assent.assistant.planner.results import Kind, Result, url

_MOST = 20


def label(goal: Goal) -> str:
    """The goal in a few words, for questions and reports."""
    if isinstance(goal, Create):
        return f"“{goal.name}”" if goal.name else "the new event"
    if isinstance(goal, Change):
        return f"“{goal.known.name if goal.known else goal.event.text}”"
    if isinstance(goal, Booking):
        return "the room"
    return "that"


def outcome(goal: Goal, fields: Mapping[str, Any], result: Result, now: datetime) -> str:
    """The sentence for the last call of a goal."""
    if result.kind is Kind.REJECTED:
        said = f": “{_short(result.text)}”" if result.text else ""
        return f"Not done, because it was rejected{said}: {_about(goal, fields, now) or 'your request'}."
    if result.kind is Kind.LOGIN:
        return f"That needs you to sign in first: {url(result.text)} Then ask me again."
    if result.kind is Kind.FAILED:
        about = _about(goal, fields, now)
        return f"That did not work{f' for {about}' if about else ''}: {_short(result.text)}"
    return _done(goal, fields, result, now)


def _done(goal: Goal, fields: Mapping[str, Any], result: Result, now: datetime) -> str:
    if isinstance(goal, Listing):
        return listing(goal, calendars.events(result.data, now.tzinfo), now)
    if isinstance(goal, Slots):
        return slots.told(goal, calendars.events(result.data, now.tzinfo), now)
    if isinstance(goal, Places):
        return _places(goal, result)
    if isinstance(goal, Directions):
        return _way(result)
    if isinstance(goal, (Create, Change, Booking)):
        word = {Change: "Changed", Booking: "Booked"}.get(type(goal), "Done")
        word = "Deleted" if isinstance(goal, Change) and goal.delete else word
        event = calendars.event(result.data, now.tzinfo)
        return f"{word}: {told(event, now) if event else _about(goal, fields, now) or 'as you asked'}."
    named = calendars.calendars(result.data)
    return f"Your calendars: {', '.join(named)}." if named else _short(result.text)


def told(event: Event, now: datetime) -> str:
    """Standup, tomorrow 9:00–9:30, Café Luna"""
    place = f", {event.location}" if event.location else ""
    return f"{event.name}, {dates.on_day(event.start.date(), now)} {_hours(event)}{place}"


def listing(goal: Listing, events: Sequence[Event], now: datetime) -> str:
    if goal.free is not None:
        return _free(goal, events, now)
    if goal.words:
        events = [event for event in events if all(word in event.name.casefold() for word in goal.words)]
    if not events:
        about = f" about “{' '.join(goal.words)}”" if goal.words else ""
        return f"Nothing{about} is in the calendar {_period(goal, now)}."
    shown = "; ".join(told(event, now) for event in events[:_MOST])
    more = f"; and {len(events) - _MOST} more" if len(events) > _MOST else ""
    return f"{len(events)} event{'s' if len(events) > 1 else ''} {_period(goal, now)}: {shown}{more}."


def _free(goal: Listing, events: Sequence[Event], now: datetime) -> str:
    when = goal.free or dates.When()
    start, _ = dates.start_of(when, now) if when.clock is not None else (None, None)
    if start:
        end = start + timedelta(minutes=when.minutes or 30)
        events = [event for event in events if event.start < end and (event.end or event.start) > start]
        span = f"{dates.on_day(start.date(), now)} {dates.hour(start)}–{dates.hour(end)}"
    else:
        events = [event for event in events if _in_part(event, when.half)]
        span = " ".join(filter(None, (_period(goal, now), _PARTS.get(when.half or ""))))
    busy = "; ".join(told(event, now) for event in events[:_MOST])
    return f"In the calendar: {busy}." if busy else f"Nothing is in the calendar {span}."


_PARTS = {"am": "morning", "pm": "afternoon", "evening": "evening", "night": "night"}


def _in_part(event: Event, half: str | None) -> bool:
    """Whether it touches that part of its day."""
    last = event.end if event.end and event.end.date() == event.start.date() else event.start
    if half == "am":
        return event.start.hour < 12
    return half is None or last.hour >= {"pm": 12}.get(half, 17)


def _period(goal: Listing, now: datetime) -> str:
    first = dates.on_day(goal.day, now)
    if goal.days == 1:
        return first if first in ("today", "tomorrow", "yesterday") else f"on {first}"
    return f"from {first} to {dates.on_day(goal.day + timedelta(days=goal.days - 1), now)}"


def _places(goal: Places, result: Result) -> str:
    data = result.data.get("places") if isinstance(result.data, Mapping) else result.data
    places = [entry for entry in data if isinstance(entry, Mapping)] if isinstance(data, list) else None
    if places is None:
        return _short(result.text)
    if not places:
        return f"I found no {goal.query}{f' near {goal.near}' if goal.near else ''}."
    return (
        f"I found {len(places)}: {'; '.join(_place(entry) for entry in places[:5])}{'; …' if len(places) > 5 else ''}."
    )


def _place(entry: Mapping[str, Any]) -> str:
    metres = entry.get("distance_meters")
    details = [str(entry[key]) for key in ("address", "hours") if entry.get(key)]
    details += [f"{metres} m away"] if metres is not None else []
    return f"{entry.get('name', 'a place')} ({', '.join(details)})" if details else str(entry.get("name", "a place"))


def _way(result: Result) -> str:
    data = result.data if isinstance(result.data, Mapping) else {}
    steps = data.get("steps")
    if not isinstance(steps, list):
        return _short(result.text)
    head = f"{data.get('origin')} to {data.get('destination')}, {data.get('mode')}"
    return f"{head}, {data.get('distance_meters')} m, {data.get('duration_minutes')} min. {' '.join(map(str, steps))}"


def _about(goal: Goal, fields: Mapping[str, Any], now: datetime) -> str | None:
    """The operation that was to be done, from the arguments of the call."""
    known = goal.known if isinstance(goal, Change) else None
    name = fields.get("name") or (known.name if known else None)
    event = calendars.event({**fields, "name": name}, now.tzinfo) or (known if fields.keys() <= _IDS else None)
    if event:
        return told(event, now)
    return str(name) if name else None


_IDS = {"calendar_id", "event_id"}


def _hours(event: Event) -> str:
    if event.end is None:
        return dates.hour(event.start)
    same = event.start.date() == event.end.date()
    return f"{dates.hour(event.start)}–{dates.hour(event.end) if same else event.end.strftime('%d.%m. %H:%M')}"


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 300 else f"{flat[:299]}…"
