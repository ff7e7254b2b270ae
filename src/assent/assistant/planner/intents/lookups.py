"""Requests that only look something up: what is in the calendar, where a place is, how to get there."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta

from assent.assistant.planner.dates import dates, lengths, phrases, reading
from assent.assistant.planner.goals import Calendars, Create, Directions, Goal, Listing, Places, Slots, Unclear
from assent.assistant.planner.intents import chinese
from assent.assistant.planner.intents.slots import Clause, reference
from assent.assistant.planner.replies import say

DAYS = 7
"""How far ahead is looked where no day is said."""

_I = re.IGNORECASE
_NEXT_DAYS = re.compile(rf"\b(?:the\s+)?(?:next|coming)\s+(?P<count>{lengths.NUMBER})\s+(?P<unit>days?|weeks?)\b", _I)
_SPAN = re.compile(
    r"\b(?P<which>this|next|the\s+coming|coming)\s+(?P<unit>week(?:end)?|month)\b|\bthe\s+(?P<end>weekend)\b", _I
)
_MODES = {
    "walk": "walking", "foot": "walking", "bike": "bicycling", "bicycl": "bicycling", "cycl": "bicycling",
    "car": "driving", "driv": "driving",
    "bus": "transit", "train": "transit", "tram": "transit", "transit": "transit", "public": "transit",
}  # fmt: skip
_MODE = re.compile(
    r"\b(?:by|on|using|via|when)\s+(?:a\s+|my\s+|public\s+)?(?:foot|bike|bicycle|car|bus|train|tram|transport"
    r"|transit|walking|driving|cycling)\b|\b(?:walking|driving|cycling)$",
    _I,
)
_ENDS = re.compile(r"\b(?P<word>from|to|between|and)\s+", _I)
_NEAR = re.compile(r"\s+(?:near(?:\s+to)?|close\s+to|next\s+to|around|by|nearby|beside)\s+(?P<near>.+)$", _I)


def named_calendars(said: Clause) -> list[Goal]:
    return [Calendars()]


def directions(text: str, goal: Directions) -> Directions:
    """With an answer: "from A to B", or just the end that was missing."""
    said = _route(text)
    if said.origin or (said.destination and re.match(r"\s*to\b", text, _I)):
        return Directions(said.origin or goal.origin, said.destination or goal.destination, said.mode or goal.mode)
    named = place(text)
    if goal.origin:
        return Directions(goal.origin, named, said.mode or goal.mode)
    return Directions(named, goal.destination, said.mode or goal.mode)


def free(said: Clause) -> list[Goal]:
    """Whether a time is free."""
    rest, calendar = phrases.take_calendar(f"{said.group('before')} {said.group('rest')}".strip() or said.text)
    day, days, when = _window(rest, said.now)
    if when.day_doubt or when.clock_doubt or when.dial:
        return [_doubtful(when, said.now)]
    if when.day is None and when.clock is not None and days == DAYS:
        start, _ = dates.start_of(when, said.now)
        day, days = (start.date() if start else day), 1
    return [Listing(day, days, free=when, calendar=said.quotes.show(calendar) if calendar else None)]


def when_is(said: Clause) -> list[Goal]:
    day, days, when = _window(said.group("ref"), said.now)
    if when.day_doubt:
        return [_doubtful(when, said.now)]
    words = reference(said.group("ref"), said.now, said.quotes).words
    return [Listing(day, days if when.day else 2 * DAYS, words=words)]


def listing(said: Clause) -> list[Goal]:
    rest, calendar = phrases.take_calendar(said.text)
    day, days, when = _window(rest, said.now)
    if when.day_doubt:
        return [_doubtful(when, said.now)]
    return [Listing(day, days, calendar=said.quotes.show(calendar) if calendar else None)]


def slots(said: Clause) -> list[Goal]:
    """Times that are free. To find one for something is to make that event."""
    day, days, when = _window(re.sub(r"\bfit\s+in\b", "fit", said.text, flags=_I), said.now)
    if when.day_doubt:
        return [_doubtful(when, said.now)]
    people = phrases.company(re.sub(r"\b(?:for|meet|see)\s+", "with ", said.text), said.quotes)
    people = people or chinese.companions(said.text)
    wanted = said.match.groupdict().get("find")
    name = say("meeting with", people=say("and").join(people)) if people else None
    event = Create(name, dates.When(minutes=when.minutes), people=people) if wanted else None
    return [Slots(day, days, when.half, when.minutes, event)]


def _doubtful(when: dates.When, now: datetime) -> Unclear:
    _, question = dates.start_of(when, now)
    return Unclear(say("with it", question=question))


def _window(text: str, now: datetime) -> tuple[date, int, dates.When]:
    """The first day and how many: what is said, or a week from today."""
    today = now.date()
    monday = today - timedelta(days=today.weekday())
    span, counted = _SPAN.search(text), _NEXT_DAYS.search(text)
    when, _ = reading.read(_SPAN.sub(" ", _NEXT_DAYS.sub(" ", text)), now)
    if counted:
        size = 7 if counted["unit"].lower().startswith("w") else 1
        return today, max(1, min(366, round(lengths.number(counted["count"]) * size))), when
    if not span:
        return (when.day, 1, when) if when.day else (today, DAYS, when)
    unit = (span["unit"] or span["end"]).lower()
    following = 7 if (span["which"] or "").lower() == "next" else 0
    if unit == "weekend":
        first = monday + timedelta(days=5 + following)
        return max(first, today), 2 - (today - first).days if today > first else 2, when
    if unit == "month":
        return *_month(today, bool(following)), when
    return (monday + timedelta(days=7), 7, when) if following else (today, 7 - today.weekday(), when)


def _month(today: date, following: bool) -> tuple[date, int]:
    first = (today.replace(day=1) + timedelta(days=32)).replace(day=1)
    after = (first + timedelta(days=32)).replace(day=1)
    return (first, (after - first).days) if following else (today, (first - today).days)


def way(said: Clause) -> list[Goal]:
    route = _route(said.quotes.show(said.group("rest")))
    return [Directions(route.origin, route.destination, route.mode or _mode(said.text))]


def places(said: Clause) -> list[Goal]:
    query = said.quotes.show(said.group("query"))
    near = _NEAR.search(f" {query}")
    what = phrases.name_of(_NEAR.sub("", f" {query}").strip().removeprefix("the nearest ").removeprefix("nearest "))
    return [Places(what.lower() if what else None, place(near["near"]) if near else None)]


def _route(text: str) -> Directions:
    rest = _MODE.sub(" ", text)
    marks = list(_ENDS.finditer(rest))
    ends: dict[str, str] = {}
    for mark, after in zip(marks, [*marks[1:], None], strict=False):
        word = {"between": "from", "and": "to"}.get(mark["word"].lower(), mark["word"].lower())
        named = place(rest[mark.end() : after.start() if after else len(rest)])
        if named:
            ends.setdefault(word, named)
    return Directions(ends.get("from"), ends.get("to"), _mode(text))


def _mode(text: str) -> str | None:
    lowered = text.lower()
    return next((mode for word, mode in _MODES.items() if re.search(rf"\b{word}", lowered)), None)


def place(text: str) -> str | None:
    bare = re.sub(r"^\s*(?:the|my)\s+", "", text.strip(" .,!?"), flags=_I)
    return None if bare.lower() in ("", "here", "there", "me", "it", "walk", "get", "go") else bare
