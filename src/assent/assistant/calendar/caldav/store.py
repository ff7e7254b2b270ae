"""The calendar of a CalDAV server.

A file of this machine keeps the results of idempotency keys. It is not in one transaction with the server, so a new
event's id derives from its key, a change names the version that it replaces, and a deletion is noted before it is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid4, uuid5
from xml.sax.saxutils import escape

from icalendar import Calendar

from assent.assistant.calendar.caldav import documents
from assent.assistant.calendar.caldav.collections import PRIMARY, Collections
from assent.assistant.calendar.caldav.connection import Collection, Document
from assent.assistant.calendar.database import Database
from assent.assistant.calendar.events import CalendarView, Event, EventView
from assent.assistant.calendar.stores import results
from assent.assistant.calendar.stores.port import Request
from assent.errors import Conflict, Invalid, NotFound
from assent.kernel import canonical
from assent.settings import CaldavServer

_ATTEMPTS = 3


class CaldavStore:
    def __init__(self, server: CaldavServer, database: Database) -> None:
        self._database = database
        self._collections = Collections(server)
        self._connection = self._collections.connection

    def calendars(self) -> list[CalendarView]:
        return [
            CalendarView(
                name=collection.name,
                description=collection.description,
                calendar_id=calendar_id,
                primary=calendar_id == PRIMARY,
            )
            for calendar_id, collection in self._collections.by_id().items()
        ]

    def between(self, calendar_id: str, start: datetime, end: datetime) -> list[EventView]:
        span = f'<c:time-range start="{_utc(start)}" end="{_utc(end)}"/>'
        texts = [document.text for document in self._connection.documents(self._collections.named(calendar_id), span)]
        events = [pair for text in texts for pair in documents.views(documents.parsed(text), start, end)]
        return [event for _, event in sorted(events, key=lambda pair: (pair[0], pair[1]["event_id"]))]

    def create(self, calendar_id: str, event: Event, request: Request) -> EventView:
        return self._once(request, lambda: self._create(self._collections.named(calendar_id), event, request))

    def update(self, calendar_id: str, event_id: str, changes: Mapping[str, Any], request: Request) -> EventView:
        return self._once(request, lambda: self._update(self._collections.named(calendar_id), event_id, changes))

    def delete(self, calendar_id: str, event_id: str, request: Request) -> EventView:
        with self._database.read() as connection:
            noted = results.kept(connection, request)
        if noted and noted.finished:
            return noted.event
        collection = self._collections.named(calendar_id)
        try:
            document, calendar = self._existing(collection, event_id)
        except NotFound:
            if noted is None:
                raise
            return self._kept(request, noted.event)
        event = documents.view(calendar)
        self._kept(request, event, finished=False)
        if not self._connection.delete(document):
            raise _changed_meanwhile()
        return self._kept(request, event)

    def _once(self, request: Request, make: Callable[[], EventView]) -> EventView:
        with self._database.read() as connection:
            noted = results.kept(connection, request)
        return noted.event if noted else self._kept(request, make())

    def _kept(self, request: Request, result: EventView, *, finished: bool = True) -> EventView:
        with self._database.write() as connection:
            results.keep(connection, request, result, finished=finished)
        return result

    def _create(self, collection: Collection, event: Event, request: Request) -> EventView:
        event_id = str(uuid5(NAMESPACE_URL, f"assent:{request.key}") if request.key else uuid4())
        digest = canonical.digest(dict(request.content))
        text = documents.new(event_id, event, digest)
        url = f"{collection.url.rstrip('/')}/{quote(event_id)}.ics"
        if self._connection.put(url, text, {"If-None-Match": "*"}):
            return documents.view(documents.parsed(text.decode()))
        _, present = self._existing(collection, event_id)
        if documents.request_of(present) != digest:
            raise results.other_request()
        return documents.view(present)

    def _update(self, collection: Collection, event_id: str, changes: Mapping[str, Any]) -> EventView:
        for _ in range(_ATTEMPTS):
            document, calendar = self._existing(collection, event_id)
            text = documents.change(calendar, changes)
            condition = {"If-Match": document.etag} if document.etag else {}
            if self._connection.put(document.url, text, condition):
                return documents.view(documents.parsed(text.decode()))
        raise _changed_meanwhile()

    def _existing(self, collection: Collection, event_id: str) -> tuple[Document, Calendar]:
        """The event, which must not repeat."""
        present = self._find(collection, event_id) or self._find(collection, documents.series_of(event_id))
        if present is None:
            raise NotFound(
                f"event_id: there is no event {event_id!r} in the calendar {collection.name!r}",
                hint="list them with list_events",
            )
        if documents.repeats(present[1]):
            raise Invalid(
                "event_id: the event repeats, and only events that take place once can be changed here",
                hint="change it in the calendar's own program",
            )
        return present

    def _find(self, collection: Collection, event_id: str) -> tuple[Document, Calendar] | None:
        """Servers match a part of the id, some without regard to case, so the result is compared."""
        if not event_id:
            return None
        match = f'<c:text-match collation="i;octet">{escape(event_id)}</c:text-match>'
        condition = f'<c:prop-filter name="UID">{match}</c:prop-filter>'
        pairs = ((each, documents.parsed(each.text)) for each in self._connection.documents(collection, condition))
        return next((pair for pair in pairs if documents.uid(pair[1]) == event_id), None)


def _utc(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def _changed_meanwhile() -> Conflict:
    return Conflict("event_id: the event was changed at the same time", hint="list it and call again")
