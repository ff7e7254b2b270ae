"""Calendars and their events, as functions over one transaction of the calendar's file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from typing_extensions import TypedDict

from assent.assistant.calendar.dates import after, seconds
from assent.errors import Invalid, NotFound


class CalendarView(TypedDict):
    name: str
    description: str
    calendar_id: str
    primary: bool


class EventView(TypedDict):
    event_id: str
    name: str
    start: str
    end: str
    location: str | None
    description: str | None
    attendees: list[str]


@dataclass(frozen=True, slots=True)
class Event:
    name: str
    start: datetime
    length: timedelta
    location: str | None = None
    description: str | None = None
    attendees: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        demand_name(self.name)

    @property
    def end(self) -> datetime:
        return after("duration_minutes", self.start, self.length)


def demand_name(name: str) -> None:
    if not name.strip():
        raise Invalid("name: must not be blank")


def calendars(connection: sqlite3.Connection) -> list[CalendarView]:
    rows = connection.execute("SELECT * FROM calendars ORDER BY is_primary DESC, name")
    return [
        CalendarView(
            name=row["name"],
            description=row["description"],
            calendar_id=row["calendar_id"],
            primary=bool(row["is_primary"]),
        )
        for row in rows
    ]


def between(connection: sqlite3.Connection, calendar_id: str, start: datetime, end: datetime) -> list[EventView]:
    """Events that overlap the time range, earliest first."""
    _demand_calendar(connection, calendar_id)
    rows = connection.execute(
        "SELECT * FROM events WHERE calendar_id = ? AND starts_at < ? AND ends_at > ? ORDER BY starts_at, event_id",
        (calendar_id, seconds(end), seconds(start)),
    )
    return [_view(row["event_id"], _event(row)) for row in rows]


def create(connection: sqlite3.Connection, calendar_id: str, event: Event) -> EventView:
    _demand_calendar(connection, calendar_id)
    event_id = uuid4().hex
    connection.execute(
        "INSERT INTO events (event_id, calendar_id, name, start, starts_at, ends_at, location, description,"
        " attendees) VALUES (:event_id, :calendar_id, :name, :start, :starts_at, :ends_at, :location, :description,"
        " :attendees)",
        {"event_id": event_id, "calendar_id": calendar_id, **_columns(event)},
    )
    return _view(event_id, event)


def update(connection: sqlite3.Connection, calendar_id: str, event_id: str, changes: Mapping[str, Any]) -> EventView:
    """Changes the named fields of an `Event`; all others stay unchanged."""
    event = replace(_existing(connection, calendar_id, event_id), **changes)
    connection.execute(
        "UPDATE events SET name = :name, start = :start, starts_at = :starts_at, ends_at = :ends_at,"
        " location = :location, description = :description, attendees = :attendees WHERE event_id = :event_id",
        {"event_id": event_id, **_columns(event)},
    )
    return _view(event_id, event)


def delete(connection: sqlite3.Connection, calendar_id: str, event_id: str) -> EventView:
    """Returns the event as it was."""
    event = _existing(connection, calendar_id, event_id)
    connection.execute("DELETE FROM events WHERE event_id = ?", (event_id,))
    return _view(event_id, event)


def locations_taken(connection: sqlite3.Connection, event: Event) -> set[str]:
    """The locations of overlapping events in all calendars."""
    rows = connection.execute(
        "SELECT DISTINCT location FROM events WHERE starts_at < ? AND ends_at > ?",
        (seconds(event.end), seconds(event.start)),
    )
    return {row["location"] for row in rows}


def _demand_calendar(connection: sqlite3.Connection, calendar_id: str) -> None:
    if not connection.execute("SELECT 1 FROM calendars WHERE calendar_id = ?", (calendar_id,)).fetchone():
        ids = ", ".join(row["calendar_id"] for row in connection.execute("SELECT calendar_id FROM calendars"))
        raise NotFound(f"calendar_id: there is no calendar {calendar_id!r}", hint=f"there are: {ids}")


def _existing(connection: sqlite3.Connection, calendar_id: str, event_id: str) -> Event:
    _demand_calendar(connection, calendar_id)
    named = (calendar_id, event_id)
    row = connection.execute("SELECT * FROM events WHERE calendar_id = ? AND event_id = ?", named).fetchone()
    if row is None:
        raise NotFound(
            f"event_id: there is no event {event_id!r} in the calendar {calendar_id!r}",
            hint="list them with list_events",
        )
    return _event(row)


def _columns(event: Event) -> dict[str, Any]:
    shared = {name: value for name, value in asdict(event).items() if name != "length"}
    times = {"starts_at": seconds(event.start), "ends_at": seconds(event.end)}
    return shared | times | {"start": event.start.isoformat(), "attendees": json.dumps(event.attendees)}


def _event(row: sqlite3.Row) -> Event:
    return Event(
        name=row["name"],
        start=datetime.fromisoformat(row["start"]),
        length=timedelta(seconds=row["ends_at"] - row["starts_at"]),
        location=row["location"],
        description=row["description"],
        attendees=tuple(json.loads(row["attendees"])),
    )


def _view(event_id: str, event: Event) -> EventView:
    return EventView(
        event_id=event_id,
        name=event.name,
        start=event.start.isoformat(),
        end=event.end.isoformat(),
        location=event.location,
        description=event.description,
        attendees=list(event.attendees),
    )
