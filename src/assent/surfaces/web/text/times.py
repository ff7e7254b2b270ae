"""Relative times, with the exact time on hover."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from markupsafe import Markup

from assent.surfaces.web.language import gettext as _

_UNITS = ((86_400 * 365, "y"), (86_400 * 30, "mo"), (86_400, "d"), (3_600, "h"), (60, "min"))


def parsed(moment: str | datetime) -> datetime:
    return moment if isinstance(moment, datetime) else datetime.fromisoformat(moment)


def now() -> datetime:
    """Only for display: item deadlines use the database's clock."""
    return datetime.now(UTC)


def ahead(moment: str | None) -> bool:
    return moment is not None and parsed(moment) > now()


def soon(moment: str | None) -> bool:
    """Whether it is within a day."""
    return moment is not None and parsed(moment) - now() < timedelta(days=1)


def relative(moment: datetime, seen: datetime) -> str:
    seconds = (seen - moment).total_seconds()
    size, unit = next(((size, unit) for size, unit in _UNITS if abs(seconds) >= size), (1, ""))
    if not unit:
        return _("just now") if seconds >= 0 else _("in less than a minute")
    count = int(abs(seconds) // size)
    pattern = _("%(num)s {unit} ago") if seconds >= 0 else _("in %(num)s {unit}")
    return pattern.replace("{unit}", _(unit)) % {"num": count}


def date(moment: str | datetime) -> Markup:
    """Returns the day and the time. The words beside it do not count: an old request stays old."""
    at = parsed(moment).astimezone(UTC)
    return Markup('<span class="moment">{}</span>').format(at.strftime("%Y-%m-%d %H:%M UTC"))


def time(moment: str | datetime | None) -> Markup:
    """Returns a `<time>` element, or a dash for None."""
    if moment is None:
        return Markup('<span class="quiet">–</span>')
    at = parsed(moment).astimezone(UTC)
    exact = at.strftime("%Y-%m-%d %H:%M:%S UTC")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(at.isoformat(), exact, relative(at, now()))
