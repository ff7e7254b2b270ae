"""The next step of an open goal: the question to ask, or the call to make."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta

from assent.assistant.planner import answers, calendars, gaps, replies
from assent.assistant.planner.dates import dates, phrases
from assent.assistant.planner.goals import (
    Ask,
    Calendars,
    Change,
    Create,
    Directions,
    Event,
    Goal,
    Listing,
    Places,
    Slots,
    Track,
    Unclear,
    Use,
)
from assent.assistant.planner.replies import say
from assent.assistant.planner.tools import Role

AHEAD = 14
"""How many days ahead an event without a day is looked for."""


_MOST_CHOICES = 8


def step(track: Track, now: datetime) -> Ask | Use:
    """The next step of an open goal."""
    goal = track.goal
    if isinstance(goal, (Create, Change, Listing)) and goal.calendar and not goal.calendar_id:
        return _find_calendar(track, goal.calendar)
    if isinstance(goal, Create):
        return _create(goal, now)
    if isinstance(goal, Change):
        return _change(track, goal, now)
    if isinstance(goal, Listing):
        return _list(goal.day, goal.days, goal.calendar_id, now)
    if isinstance(goal, Slots):
        return _slot(track, goal, now)
    return _look(goal)


def _find_calendar(track: Track, name: str) -> Ask | Use:
    if track.calendars is None:
        return Use(Role.CALENDARS, {}, prepares=True)
    return Ask(say("no calendar", name=name, calendars=", ".join(track.calendars)))


def _create(goal: Create, now: datetime) -> Ask | Use:
    start, question = dates.start_of(goal.when, now)
    minutes, length_question = dates.minutes_of(goal.when, start) if start else (None, goal.when.length_doubt)
    if not goal.room and not goal.name and not goal.when.timed and not goal.when.dated:
        return Ask(say("what and when"))
    about = say("the room:") if goal.room else answers.label(goal) if goal.name else None
    asked = [] if about else [say("name?")]
    asked += [say("about", goal=about, question=question) if about else question] if question else []
    asked += [length_question] if length_question else []
    if asked or start is None:
        return Ask(" ".join(asked))
    fields = {"start": start.isoformat(), "name": goal.name, "duration_minutes": minutes, "equipment": goal.equipment}
    if goal.room:
        return Use(Role.ROOM, {**fields, "people": goal.seats})
    details = {"location": goal.place, "description": goal.notes, "attendees": list(goal.people) or None}
    return Use(Role.CREATE, {**fields, "calendar_id": goal.calendar_id, **details})


def _change(track: Track, goal: Change, now: datetime) -> Ask | Use:
    event = event_of(track, goal, now)
    if event is None and goal.event.doubt:
        return Ask(_about(goal.event.text, goal.event.doubt))
    if event is None and goal.event.it:
        return Ask(say("which it", said=goal.event.text))
    if event is None and track.window != window_of(goal, now):
        return _list(*window_of(goal, now), goal.calendar_id, now, prepares=True)
    if event is None:
        return Ask(_which(track, goal, now))
    if goal.doubt or not goal.says_what:
        return Ask(_about(event.name, goal.doubt or say("change?")))
    fields = {"calendar_id": goal.calendar_id or "primary", "event_id": event.event_id}
    if goal.delete:
        return Use(Role.DELETE, fields)
    start, question = _new_start(goal, event, now)
    minutes, length_question = _new_minutes(goal, event, start or event.start)
    if question or length_question:
        return Ask(_about(event.name, question or length_question))
    people = [*event.people, *(name for name in goal.people if name not in event.people)] if goal.people else None
    if start == event.start and not (minutes or goal.name or goal.place or people):
        return Ask(_about(event.name, say("change?")))
    moved = {"start": start.isoformat() if start else None, "duration_minutes": minutes}
    return Use(Role.UPDATE, fields | moved | {"name": goal.name, "location": goal.place, "attendees": people})


def event_of(track: Track, goal: Change, now: datetime) -> Event | None:
    if goal.known:
        return goal.known
    return None if goal.event.doubt or goal.event.it else calendars.only_match(goal.event, track.events, now)


def choices(track: Track, goal: Change, now: datetime) -> list[Event]:
    """The events that are offered where it is not clear which one is meant."""
    return calendars.matches(goal.event, track.events, now)[:_MOST_CHOICES]


def _which(track: Track, goal: Change, now: datetime) -> str:
    offered = choices(track, goal, now)
    if offered:
        listed = " / ".join(f"{number}. {answers.told(event, now)}" for number, event in enumerate(offered, 1))
        return say("which one", events=listed)
    day, days = window_of(goal, now)
    if days == 1:
        return say("no event on", said=goal.event.text, day=replies.day(day, now))
    return say("no event in", said=goal.event.text, days=days)


def _about(name: str, question: str | None) -> str:
    return say("about", goal=say("quoted", name=name), question=question)


def _new_start(goal: Change, event: Event, now: datetime) -> tuple[datetime | None, str | None]:
    """Where it moves to: the day or the time that is not said stays as it is."""
    if goal.shift:
        when = dates.moment_of(event.start + timedelta(minutes=goal.shift))
    elif goal.when.timed or goal.when.dated:
        if question := _which_week(goal.when, event, now):
            return None, question
        when = dates.moment_of(event.start).joined(goal.when)
    else:
        return None, None
    return dates.start_of(when, now)


def _which_week(when: dates.When, event: Event, now: datetime) -> str | None:
    """A weekday alone may be meant in the week of the event, or as the next one."""
    if not when.bare or when.day is None:
        return None
    there = event.start.date() + timedelta(days=when.day.weekday() - event.start.weekday())
    if there == when.day or there <= now.date():
        return None
    return say("which day of", days=say("or").join(replies.day(day, now) for day in (when.day, there)))


def _new_minutes(goal: Change, event: Event, start: datetime) -> tuple[int | None, str | None]:
    if not goal.stretch:
        return dates.minutes_of(goal.when, start)
    length = ((event.end or event.start) - event.start) // timedelta(minutes=1) + goal.stretch
    return (length, None) if length > 0 else (None, say("nothing left"))


def window_of(goal: Change, now: datetime) -> tuple[date, int]:
    return (goal.event.when.day, 1) if goal.event.when.day else (now.date(), AHEAD)


def _list(day: date, days: int, calendar_id: str | None, now: datetime, *, prepares: bool = False) -> Use:
    start = datetime.combine(day, time(0), now.tzinfo)
    fields = {"start_time": start.isoformat(), "calendar_id": calendar_id or "primary", "duration_days": days}
    return Use(Role.EVENTS, fields, prepares=prepares)


def _slot(track: Track, goal: Slots, now: datetime) -> Ask | Use:
    if goal.wanted is None or track.window is None:
        return _list(goal.day, goal.days, None, now, prepares=goal.wanted is not None)
    return Ask(gaps.offer(goal, track.events, now))


def _look(goal: Goal) -> Ask | Use:
    if isinstance(goal, Calendars):
        return Use(Role.CALENDARS, {})
    if isinstance(goal, (Places, Directions)) and goal.doubt:
        return Ask(goal.doubt)
    if isinstance(goal, Places):
        if not goal.query:
            return Ask(say("kind of place?"))
        near = phrases.without_accents(goal.near) if goal.near else None
        return Use(Role.PLACES, {"query": phrases.without_accents(goal.query), "near": near})
    if isinstance(goal, Directions):
        if not goal.origin or not goal.destination:
            return Ask(say("from where?" if goal.destination else "from where to where?"))
        return Use(Role.DIRECTIONS, {"origin": goal.origin, "destination": goal.destination, "mode": goal.mode})
    return Ask(goal.question if isinstance(goal, Unclear) else say("help"))
