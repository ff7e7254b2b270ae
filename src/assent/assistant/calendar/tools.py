"""The calendar's tools. Models read their signatures and docstrings; the work is done by a store."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any

from fastmcp import FastMCP
from mcp_types import ToolAnnotations
from pydantic import Field, StringConstraints
from typing_extensions import TypedDict

from assent.assistant.calendar.dates import after, day_or_moment, moment
from assent.assistant.calendar.events import CalendarView, Event, EventView
from assent.assistant.calendar.faults import translating_errors
from assent.assistant.calendar.stores.port import CalendarStore, Request

_YEAR_MINUTES = 366 * 24 * 60
_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)
_REPLACES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
_DELETES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False)

EventId = Annotated[str, Field(description="An event_id that list_events shows.")]
CalendarId = Annotated[str, Field(description="A calendar_id that list_calendars shows.")]
Start = Annotated[str, Field(description="ISO 8601, such as 2026-11-17T15:00:00+01:00; UTC where no offset is given.")]
StartOfList = Annotated[str, Field(description="From when on: an ISO 8601 date, or date and time.")]
Days = Annotated[int, Field(gt=0, le=3660, description="How many days from there.")]
Minutes = Annotated[int, Field(gt=0, le=_YEAR_MINUTES, description="How long it takes.")]
Name = Annotated[str, Field(max_length=500, description="What it is called.")]
Location = Annotated[str, Field(max_length=500, description="Where it takes place.")]
Description = Annotated[str, Field(max_length=20_000, description="Anything else.")]
Attendee = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=320)]
Attendees = Annotated[list[Attendee], Field(max_length=100, description="Who takes part: names or e-mail addresses.")]
Key = Annotated[
    str,
    Field(min_length=1, max_length=200, description="The same key again gives the first result and changes nothing."),
]


class Calendars(TypedDict):
    calendars: list[CalendarView]


class Events(TypedDict):
    events: list[EventView]


class Written(TypedDict):
    event_details: EventView
    id: str
    event_id: str


class CalendarTools:
    def __init__(self, store: CalendarStore) -> None:
        self._store = store

    def add_to(self, server: FastMCP) -> frozenset[str]:
        """Adds the tools and returns their names."""
        tools: tuple[tuple[Callable[..., Any], ToolAnnotations], ...] = (
            (self.list_calendars, _READS),
            (self.list_events, _READS),
            (self.create_event, ADDS),
            (self.update_event, _REPLACES),
            (self.delete_event, _DELETES),
        )
        for tool, kind in tools:
            server.tool(translating_errors(tool), annotations=kind, tags={"calendar"})
        return frozenset(tool.__name__ for tool, _ in tools)

    def list_calendars(self) -> Calendars:
        """List the calendars there are."""
        return {"calendars": self._store.calendars()}

    def list_events(
        self, start_time: StartOfList, calendar_id: CalendarId = "primary", duration_days: Days = 7
    ) -> Events:
        """List what takes place in a calendar from a time on, the earliest first."""
        start = day_or_moment("start_time", start_time)
        end = after("duration_days", start, timedelta(days=duration_days))
        return {"events": self._store.between(calendar_id, start, end)}

    def create_event(
        self,
        start: Start,
        name: Name,
        calendar_id: CalendarId = "primary",
        duration_minutes: Minutes = 30,
        location: Location | None = None,
        description: Description | None = None,
        attendees: Attendees | None = None,
        idempotency_key: Key | None = None,
    ) -> Written:
        """Add an event to a calendar."""
        length = timedelta(minutes=duration_minutes)
        event = Event(name, moment("start", start), length, location, description, tuple(attendees or ()))
        request = {"tool": "create_event", "calendar_id": calendar_id, **plain(event)}
        return written(self._store.create(calendar_id, event, Request(idempotency_key, request)))

    def update_event(
        self,
        calendar_id: CalendarId,
        event_id: EventId,
        start: Start | None = None,
        name: Name | None = None,
        duration_minutes: Minutes | None = None,
        location: Location | None = None,
        description: Description | None = None,
        attendees: Attendees | None = None,
        idempotency_key: Key | None = None,
    ) -> Written:
        """Change an event. Fields that are left out keep their values; moving an event keeps its length."""
        fields = {
            "name": name,
            "start": None if start is None else moment("start", start),
            "length": None if duration_minutes is None else timedelta(minutes=duration_minutes),
            "location": location,
            "description": description,
            "attendees": None if attendees is None else tuple(attendees),
        }
        changes = {field: value for field, value in fields.items() if value is not None}
        request = {"tool": "update_event", "calendar_id": calendar_id, "event_id": event_id}
        request |= {field: str(value) for field, value in changes.items()}
        return written(self._store.update(calendar_id, event_id, changes, Request(idempotency_key, request)))

    def delete_event(self, calendar_id: CalendarId, event_id: EventId, idempotency_key: Key | None = None) -> Written:
        """Delete an event. Returns the event as it was."""
        request = {"tool": "delete_event", "calendar_id": calendar_id, "event_id": event_id}
        return written(self._store.delete(calendar_id, event_id, Request(idempotency_key, request)))


def plain(event: Event) -> dict[str, Any]:
    fields = ("name", "start", "length", "location", "description")
    plain = {field: None if getattr(event, field) is None else str(getattr(event, field)) for field in fields}
    return {**plain, "attendees": list(event.attendees)} if event.attendees else plain


def written(event: EventView) -> Written:
    return {"event_details": event, "id": event["event_id"], "event_id": event["event_id"]}
