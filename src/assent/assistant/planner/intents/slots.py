"""The parts of a clause beside its verb, in both languages: times, references to events, the parts of a new event."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime

from assent.assistant.planner import calendars
from assent.assistant.planner.dates import chinese as chinese_dates
from assent.assistant.planner.dates import dates, grammar, phrases, reading
from assent.assistant.planner.dates.phrases import Quotes
from assent.assistant.planner.goals import Create, Reference
from assent.assistant.planner.intents import chinese
from assent.assistant.planner.intents.words import verb
from assent.assistant.planner.replies import is_chinese, say

_I = re.IGNORECASE
_IT = re.compile(
    r"(?:it|(?:that|this)(?:\s+(?:one|event|meeting))?|the\s+event)(?:\s+instead)?|它|那个|这个|会议?|日程|安排", _I
)
_SEVERAL = re.compile(
    r"\b(?:everything|all|every|both|each|(?:my|the|these|those)\s+(?:events|meetings|appointments))\b"
    r"|所有|全部|每个|一切",
    _I,
)
_GENERIC = {
    "a", "an", "the", "my", "our", "meeting", "event", "appointment", "entry", "one", "of", "on", "at", "in", "for",
    "with", "from", "and", "to", "is", "me", "please", "next", "upcoming", "calendar", "i", "s", "appt", "scheduled",
    "会议", "会", "日程", "活动", "事",
}  # fmt: skip
CALLED = re.compile(
    r"\b(?:called|named|titled|entitled|with\s+the\s+(?:title|name)|name\s+it|call\s+it|title\s+it)\s+", _I
)
VERB = re.compile(
    rf"^\s*{verb('create')}\b\s*(?:(?:an?\s+)?(?:new\s+)?(?:event|meeting|appointment|entry|reminder)\s*:\s*)?", _I
)
_LEFT = re.compile(r"\b(?:on the [0-9]+[a-z]{2}|in the (?:morning|afternoon|evening)|(?:at|for|in) [0-9]+)\b")
"""A Chinese time in English that could not be read."""
_I_HAVE = re.compile(rf"(^|{dates.GAP})\s*(?:i|we)(?:\s+have|['’]ve)(?:\s+got)?\s", _I)


@dataclass(frozen=True, slots=True)
class Clause:
    """`shown` is the text as it was said. `match` is of the pattern by which an intent recognised it."""

    text: str
    shown: str
    now: datetime
    quotes: Quotes
    match: re.Match[str]

    def group(self, name: str) -> str:
        return (self.match.groupdict().get(name) or "").strip()


def prepared(text: str, now: datetime, quotes: Quotes) -> str:
    """One line, with quoted texts hidden, and with Chinese times in English."""
    if not is_chinese(text):
        return quotes.hide(phrases.clean(text))
    hidden = quotes.hide(chinese.plain(phrases.clean(text)))
    return chinese_dates.in_english(hidden, now.date())


def time_of(text: str, now: datetime) -> tuple[dates.When, str]:
    """The time that a text is about, and what is left: "5pm" and "to 5pm" as well as "at 5pm"."""
    said = re.sub(r"^\s*(?:(?:to|at|by)\s+|(?=[0-9]))", "at ", text)
    return reading.read(said if re.match(r"at\s+[0-9]", said) else text, now)


def reference(text: str, now: datetime, quotes: Quotes) -> Reference:
    bare = text.strip(" .,!?")
    when, rest = reading.read(bare, now, strictly=False)
    left, shown = quotes.show(rest.replace(dates.GAP, " ")), quotes.show(bare)
    if chinese.HAN.search(left):
        left = chinese.name(left)
        shown = left or shown
    it = bool(_IT.fullmatch(shown)) and (when.empty or shown.isascii())
    known = () if it else tuple(word for word in calendars.words(left) if word not in _GENERIC)
    doubt = when.day_doubt or when.clock_doubt or (say("one at a time") if _SEVERAL.search(bare) else None)
    return Reference(shown, known, dates.plain(when), it=it, doubt=doubt)


def new_event(text: str, now: datetime, quotes: Quotes, *, dated: bool = False) -> Create:
    """The parts of a new event that a piece of a sentence names, whatever is missing. Where nothing else gives the day
    (`dated`), what may be one and is not understood is asked about."""
    rest, notes = phrases.take_notes(text)
    rest, calendar = phrases.take_calendar(rest)
    rest, equipment = phrases.take_equipment(rest)
    called = CALLED.search(rest)
    before, named = (rest[: called.start()], rest[called.end() :]) if called else (rest, "")
    when, rest = reading.read(before, now)
    when, name, place = _named(named, when, now) if called else (when, None, None)
    rest, place_before = phrases.take_place(_I_HAVE.sub(r"\1 ", rest))
    name = name or _token(rest) or phrases.name_of(rest)
    return Create(
        name=_shown(quotes, name),
        when=when if dated else _unread(when, f"{rest} {dates.GAP} {name if called else ''}"),
        place=_shown(quotes, place or place_before),
        notes=_shown(quotes, notes),
        people=phrases.company(rest, quotes),
        equipment=equipment,
        calendar=_shown(quotes, calendar),
    )


def chinese_event(text: str, now: datetime, quotes: Quotes) -> Create:
    when, rest = reading.read(text, now)
    if left := _LEFT.search(rest):
        when = replace(when, day_doubt=say("unread day", said=left[0]))
    rest, place = chinese.take_place(rest.replace(dates.GAP, " "))
    people = tuple(quotes.show(person) for person in chinese.company(rest))
    return Create(_shown(quotes, chinese.new_name(rest)), when, _shown(quotes, place), people=people)


def _named(text: str, when: dates.When, now: datetime) -> tuple[dates.When, str | None, str | None]:
    """The name after "called", up to the first time or place."""
    head, tail = grammar.name_and_time(text)
    said, rest = reading.read(tail, now)
    rest, place = phrases.take_place(f"{head} {dates.GAP} {rest}")
    first, *others = rest.split(dates.GAP)
    name = _token(first) or phrases.name_of(first, whole=True)
    company = next((piece.strip() for piece in others if re.match(r"\s*with\s", piece, _I)), "")
    return when.joined(said), f"{name} {company}".strip() if name else None, place


def _token(text: str) -> str | None:
    match = re.search(phrases.TOKEN, text)
    return match[0] if match else None


def _shown(quotes: Quotes, text: str | None) -> str | None:
    return quotes.show(text) or None if text else None


def _unread(when: dates.When, left: str) -> dates.When:
    match = None if when.dated else grammar.UNREAD.search(left)
    if not match:
        return when
    return replace(when, day_doubt=say("unread day", said=match[0].strip()))
