"""Events as texts of iCalendar: reading them, writing new ones, and changing one without losing what it holds besides.

Times are written in UTC, which every program reads alike, with their offset beside them; an event that has a time zone
keeps it. Times without any zone count as UTC, as in the tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from urllib.parse import unquote

import recurring_ical_events  # type: ignore[import-untyped]
from icalendar import Calendar, vCalAddress
from icalendar import Event as Component

from assent.assistant.calendar.dates import after
from assent.assistant.calendar.events import Event, EventView, demand_name
from assent.errors import Invalid

_OFFSET, _REQUEST = "X-ASSENT-OFFSET", "X-ASSENT-REQUEST"
_MAIL, _NO_MAIL = "mailto:", "invalid:nomail"
_TEXTS = {"name": "SUMMARY", "location": "LOCATION", "description": "DESCRIPTION"}
_REPEATS = ("RRULE", "RDATE", "RECURRENCE-ID")
_SERIES = "#"


def parsed(text: str) -> Calendar:
    try:
        calendar = Calendar.from_ical(text)
    except ValueError:
        raise Invalid("the calendar's server has an event that is not iCalendar") from None
    assert isinstance(calendar, Calendar)
    return calendar


def uid(calendar: Calendar) -> str:
    return next((str(event["UID"]) for event in calendar.walk("VEVENT") if "UID" in event), "")


def repeats(calendar: Calendar) -> bool:
    return any(name in event for event in calendar.walk("VEVENT") for name in _REPEATS)


def request_of(calendar: Calendar) -> str | None:
    return next((str(event[_REQUEST]) for event in calendar.walk("VEVENT") if _REQUEST in event), None)


def series_of(event_id: str) -> str:
    """The id of the event that repeats, if `event_id` names one time of it."""
    return event_id.rpartition(_SERIES)[0]


def view(calendar: Calendar) -> EventView:
    return _view(next(iter(calendar.walk("VEVENT"))), uid(calendar))


def views(calendar: Calendar, start: datetime, end: datetime) -> Iterator[tuple[datetime, EventView]]:
    """The times of the event in the range, each with its start."""
    again = repeats(calendar)
    events = recurring_ical_events.of(calendar).between(start, end) if again else calendar.walk("VEVENT")
    for event in events:
        starts, ends = (_instant(moment) for moment in _times(event))
        if starts < end and (ends > start or starts == ends == start):
            at = f"{_SERIES}{starts:%Y%m%dT%H%M%SZ}" if again else ""
            yield starts, _view(event, uid(calendar) + at)


def new(event_id: str, event: Event, request: str) -> bytes:
    component = Component()
    component.add("UID", event_id)
    component.add(_REQUEST, request)
    _set_times(component, event.start, event.length)
    _set_texts(component, {name: getattr(event, name) for name in _TEXTS})
    _set_attendees(component, event.attendees)
    _stamp(component)
    calendar = Calendar()
    calendar.add("VERSION", "2.0")
    calendar.add("PRODID", "-//Assent//Calendar//EN")
    calendar.add_component(component)
    return bytes(calendar.to_ical())


def change(calendar: Calendar, changes: Mapping[str, Any]) -> bytes:
    component = next(event for event in calendar.walk("VEVENT") if isinstance(event, Component))
    if changes.get("name") is not None:
        demand_name(changes["name"])
    if "start" in changes or "length" in changes:
        _move(component, changes.get("start"), changes.get("length"))
    _set_texts(component, {name: value for name, value in changes.items() if name in _TEXTS})
    if "attendees" in changes:
        _set_attendees(component, changes["attendees"])
    _set(component, "SEQUENCE", int(component.get("SEQUENCE", 0)) + 1)
    _stamp(component)
    return bytes(calendar.to_ical())


def _view(component: Any, event_id: str) -> EventView:
    start, end = (_shown(component, moment) for moment in _times(component))
    texts = {name: str(component[prop]) if prop in component else None for name, prop in _TEXTS.items()}
    return EventView(
        event_id=event_id,
        name=texts["name"] or "(no name)",
        start=start,
        end=end,
        location=texts["location"],
        description=texts["description"],
        attendees=[_shown_attendee(attendee) for attendee in _attendees(component)],
    )


def _times(component: Any) -> tuple[date, date]:
    start = component["DTSTART"].dt
    if "DTEND" in component:
        return start, component["DTEND"].dt
    if "DURATION" in component:
        return start, start + component["DURATION"].dt
    return start, start if isinstance(start, datetime) else start + timedelta(days=1)


def _instant(moment: date) -> datetime:
    whole = moment if isinstance(moment, datetime) else datetime.combine(moment, time())
    return whole.replace(tzinfo=whole.tzinfo or UTC).astimezone(UTC)


def _shown(component: Any, moment: date) -> str:
    """A day for an event that lasts all day; otherwise in the event's zone, or with the offset it was written with."""
    if not isinstance(moment, datetime):
        return moment.isoformat()
    aware = moment.replace(tzinfo=moment.tzinfo or UTC, microsecond=0)
    if _OFFSET in component and not aware.utcoffset():
        aware = aware.astimezone(datetime.strptime(str(component[_OFFSET]), "%z").tzinfo)
    return aware.isoformat()


def _move(component: Component, start: datetime | None, length: timedelta | None) -> None:
    present, end = _times(component)
    if not isinstance(present, datetime) and (start is None or length is None):
        field = "duration_minutes" if start is None else "start"
        raise Invalid(f"{field}: the event lasts all day", hint="give start and duration_minutes to give it a time")
    written: Any = component["DTSTART"]
    zone = written.dt.tzinfo if "TZID" in written.params else None
    offset = component.get(_OFFSET)
    _set_times(component, start or _instant(present), length or _instant(end) - _instant(present), zone)
    if start is None and offset is not None:
        _set(component, _OFFSET, str(offset))


def _set_times(component: Component, start: datetime, length: timedelta, zone: Any = None) -> None:
    first = start.astimezone(UTC)
    for name, moment in (("DTSTART", first), ("DTEND", after("duration_minutes", first, length))):
        _set(component, name, moment.astimezone(zone or UTC))
        if zone and "TZID" not in component[name].params:
            _set(component, name, moment)
    component.pop("DURATION", None)
    component.pop(_OFFSET, None)
    if not zone and start.utcoffset():
        # Python writes offsets of seconds too, which no zone of today has.
        component.add(_OFFSET, f"{start:%z}")


def _set_texts(component: Component, texts: Mapping[str, str | None]) -> None:
    for name, value in texts.items():
        component.pop(_TEXTS[name], None)
        if value:
            component.add(_TEXTS[name], value)


def _set_attendees(component: Component, names: Iterable[str]) -> None:
    """Attendees that stay keep what is known of them, such as their answer. The server is told to invite nobody."""
    present = {_shown_attendee(attendee): attendee for attendee in _attendees(component)}
    component.pop("ATTENDEE", None)
    for name in names:
        component.add("ATTENDEE", present.get(name) or _attendee(name), encode=False)


def _attendee(name: str) -> vCalAddress:
    attendee = vCalAddress(f"{_MAIL}{name}" if "@" in name else _NO_MAIL)
    attendee.params["CN"] = name.replace('"', "'")
    attendee.params["SCHEDULE-AGENT"] = "CLIENT"
    return attendee


def _attendees(component: Any) -> list[Any]:
    value = component.get("ATTENDEE", [])
    return value if isinstance(value, list) else [value]


def _shown_attendee(attendee: Any) -> str:
    address = str(attendee)
    if address.lower().startswith(_MAIL):
        return unquote(address[len(_MAIL) :])
    return str(attendee.params.get("CN") or address)


def _stamp(component: Component) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    _set(component, "DTSTAMP", now)
    _set(component, "LAST-MODIFIED", now)


def _set(component: Component, name: str, value: Any) -> None:
    component.pop(name, None)
    component.add(name, value)
