"""The calendar as its tools use it. `tests/assistant/test_calendar_stores.py` is its contract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from assent.assistant.calendar.events import CalendarView, Event, EventView


@dataclass(frozen=True, slots=True)
class Request:
    """A call that changes something. With a key, the same request again returns the first result and does nothing."""

    key: str | None
    content: Mapping[str, Any] = field(default_factory=dict)


class CalendarStore(Protocol):
    def calendars(self) -> list[CalendarView]:
        """The calendar `primary` is the first."""

    def between(self, calendar_id: str, start: datetime, end: datetime) -> list[EventView]:
        """Events that overlap the time range, earliest first."""

    def create(self, calendar_id: str, event: Event, request: Request) -> EventView: ...

    def update(self, calendar_id: str, event_id: str, changes: Mapping[str, Any], request: Request) -> EventView:
        """Changes the named fields of an `Event`; all others stay unchanged."""

    def delete(self, calendar_id: str, event_id: str, request: Request) -> EventView:
        """Returns the event as it was."""
