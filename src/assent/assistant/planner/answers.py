"""The planner's final answers: short, true, and built from the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from assent.assistant.planner import calendars, gaps, replies
from assent.assistant.planner.dates import dates
from assent.assistant.planner.goals import Change, Create, Directions, Event, Goal, Listing, Places, Slots
from assent.assistant.planner.replies import say
from assent.assistant.planner.results import Kind, Result, url
from assent.assistant.planner.tools import Role

_MOST = 20


def label(goal: Goal) -> str:
    """The goal in a few words, for questions and reports."""
    if isinstance(goal, Create):
        empty = say("the room" if goal.room else "new event")
        return say("quoted", name=goal.name) if goal.name and not goal.room else empty
    if isinstance(goal, Change):
        return say("quoted", name=goal.known.name if goal.known else goal.event.text)
    return say("that")


def outcome(goal: Goal, fields: Mapping[str, Any], result: Result, now: datetime) -> str:
    """The sentence for the last call of a goal."""
    if result.kind is Kind.REJECTED:
        rejected = _about(goal, fields, now) or say("your request")
        return say("rejected for" if result.text else "rejected", said=_short(result.text), about=rejected)
    if result.kind is Kind.LOGIN:
        return say("sign in", url=url(result.text))
    if result.kind is Kind.FAILED:
        about = _about(goal, fields, now)
        return say("failed for" if about else "failed", about=about, why=_short(result.text))
    return _done(goal, fields, result, now)


def _done(goal: Goal, fields: Mapping[str, Any], result: Result, now: datetime) -> str:
    if isinstance(goal, Listing):
        return listing(goal, calendars.events(result.data, now.tzinfo), now)
    if isinstance(goal, Slots):
        return gaps.told(goal, calendars.events(result.data, now.tzinfo), now)
    if isinstance(goal, Places):
        return _places(goal, result)
    if isinstance(goal, Directions):
        return _way(result)
    if isinstance(goal, (Create, Change)):
        event = calendars.event(result.data, now.tzinfo)
        return say(
            _verdict(goal), event=told(event, now) if event else _about(goal, fields, now) or say("as you asked")
        )
    named = calendars.calendars(result.data)
    return say("calendars", names=say("listed").join(named)) if named else _short(result.text)


def _verdict(goal: Create | Change) -> str:
    if isinstance(goal, Create):
        return "booked" if goal.room else "created"
    return "deleted" if goal.delete else "changed"


def told(event: Event, now: datetime) -> str:
    """Standup, tomorrow 9:00–9:30, Café Luna"""
    place = say("place", place=event.location) if event.location else ""
    return say("event", name=event.name, day=replies.day(event.start.date(), now), hours=_hours(event), place=place)


def listing(goal: Listing, events: Sequence[Event], now: datetime) -> str:
    if goal.free is not None:
        return _free(goal, events, now)
    if goal.words:
        events = [event for event in events if all(word in event.name.casefold() for word in goal.words)]
    if not events:
        return say("none about" if goal.words else "empty", words=" ".join(goal.words), period=_period(goal, now))
    shown = "; ".join(told(event, now) for event in events[:_MOST])
    more = say("and more", count=len(events) - _MOST) if len(events) > _MOST else ""
    key = "events in" if len(events) > 1 else "event in"
    return say(key, count=len(events), period=_period(goal, now), events=shown, more=more)


def _free(goal: Listing, events: Sequence[Event], now: datetime) -> str:
    when = goal.free or dates.When()
    start, _ = dates.start_of(when, now) if when.clock is not None else (None, None)
    if start:
        end = start + timedelta(minutes=when.minutes or 30)
        events = [event for event in events if event.start < end and (event.end or event.start) > start]
        span = f"{replies.day(start.date(), now)} {dates.hour(start)}–{dates.hour(end)}"
    else:
        events = [event for event in events if _in_part(event, when.half)]
        span = say("space").join(filter(None, (_period(goal, now), say(when.half) if when.half else "")))
    busy = "; ".join(told(event, now) for event in events[:_MOST])
    return say("busy", events=busy) if busy else say("empty", period=span)


def _in_part(event: Event, half: str | None) -> bool:
    """Whether it touches that part of its day."""
    last = event.end if event.end and event.end.date() == event.start.date() else event.start
    if half == "am":
        return event.start.hour < 12
    return half is None or last.hour >= {"pm": 12}.get(half, 17)


def _period(goal: Listing, now: datetime) -> str:
    first = replies.day(goal.day, now)
    if goal.days == 1:
        return first if abs((goal.day - now.date()).days) <= 1 else say("on", day=first)
    return say("from to", first=first, last=replies.day(goal.day + timedelta(days=goal.days - 1), now))


def _places(goal: Places, result: Result) -> str:
    data = result.data.get("places") if isinstance(result.data, Mapping) else result.data
    places = [entry for entry in data if isinstance(entry, Mapping)] if isinstance(data, list) else None
    if places is None:
        return _short(result.text)
    if not places:
        return say("no place near" if goal.near else "no place", query=goal.query, near=goal.near)
    shown = "; ".join(_place(entry) for entry in places[:5])
    return say("places", count=len(places), places=shown, more="; …" if len(places) > 5 else "")


def _place(entry: Mapping[str, Any]) -> str:
    metres = entry.get("distance_meters")
    details = [str(entry[key]) for key in ("address", "hours") if entry.get(key)]
    details += [say("metres", count=metres)] if metres is not None else []
    return f"{entry.get('name', 'a place')} ({', '.join(details)})" if details else str(entry.get("name", "a place"))


def _way(result: Result) -> str:
    data = result.data if isinstance(result.data, Mapping) else {}
    steps = data.get("steps")
    if not isinstance(steps, list):
        return _short(result.text)
    ends = {key: data.get(key) for key in ("origin", "destination", "mode")}
    metres, minutes = data.get("distance_meters"), data.get("duration_minutes")
    return say("way", **ends, metres=metres, minutes=minutes, steps=" ".join(map(str, steps)))


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


_USUAL_MINUTES = {Role.CREATE: 30, Role.ROOM: 60}


def proposal(goal: Goal, known: Event | None, role: Role, fields: Mapping[str, Any], now: datetime) -> str:
    """The request as understood: a wrong reading is seen before it is approved. Empty for calls that only read."""
    if isinstance(goal, Change) and known and role in (Role.UPDATE, Role.DELETE):
        before = told(known, now)
        if goal.delete:
            return say("delete", event=before)
        return say("change", before=before, after=_after(known, fields, now))
    if isinstance(goal, Create) and role in _USUAL_MINUTES:
        return say("create" if role is Role.CREATE else "book a room", event=_new(role, fields, now))
    return ""


def _new(role: Role, fields: Mapping[str, Any], now: datetime) -> str:
    start = datetime.fromisoformat(fields["start"])
    length = timedelta(minutes=fields.get("duration_minutes") or _USUAL_MINUTES[role])
    event = Event("", fields.get("name") or "Meeting", start, start + length, fields.get("location"))
    return f"{told(event, now)}{_with(fields)}"


def _after(known: Event, fields: Mapping[str, Any], now: datetime) -> str:
    start = datetime.fromisoformat(fields["start"]) if fields.get("start") else known.start
    minutes = fields.get("duration_minutes")
    length = timedelta(minutes=minutes) if minutes else (known.end or known.start) - known.start
    name, place = fields.get("name") or known.name, fields.get("location") or known.location
    return told(replace(known, name=name, start=start, end=start + length, location=place), now) + _with(fields)


def _with(fields: Mapping[str, Any]) -> str:
    said = [*(fields.get("attendees") or ()), fields.get("equipment")]
    return f" ({', '.join(filter(None, said))})" if any(said) else ""
