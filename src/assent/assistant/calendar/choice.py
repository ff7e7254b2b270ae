"""The calendar that the settings choose: the file, or one on a CalDAV server."""

from __future__ import annotations

from assent.assistant.calendar.database import Database
from assent.assistant.calendar.stores.file import FileStore
from assent.assistant.calendar.stores.port import CalendarStore
from assent.errors import ConfigError, Forbidden, Unavailable
from assent.extras import require
from assent.settings import CaldavServer


def store(database: Database, caldav: CaldavServer | None) -> CalendarStore:
    if caldav is None:
        return FileStore(database)
    require("caldav", "ASSISTANT_CALDAV_URL")
    from assent.assistant.calendar.caldav.store import CaldavStore

    return CaldavStore(caldav, database)


def require_calendar(caldav: CaldavServer) -> None:
    """Stops the start if the server has no calendar that can be used."""
    require("caldav", "ASSISTANT_CALDAV_URL")
    from assent.assistant.calendar.caldav.collections import Collections

    try:
        Collections(caldav).by_id()
    except (Forbidden, Unavailable) as error:
        raise ConfigError(error.message, hint=error.hint) from None
