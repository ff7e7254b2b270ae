"""The machine's own time zone as a `tzinfo`.

`datetime.now().astimezone()` carries today's offset only: half a year later it is wrong by an hour. This zone asks the
system for the offset of each date.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo


class MachineZone(tzinfo):
    def utcoffset(self, dt: datetime | None) -> timedelta | None:
        return None if dt is None else dt.replace(tzinfo=None).astimezone().utcoffset()

    def dst(self, dt: datetime | None) -> timedelta | None:
        return None

    def tzname(self, dt: datetime | None) -> str | None:
        return None if dt is None else dt.replace(tzinfo=None).astimezone().tzname()

    def fromutc(self, dt: datetime) -> datetime:
        local = dt.replace(tzinfo=UTC).astimezone()
        naive = local.replace(tzinfo=None)
        fold = int(naive.astimezone().utcoffset() != local.utcoffset())
        return naive.replace(tzinfo=self, fold=fold)


def machine_now() -> datetime:
    return datetime.now(MachineZone())


def exists(moment: datetime) -> bool:
    """False for an hour that the clocks skip in spring."""
    there = moment.astimezone(UTC).astimezone(moment.tzinfo)
    return there.replace(tzinfo=None, fold=0) == moment.replace(tzinfo=None, fold=0)
