"""Free times between the events of a calendar, in working hours unless another part of the day is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, time, timedelta

from assent.assistant.planner import replies
from assent.assistant.planner.dates import dates
from assent.assistant.planner.goals import Event, Slots
from assent.assistant.planner.replies import say

_HOURS = {None: (9, 18), "am": (8, 12), "pm": (12, 18), "evening": (17, 22), "night": (17, 22)}
_USUAL = 30
_MOST = 5
_STEP = timedelta(minutes=15)

Span = tuple[datetime, datetime]


def free(goal: Slots, events: Sequence[Event], now: datetime) -> list[Span]:
    """The free spans that are long enough. Weekends count only if they are asked for by themselves."""
    least = timedelta(minutes=goal.minutes or _USUAL)
    return [
        span
        for offset in range(goal.days)
        if (day := goal.day + timedelta(days=offset)).weekday() < 5 or goal.days <= 2
        for span in _gaps(_hours(goal, datetime.combine(day, time(0), now.tzinfo), now), events)
        if span[1] - span[0] >= least
    ]


def told(goal: Slots, events: Sequence[Event], now: datetime) -> str:
    spans = free(goal, events, now)
    if not spans:
        return say("none free", length=replies.length(goal.minutes or _USUAL))
    shown = "; ".join(_told(span, now) for span in spans[:_MOST])
    return say("free", spans=shown, more="; …" if len(spans) > _MOST else "")


def offer(goal: Slots, events: Sequence[Event], now: datetime) -> str:
    offered = _offered(goal, events, now)
    length = replies.length(goal.minutes or _USUAL)
    if not offered:
        return say("none free, when", length=length)
    listed = " / ".join(f"{number}. {_told(span, now)}" for number, span in enumerate(offered, 1))
    return say("offer to others" if goal.wanted and goal.wanted.people else "offer", length=length, spans=listed)


def chosen(goal: Slots, events: Sequence[Event], number: int | None, now: datetime) -> dates.When | None:
    """By its number in the offer; 0 is the first."""
    offered = _offered(goal, events, now)
    if number is None or number > len(offered) or not offered:
        return None
    start, end = offered[max(number - 1, 0)]
    return dates.moment_of(start).joined(dates.When(minutes=(end - start) // timedelta(minutes=1)))


def _offered(goal: Slots, events: Sequence[Event], now: datetime) -> list[Span]:
    """The beginnings of the first free spans, one for each."""
    length = timedelta(minutes=goal.minutes or _USUAL)
    return [(start, start + length) for start, _ in free(goal, events, now)[:_MOST]]


def _hours(goal: Slots, midnight: datetime, now: datetime) -> Span:
    first, last = _HOURS[goal.half]
    soon = now.replace(second=0, microsecond=0) + _STEP - timedelta(minutes=now.minute % 15)
    return max(midnight + timedelta(hours=first), soon), midnight + timedelta(hours=last)


def _gaps(hours: Span, events: Sequence[Event]) -> Iterator[Span]:
    start, last = hours
    for event in sorted(events, key=lambda event: event.start):
        end = event.end or event.start
        if end > start and event.start < last:
            if event.start > start:
                yield start, event.start
            start = max(start, end)
    if start < last:
        yield start, last


def _told(span: Span, now: datetime) -> str:
    start, end = span
    return f"{replies.day(start.date(), now)} {dates.hour(start)}–{dates.hour(end)}"
