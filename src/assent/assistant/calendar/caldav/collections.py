"""The calendars of the server by the ids that the tools use, and which of them is the primary one."""

from __future__ import annotations

from assent.assistant.calendar.caldav.connection import Collection, Connection
from assent.errors import ConfigError, NotFound
from assent.settings import CaldavServer

PRIMARY = "primary"


class Collections:
    def __init__(self, server: CaldavServer) -> None:
        self.connection = Connection(server)
        self._url = server.url
        self._wanted = server.calendar

    def by_id(self) -> dict[str, Collection]:
        """The primary one first."""
        collections = self.connection.collections()
        primary = self._primary(collections)
        return {PRIMARY: primary, **{each.calendar_id: each for each in collections if each is not primary}}

    def named(self, calendar_id: str) -> Collection:
        collections = self.by_id()
        named = {each.calendar_id: each for each in collections.values()} | collections
        if calendar_id not in named:
            raise NotFound(
                f"calendar_id: there is no calendar {calendar_id!r}", hint=f"there are: {', '.join(collections)}"
            )
        return named[calendar_id]

    def _primary(self, collections: list[Collection]) -> Collection:
        """The one that the settings name, the one at their address, or the only one; never a guess."""
        if not collections:
            raise ConfigError(f"{self._url} has no calendar for events", hint="create one there, or use another user")
        here = [each for each in collections if each.url.rstrip("/") == self._url.rstrip("/")]
        named = [each for each in collections if self._wanted in (each.name, each.calendar_id)]
        matches = named if self._wanted else here or collections
        if len(matches) == 1:
            return matches[0]
        problem = f"has no calendar {self._wanted!r}" if not matches else "has several calendars"
        names = ", ".join(f"{each.name} ({each.calendar_id})" for each in collections)
        raise ConfigError(f"{self._url} {problem}", hint=f"set ASSISTANT_CALDAV_CALENDAR to one of these: {names}")
