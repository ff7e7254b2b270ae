"""When something takes place, in its own zone and not in the reader's, and for how long."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from assent.domain.canonical import Json
from assent.web.language import gettext as _
from assent.web.renderers.reading import mapping, text

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_LONGEST = 64


@dataclass(frozen=True, slots=True)
class Moment:
    """`zone` is the name that was given for it, if any. Of a whole day only the date counts."""

    at: datetime
    zone: str
    whole_day: bool

    def __str__(self) -> str:
        day = f"{_(_DAYS[self.at.weekday()])} {self.at:%Y-%m-%d}"
        return day if self.whole_day else f"{day}, {self.at:%H:%M} {self.where}"

    @property
    def where(self) -> str:
        offset = self.at.strftime("%z")
        shown = f"UTC{offset[:3]}:{offset[3:5]}" if offset else ""
        return " ".join(filter(None, (self.zone, f"({shown})" if self.zone and shown else shown))) or _("no time zone")


def read(value: Json, zone: str = "") -> Moment | None:
    """A text, or an object with `dateTime` or `date` and `timeZone` as calendars write it."""
    about = mapping(value)
    said = value if isinstance(value, str) else text(about, "dateTime", "date_time", "date")
    named = text(about, "timeZone", "time_zone", "timezone") or zone
    if not said or len(said) > _LONGEST or len(named) > _LONGEST:
        return None
    try:
        if _DATE.fullmatch(said):
            return Moment(datetime.combine(date.fromisoformat(said), datetime.min.time()), named, whole_day=True)
        return _placed(datetime.fromisoformat(said), named)
    except (ValueError, OverflowError):
        return None


def _placed(at: datetime, named: str) -> Moment:
    """In the zone that was named; a zone that nobody knows is only repeated."""
    try:
        zone = ZoneInfo(named) if named else None
    except (ValueError, KeyError, OSError):
        return Moment(at, named, whole_day=False)
    if zone is None:
        return Moment(at, "", whole_day=False)
    return Moment(at.astimezone(zone) if at.tzinfo else at.replace(tzinfo=zone), named, whole_day=False)


def between(start: Moment, end: Moment) -> timedelta | None:
    """How long it takes; None where the two cannot be compared."""
    if start.whole_day != end.whole_day or (start.at.tzinfo is None) != (end.at.tzinfo is None):
        return None
    if start.at.tzinfo is None or end.at.tzinfo is None:
        return end.at - start.at
    return timedelta(seconds=end.at.timestamp() - start.at.timestamp())  # also where the clocks change in between


def length(duration: timedelta) -> str:
    minutes = int(abs(duration).total_seconds() // 60)
    parts = ((minutes // 1440, "d"), (minutes // 60 % 24, "h"), (minutes % 60, "min"))
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 min"
