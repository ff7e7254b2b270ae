"""The tool that books a meeting room: the one tool with a form. Its rooms are invented, so it works on the built-in
calendar only."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from anyio import to_thread
from fastmcp import Context, FastMCP
from mcp_types import ElicitResult, InputRequiredResult
from pydantic import BaseModel, Field, ValidationError

from assent.assistant.calendar import asking, rooms
from assent.assistant.calendar.dates import moment
from assent.assistant.calendar.events import Event
from assent.assistant.calendar.faults import by_field, translating_errors
from assent.assistant.calendar.stores.file import FileStore
from assent.assistant.calendar.stores.port import Request
from assent.assistant.calendar.tools import ADDS, CalendarId, Key, Minutes, Name, Start, Written, plain, written
from assent.errors import Invalid


class Needs(BaseModel):
    """The form of `book_room`. Flat and of simple types, as MCP requires."""

    people: int = Field(ge=1, le=rooms.MOST_PEOPLE, title="People", description="How many will be there.")
    equipment: rooms.Equipment = Field("none", title="Equipment", description="What the room must have.")


class RoomTools:
    def __init__(self, store: FileStore) -> None:
        self._store = store

    def add_to(self, server: FastMCP) -> frozenset[str]:
        """Adds the tool and returns its name."""
        server.tool(translating_errors(self.book_room), annotations=ADDS, tags={"calendar"})
        return frozenset({self.book_room.__name__})

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
        content = {"tool": "book_room", "calendar_id": calendar_id, **plain(event), **needs.model_dump()}

        def choose(taken: set[str]) -> str:
            return rooms.choose(needs.people, needs.equipment, taken).name

        return written(self._store.book(calendar_id, event, choose, Request(key, content)))


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
