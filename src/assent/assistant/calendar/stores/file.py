"""The built-in calendar: a file. Every change and the result of its key are one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from assent.assistant.calendar import events
from assent.assistant.calendar.database import Database
from assent.assistant.calendar.events import CalendarView, Event, EventView
from assent.assistant.calendar.stores import results
from assent.assistant.calendar.stores.port import Request


class FileStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def calendars(self) -> list[CalendarView]:
        with self._database.read() as connection:
            return events.calendars(connection)

    def between(self, calendar_id: str, start: datetime, end: datetime) -> list[EventView]:
        with self._database.read() as connection:
            return events.between(connection, calendar_id, start, end)

    def create(self, calendar_id: str, event: Event, request: Request) -> EventView:
        with self._database.write() as connection:
            return results.once(connection, request, lambda: events.create(connection, calendar_id, event))

    def update(self, calendar_id: str, event_id: str, changes: Mapping[str, Any], request: Request) -> EventView:
        with self._database.write() as connection:
            return results.once(connection, request, lambda: events.update(connection, calendar_id, event_id, changes))

    def delete(self, calendar_id: str, event_id: str, request: Request) -> EventView:
        with self._database.write() as connection:
            return results.once(connection, request, lambda: events.delete(connection, calendar_id, event_id))

    def book(self, calendar_id: str, event: Event, choose: Callable[[set[str]], str], request: Request) -> EventView:
        """Adds the event at the location that `choose` names, given those that are taken at its time."""

        def make() -> EventView:
            location = choose(events.locations_taken(connection, event))
            return events.create(connection, calendar_id, replace(event, location=location))

        with self._database.write() as connection:
            return results.once(connection, request, make)
