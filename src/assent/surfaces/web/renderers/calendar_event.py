"""Calendar events: time in the event's own zone, duration, attendees, recurrence."""

from __future__ import annotations

import re
from datetime import timedelta

from assent.kernel.canonical import Json
from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.renderers.blocks import Caution, Facts, Rendering, Text
from assent.surfaces.web.renderers.mail_addresses import domain, noted, people
from assent.surfaces.web.renderers.plain import plain
from assent.surfaces.web.renderers.registry import renders
from assent.surfaces.web.renderers.values import moments
from assent.surfaces.web.renderers.values.moments import Moment
from assent.surfaces.web.renderers.values.reading import Args, View, call, entries, first, only, others, text

_PLANS = re.compile(r"(?i)event|meeting|appointment|calendar")
_CREATES = re.compile(r"(?i)create|add|book|schedule|plan")
_START, _END = ("start", "start_time", "startTime", "starts_at"), ("end", "end_time", "endTime", "ends_at")
_TITLE = ("title", "summary", "name", "subject")
_GUESTS = ("attendees", "guests", "invitees", "participants")
_RECURRENCE = ("recurrence", "rrule", "repeat")
_EVERY = {
    "DAILY": "Every day",
    "WEEKLY": "Every week",
    "MONTHLY": "Every month",
    "YEARLY": "Every year",
}
_WHERE, _CALENDAR = ("location", "place", "room"), ("calendar", "calendar_id", "calendarId")
_ORGANIZER, _ABOUT = ("organizer", "organiser"), ("description", "notes")
_MINUTES, _ZONE = ("duration_minutes", "durationMinutes"), ("timezone", "time_zone", "timeZone", "tz")
_MOST_MINUTES = 1440 * 366 * 10


def plans_event(item: View) -> bool:
    name, args = call(item)
    return bool(_PLANS.search(name)) and _start(args) is not None and bool(text(args, *_TITLE))


def sentence(item: View) -> str | None:
    """Such as: Create event: Standup, Thursday 2026-11-19, 09:00."""
    name, args = call(item)
    start, event = _start(args), text(args, *_TITLE)
    if start is None or not event or not _CREATES.search(name):
        return None
    return _("Create event: %(event)s, %(start)s") % {"event": event, "start": start}


@renders("calendar_event", "event", label="Calendar event", icon="calendar", matches=plans_event, title=sentence)
def calendar_event(item: View) -> Rendering | None:
    args = only(item)
    start = _start(args)
    if start is None:
        return None
    end = moments.read(first(args, *_END), _zone(args))
    duration = _duration(args, start, end)
    organizer = people(first(args, *_ORGANIZER))
    home = next(filter(None, map(domain, organizer)), "")
    facts = {
        "Event": text(args, *_TITLE) or None,
        "Starts": str(start),
        "Ends": None if end is None else str(end),
        "Duration": None if duration is None else moments.length(duration),
        "Repeats": [_repeats(rule) for rule in entries(first(args, *_RECURRENCE))],
        "Where": first(args, *_WHERE),
        "Organizer": organizer,
        "Attendees": noted([guest for name in _GUESTS for guest in people(args.get(name))], home),
        "Calendar": first(args, *_CALENDAR),
    }
    about = text(args, *_ABOUT)
    shown = (_TITLE, _START, _END if end else _MINUTES if duration else (), _ZONE, _RECURRENCE, _WHERE, _ORGANIZER)
    return Rendering(
        *_cautions(start, end, duration),
        Facts({**facts, **others(args, *shown, *_GUESTS, _CALENDAR, _ABOUT)}),
        Text(about, "Description") if about else None,
    )


def _cautions(start: Moment, end: Moment | None, duration: timedelta | None) -> list[Caution]:
    if end is not None and duration is not None and duration < timedelta():
        return [Caution("Ends before it starts.", f"{start} – {end}")]
    return []


def _start(args: Args) -> Moment | None:
    return moments.read(first(args, *_START), _zone(args))


def _zone(args: Args) -> str:
    return text(args, *_ZONE)


def _duration(args: Args, start: Moment, end: Moment | None) -> timedelta | None:
    if end is not None:
        return moments.between(start, end)
    minutes = first(args, *_MINUTES)
    real = isinstance(minutes, int) and not isinstance(minutes, bool) and 0 <= minutes <= _MOST_MINUTES
    return timedelta(minutes=minutes) if real else None


def _repeats(rule: Json) -> str:
    """The recurrence rule, with a description if it is simple."""
    written = plain(rule)
    parts = dict(part.partition("=")[::2] for part in written.upper().removeprefix("RRULE:").split(";"))
    every, count = _EVERY.get(parts.pop("FREQ", "")), parts.pop("COUNT", "")
    interval = parts.pop("INTERVAL", "1")
    if every is None or parts or interval != "1" or not (count.isdecimal() or not count):
        return written
    ends = _("%(count)s times") % {"count": count} if count else _("no end date")
    return f"{_(every)}, {ends} ({written})"
