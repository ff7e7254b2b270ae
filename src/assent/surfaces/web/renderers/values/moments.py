"""Times of events in their own zone, and durations."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from assent.kernel.canonical import Json
from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.renderers.values.reading import mapping, text

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_LONGEST = 64


@dataclass(frozen=True, slots=True)
class Moment:
    """`zone` is the given zone name, if any. For `whole_day`, only the date counts."""

    at: datetime
    zone: str
    whole_day: bool

    def __str__(self) -> str:
        day = f"{_(_DAYS[self.at.weekday()])} {self.at:%Y-%m-%d}"
        return day if self.whole_day else f"{day}, {self.at:%H:%M} {self.where}"

    @property
    def where(self) -> str:
        offset = self.at.strftime("%z")
        shown = "UTC" if offset == "+0000" else f"UTC{offset[:3]}:{offset[3:5]}" if offset else ""
        return " ".join(filter(None, (self.zone, f"({shown})" if self.zone and shown else shown))) or _("no time zone")


def read(value: Json, zone: str = "") -> Moment | None:
    """Parses a text, or a calendar object with `dateTime` or `date` and `timeZone`."""
    about = mapping(value)
    written = value if isinstance(value, str) else text(about, "dateTime", "date_time", "date")
    named = text(about, "timeZone", "time_zone", "timezone") or zone
    if not written or len(written) > _LONGEST or len(named) > _LONGEST:
        return None
    try:
        if _DATE.fullmatch(written):
            return Moment(datetime.combine(date.fromisoformat(written), datetime.min.time()), named, whole_day=True)
        return _placed(datetime.fromisoformat(written), named)
    except (ValueError, OverflowError):
        return None


def _placed(at: datetime, named: str) -> Moment:
    """Converts to the named zone; an unknown zone is only shown."""
    try:
        zone = ZoneInfo(named) if named else None
    except (ValueError, KeyError, OSError):
        return Moment(at, named, whole_day=False)
    if zone is None:
        return Moment(at, "", whole_day=False)
    return Moment(at.astimezone(zone) if at.tzinfo else at.replace(tzinfo=zone), named, whole_day=False)


def between(start: Moment, end: Moment) -> timedelta | None:
    """The duration; None if the two cannot be compared."""
    if start.whole_day != end.whole_day or (start.at.tzinfo is None) != (end.at.tzinfo is None):
        return None
    if start.at.tzinfo is None or end.at.tzinfo is None:
        return end.at - start.at
    return timedelta(seconds=end.at.timestamp() - start.at.timestamp())  # correct across DST changes


def length(duration: timedelta) -> str:
    minutes = int(abs(duration).total_seconds() // 60)
    parts = ((minutes // 1440, "d"), (minutes // 60 % 24, "h"), (minutes % 60, "min"))
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 min"
