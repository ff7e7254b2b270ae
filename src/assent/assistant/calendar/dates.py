"""Parses callers' date-times. An ambiguous value is refused with the field's name, never guessed."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from assent.errors import Invalid

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EXAMPLE = "such as 2026-11-17T15:00:00+01:00"


def moment(field: str, text: str) -> datetime:
    """A date with a time, to the second, with its offset; UTC by default."""
    if _is_date(text):
        raise Invalid(f"{field}: {text!r} has no time of day", hint=f"give date and time, {_EXAMPLE}")
    try:
        parsed = datetime.fromisoformat(text.strip())
    except ValueError:
        raise Invalid(f"{field}: {text!r} is not an ISO 8601 date and time", hint=_EXAMPLE) from None
    return parsed.replace(microsecond=0, tzinfo=parsed.tzinfo or UTC)


def day_or_moment(field: str, text: str) -> datetime:
    """Like `moment`; a date alone is the start of that day."""
    return moment(field, f"{text.strip()}T00:00:00" if _is_date(text) else text)


def after(field: str, start: datetime, length: timedelta) -> datetime:
    try:
        return start + length
    except OverflowError:
        raise Invalid(f"{field}: ends after the year 9999") from None


def seconds(value: datetime) -> int:
    """Seconds since the epoch, comparable across offsets."""
    return (value - _EPOCH) // timedelta(seconds=1)


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text.strip())
    except ValueError:
        return False
    return True
