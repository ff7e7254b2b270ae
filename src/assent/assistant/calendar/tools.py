"""The calendar's tools. Models read their signatures and docstrings; the work is done in `events`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any

from anyio import to_thread
from fastmcp import Context, FastMCP
from mcp_types import ElicitResult, InputRequiredResult, ToolAnnotations
from pydantic import BaseModel, Field, ValidationError
from typing_extensions import TypedDict

from assent.assistant.calendar import asking, events, rooms
from assent.assistant.calendar.database import Database
from assent.assistant.calendar.dates import after, day_or_moment, moment
from assent.assistant.calendar.events import CalendarView, Event, EventView
from assent.assistant.calendar.faults import by_field, translating_errors
from assent.errors import Invalid

_YEAR_MINUTES = 366 * 24 * 60
_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)
_REPLACES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)

CalendarId = Annotated[str, Field(description="A calendar_id that list_calendars shows.")]
Start = Annotated[str, Field(description="ISO 8601, such as 2026-11-17T15:00:00+01:00; UTC where no offset is given.")]
StartOfList = Annotated[str, Field(description="From when on: an ISO 8601 date, or date and time.")]
Days = Annotated[int, Field(gt=0, le=3660, description="How many days from there.")]
Minutes = Annotated[int, Field(gt=0, le=_YEAR_MINUTES, description="How long it takes.")]
Name = Annotated[str, Field(max_length=500, description="What it is called.")]
Location = Annotated[str, Field(max_length=500, description="Where it takes place.")]
Description = Annotated[str, Field(max_length=20_000, description="Anything else.")]
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


class Needs(BaseModel):
    """The form of `book_room`. Flat and of simple types, as MCP requires."""

    people: int = Field(ge=1, le=rooms.MOST_PEOPLE, title="People", description="How many will be there.")
    equipment: rooms.Equipment = Field("none", title="Equipment", description="What the room must have.")


class CalendarTools:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add_to(self, server: FastMCP) -> frozenset[str]:
        """Adds the tools and returns their names."""
        tools: tuple[tuple[Callable[..., Any], ToolAnnotations], ...] = (
            (self.list_calendars, _READS),
            (self.list_events, _READS),
            (self.create_event, _ADDS),
            (self.update_event, _REPLACES),
            (self.book_room, _ADDS),
        )
        for tool, kind in tools:
            server.tool(translating_errors(tool), annotations=kind, tags={"calendar"})
        return frozenset(tool.__name__ for tool, _ in tools)

    def list_calendars(self) -> Calendars:
        """List the calendars there are."""
        with self._database.read() as connection:
            return {"calendars": events.calendars(connection)}

    def list_events(
        self, start_time: StartOfList, calendar_id: CalendarId = "primary", duration_days: Days = 7
    ) -> Events:
        """List what takes place in a calendar from a time on, the earliest first."""
        start = day_or_moment("start_time", start_time)
        end = after("duration_days", start, timedelta(days=duration_days))
        with self._database.read() as connection:
            return {"events": events.between(connection, calendar_id, start, end)}

    def create_event(
        self,
        start: Start,
        name: Name,
        calendar_id: CalendarId = "primary",
        duration_minutes: Minutes = 30,
        location: Location | None = None,
        description: Description | None = None,
        idempotency_key: Key | None = None,
    ) -> Written:
        """Add an event to a calendar."""
        event = Event(name, moment("start", start), timedelta(minutes=duration_minutes), location, description)
        request = {"tool": "create_event", "calendar_id": calendar_id, **_plain(event)}
        with self._database.write() as connection:
            return _written(
                events.once(connection, idempotency_key, request, lambda: events.create(connection, calendar_id, event))
            )

    def update_event(
        self,
        calendar_id: CalendarId,
        event_id: Annotated[str, Field(description="An event_id that list_events shows.")],
        start: Start | None = None,
        name: Name | None = None,
        duration_minutes: Minutes | None = None,
        location: Location | None = None,
        description: Description | None = None,
        idempotency_key: Key | None = None,
    ) -> Written:
        """Change an event. Fields that are left out keep their values; moving an event keeps its length."""
        fields = {
            "name": name,
            "start": None if start is None else moment("start", start),
            "length": None if duration_minutes is None else timedelta(minutes=duration_minutes),
            "location": location,
            "description": description,
        }
        changes = {field: value for field, value in fields.items() if value is not None}
        request = {"tool": "update_event", "calendar_id": calendar_id, "event_id": event_id}
        request |= {field: str(value) for field, value in changes.items()}
        with self._database.write() as connection:
            return _written(
                events.once(
                    connection,
                    idempotency_key,
                    request,
                    lambda: events.update(connection, calendar_id, event_id, changes),
                )
            )

    async def book_room(
        self,
        ctx: Context,
        start: Start,
        name: Name = "Meeting",
        calendar_id: CalendarId = "primary",
        duration_minutes: Minutes = 60,
        people: Annotated[int | None, Field(description="Leave out to have the person asked by a form.")] = None,
        equipment: Annotated[rooms.Equipment | None, Field(description="What the room must have.")] = None,
        idempotency_key: Key | None = None,
    ) -> Written | InputRequiredResult:
        """Book a meeting room that suits. How many people come, and what they need, is asked by a form."""
        event = Event(name, moment("start", start), timedelta(minutes=duration_minutes))
        needs = await self._needs(ctx, people, equipment)
        if isinstance(needs, InputRequiredResult):
            return needs
        return await to_thread.run_sync(self._book, calendar_id, event, needs, idempotency_key)

    async def _needs(
        self, ctx: Context, people: int | None, equipment: rooms.Equipment | None
    ) -> Needs | InputRequiredResult:
        if people is not None:
            return _needs({"people": people, "equipment": equipment or "none"})
        if asking.shows(ctx).form is None:
            raise Invalid("people: this client cannot show a form", hint="pass people and equipment as arguments")
        reply = await asking.form(ctx, "room", "Which room do you need?", _form())
        if not isinstance(reply, ElicitResult):
            return reply
        if reply.action != "accept":
            raise Invalid(f"no room was booked: the person said {reply.action}")
        return _needs(reply.content or {})

    def _book(self, calendar_id: str, event: Event, needs: Needs, key: str | None) -> Written:
        request = {"tool": "book_room", "calendar_id": calendar_id, **_plain(event), **needs.model_dump()}

        def make() -> EventView:
            room = rooms.choose(needs.people, needs.equipment, events.locations_taken(connection, event))
            return events.create(connection, calendar_id, replace(event, location=room.name))

        with self._database.write() as connection:
            return _written(events.once(connection, key, request, make))


def _form() -> dict[str, Any]:
    """The form's schema without our internal title and description."""
    schema = Needs.model_json_schema()
    return {name: schema[name] for name in ("type", "properties", "required")}


def _needs(content: dict[str, Any]) -> Needs:
    """Validates the content: a client may ignore the form's schema."""
    try:
        return Needs.model_validate(content)
    except ValidationError as error:
        raise Invalid(by_field(error)) from None


def _plain(event: Event) -> dict[str, Any]:
    fields = ("name", "start", "length", "location", "description")
    return {field: None if getattr(event, field) is None else str(getattr(event, field)) for field in fields}


def _written(event: EventView) -> Written:
    return {"event_details": event, "id": event["event_id"], "event_id": event["event_id"]}
