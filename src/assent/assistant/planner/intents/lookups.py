"""Requests that only look something up: what is in the calendar, where a place is, how to get there."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta

from assent.assistant.planner.dates import dates, lengths, phrases, reading
from assent.assistant.planner.dates.phrases import Quotes
from assent.assistant.planner.goals import Calendars, Directions, Goal, Listing, Places, Unclear
from assent.assistant.planner.intents.changes import reference

DAYS = 7
"""How far ahead is looked where no day is said."""

_I = re.IGNORECASE
_CALENDARS = re.compile(r"\b(?:which|what|list|show)\b.*\bcalendars\b", _I)
_LIST = re.compile(
    r"^(?:what(?:['’]?s|\s+is|\s+are|\s+do|\s+have|\s+does)?\b.*\b(?:calendar|agenda|schedule|events?|meetings?"
    r"|appointments?|on|up|planned|coming|i\s+have|today|tomorrow)\b"
    r"|(?:show|list|tell|give|read|check)\b.*\b(?:calendar|agenda|schedule|events|meetings|appointments|day|week)\b"
    r"|(?:do|have)\s+(?:i|we)\s+(?:have|got)\b|(?:any|anything)\b.*\b(?:on|meetings|events|appointments|planned)\b"
    r"|how\s+busy\b|how\s+does\s+my\s+\w+\s+look\b|(?:my\s+)?(?:calendar|agenda)\b|my\s+schedule\b)",
    _I,
)
_WHEN = re.compile(
    r"^(?:when(?:['’]?s|\s+is|\s+are|\s+do\s+(?:i|we)\s+have|\s+does)|what\s+time\s+is)\s+(?P<ref>.+?)\??$", _I
)
_FREE = re.compile(
    r"^(?:am\s+i|are\s+we|is\s+my\s+calendar|do\s+(?:i|we)\s+have\s+time)\b.*?\b(?:free|busy|available"
    r"|time)\b(?P<rest>.*)$",
    _I,
)
_NEXT_DAYS = re.compile(rf"\b(?:the\s+)?(?:next|coming)\s+(?P<count>{lengths.NUMBER})\s+(?P<unit>days?|weeks?)\b", _I)
_SPAN = re.compile(
    r"\b(?P<which>this|next|the\s+coming|coming)\s+(?P<unit>week(?:end)?|month)\b|\bthe\s+(?P<end>weekend)\b", _I
)
_DIRECTIONS = re.compile(
    r"^(?:(?:give|show|get|find|tell)\s+(?:me\s+)?)?(?:the\s+)?(?:directions|route|way|how\s+(?:do|can"
    r"|would)\s+(?:i|we)\s+(?:get|go|walk|drive|cycle|travel)"
    r"|how\s+to\s+(?:get|go|walk|drive)|how\s+(?:far|long)\s+(?:is|does|to)\b(?:\s+it)?(?:\s+(?:the\s+)?(?:way|walk"
    r"|drive|take))?(?:\s+take)?|navigate|take\s+me)\b(?P<rest>.*)$",
    _I,
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
_PLACES = re.compile(
    r"^(?:(?:i['’]?m|i\s+am|we['’]?re)\s+looking\s+for\s+|(?:find|search(?:\s+for)?|look\s+(?:up|for)|show|suggest|recommend)\s+(?:me\s+|us\s+)?|where(?:['’]?s"
    r"|\s+is|\s+are|\s+can\s+(?:i|we)\s+(?:find|get|eat|drink|buy))\s+"
    r"|is\s+there\s+(?:an?\s+)?|are\s+there\s+(?:any\s+)?)(?P<query>.+)$",
    _I,
)
_NEAR = re.compile(r"\s+(?:near(?:\s+to)?|close\s+to|next\s+to|around|by|nearby|beside)\s+(?P<near>.+)$", _I)


def lookup(clause: str, now: datetime, quotes: Quotes) -> Goal | None:
    """The goal of a question about calendars, events or places; None if it is none."""
    bare = clause.strip(" .!?")
    if _CALENDARS.search(bare):
        return Calendars()
    return _free(bare, now, quotes) or _when(bare, now, quotes) or _listing(bare, now, quotes) or _maps(bare, quotes)


def directions(text: str, goal: Directions) -> Directions:
    """With an answer: "from A to B", or just the end that was missing."""
    said = _route(text)
    if said.origin or (said.destination and re.match(r"\s*to\b", text, _I)):
        return Directions(said.origin or goal.origin, said.destination or goal.destination, said.mode or goal.mode)
    named = place(text)
    if goal.origin:
        return Directions(goal.origin, named, said.mode or goal.mode)
    return Directions(named, goal.destination, said.mode or goal.mode)


def _free(bare: str, now: datetime, quotes: Quotes) -> Goal | None:
    match = _FREE.match(bare)
    if not match:
        return None
    rest, calendar = phrases.take_calendar(match["rest"])
    day, days, when = _window(rest, now)
    if when.day_doubt or when.clock_doubt or when.dial:
        return _doubtful(when, now)
    if when.day is None and when.clock is not None and days == DAYS:
        start, _ = dates.start_of(when, now)
        day, days = (start.date() if start else day), 1
    return Listing(day, days, free=when, calendar=quotes.show(calendar) if calendar else None)


def _when(bare: str, now: datetime, quotes: Quotes) -> Goal | None:
    match = _WHEN.match(bare)
    if not match:
        return None
    day, days, when = _window(match["ref"], now)
    if when.day_doubt:
        return _doubtful(when, now)
    ref = reference(match["ref"], now, quotes)
    return Listing(day, days if when.day else 2 * DAYS, words=ref.words)


def _listing(bare: str, now: datetime, quotes: Quotes) -> Goal | None:
    if not _LIST.match(bare):
        return None
    rest, calendar = phrases.take_calendar(bare)
    day, days, when = _window(rest, now)
    if when.day_doubt:
        return _doubtful(when, now)
    return Listing(day, days, calendar=quotes.show(calendar) if calendar else None)


def _doubtful(when: dates.When, now: datetime) -> Unclear:
    _, question = dates.start_of(when, now)
    return Unclear(f"{question} Please ask me again with it.")


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


def _maps(bare: str, quotes: Quotes) -> Goal | None:
    match = _DIRECTIONS.match(bare)
    if match:
        way = _route(quotes.show(match["rest"]))
        return Directions(way.origin, way.destination, way.mode or _mode(bare))
    match = _PLACES.match(bare)
    if not match:
        return None
    query = quotes.show(match["query"])
    near = _NEAR.search(f" {query}")
    what = phrases.name_of(_NEAR.sub("", f" {query}").strip().removeprefix("the nearest ").removeprefix("nearest "))
    return Places(what.lower() if what else None, place(near["near"]) if near else None)


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
