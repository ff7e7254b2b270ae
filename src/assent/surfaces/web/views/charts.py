"""Chart shapes for SVG templates. Pure functions; each chart has a table with the same figures.

Waits range from seconds to weeks, so the scale is logarithmic, with lines at familiar durations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10

from assent.review.model.insights import Outcome, Period, Rates
from assent.surfaces.web.language import gettext as _

TONES = {
    Outcome.APPROVED: "good",
    Outcome.CHANGED: "revision",
    Outcome.REJECTED: "bad",
    Outcome.SENT_BACK: "needs",
    Outcome.UNDECIDED: "closed",
}
_TICKS = (1, 10, 60, 600, 3_600, 6 * 3_600, 86_400, 7 * 86_400, 30 * 86_400, 365 * 86_400)
_UNITS = ((86_400, "%(n)s d"), (3_600, "%(n)s h"), (60, "%(n)s min"))
_HEIGHT, _TOP, _BOTTOM, _LEFT, _RIGHT = 200, 8, 24, 48, 8
_LEAST = 0.5
_DATE = 18
"""Half the width of a date label, so that the last one is not cut off."""
_LABEL = 64
"""Minimum distance between date labels."""


@dataclass(frozen=True, slots=True)
class Tick:
    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Mark:
    """One period: median and 90th percentile of the waits."""

    x: float
    median: float
    p90: float
    words: str


@dataclass(frozen=True, slots=True)
class Timeline:
    width: int
    left: int
    height: int
    floor: int
    lines: list[Tick]
    dates: list[Tick]
    marks: list[Mark]

    @property
    def path(self) -> str:
        return " ".join(f"{mark.x:g},{mark.median:g}" for mark in self.marks)


@dataclass(frozen=True, slots=True)
class Bar:
    x: float
    width: float
    tone: str


def duration(seconds: float | None) -> str:
    """Formats a duration with one or two significant digits."""
    if seconds is None:
        return "–"
    for size, words in _UNITS:
        if seconds >= size:
            return _(words) % {"n": _digits(seconds / size)}
    return _("%(n)s s") % {"n": _digits(seconds)}


def percent(share: float) -> str:
    """Whole percents; `<1 %` for small non-zero shares."""
    return "<1 %" if 0 < share < 0.005 else f"{share * 100:.0f} %"


def timeline(periods: Sequence[Period], width: int) -> Timeline:
    decided = [period for period in periods if period.waits.count]
    low, high = _span(decided)
    step = (width - _LEFT - _RIGHT) / max(len(periods), 1)
    middle = {id(period): round(_LEFT + (index + 0.5) * step, 1) for index, period in enumerate(periods)}
    marks = [
        Mark(
            middle[id(period)],
            _y(period.waits.median, low, high),
            _y(period.waits.p90, low, high),
            _words(period),
        )
        for period in decided
    ]
    every = max(1, -(-_LABEL // max(int(step), 1)))
    labelled = [*reversed(periods)][::every][::-1]
    dates = [Tick(min(middle[id(period)], width - _DATE), f"{period.start:%m-%d}") for period in labelled]
    lines = [Tick(_y(seconds, low, high), duration(seconds)) for seconds in _TICKS if low <= seconds <= high]
    return Timeline(width, _LEFT, _HEIGHT, _HEIGHT - _BOTTOM, lines, dates, marks)


def stack(rates: Rates, width: float = 100) -> list[Bar]:
    """The shares of one row as stacked bars."""
    bars, x = [], 0.0
    for outcome, tone in TONES.items():
        share = rates.share(outcome) * width
        if share:
            bars.append(Bar(round(x, 2), round(share, 2), tone))
        x += share
    return bars


def lengths(counts: Sequence[int], width: float = 100) -> list[float]:
    """Bar lengths relative to the largest count; at least 1 for non-zero counts."""
    most = max(counts, default=0)
    return [round(max(count / most * width, 1), 2) if count else 0 for count in counts]


def _span(decided: Sequence[Period]) -> tuple[float, float]:
    """The ticks below the smallest and above the largest wait."""
    waits = [wait for period in decided for wait in (period.waits.median, period.waits.p90) if wait is not None]
    low, high = max(min(waits, default=1), _LEAST), max(max(waits, default=600), 10)
    below = max((tick for tick in _TICKS if tick <= low), default=_LEAST)
    return below, min((tick for tick in _TICKS if tick > high), default=high)


def _y(seconds: float | None, low: float, high: float) -> float:
    share = (log10(max(seconds or 0, low)) - log10(low)) / (log10(high) - log10(low))
    return round(_HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _TOP), 1)


def _words(period: Period) -> str:
    waits = period.waits
    return f"{period.start:%Y-%m-%d}: {duration(waits.median)} / {duration(waits.p90)} ({waits.count})"


def _digits(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0") if number < 10 else f"{number:.0f}"
