"""Requests for new events: one of them, or several in one sentence."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime

from assent.assistant.planner.dates import dates, grammar, lengths, phrases, reading
from assent.assistant.planner.dates.phrases import Quotes
from assent.assistant.planner.goals import Booking, Create, Goal, Unclear

VERB = (
    r"(?:schedule|create|add|book|make|set\s+up|plan|arrange|organi[sz]e|put|block(?:\s+off)?|enter|reserve"
    r"|set(?!\s+(?:the|my)\b)|remind\s+me(?:\s+(?:to|of|about))?|(?:i|we)(?:\s+have|['’]ve\s+got|['’]ve)|new(?=\s+(?:event|meeting|appointment)))"
)
_VERB = re.compile(
    rf"^\s*{VERB}\b\s*(?:(?:an?\s+)?(?:new\s+)?(?:event|meeting|appointment|entry|reminder)\s*:\s*)?", re.IGNORECASE
)
_HOW_MANY = re.compile(
    rf"^\s*{VERB}\s+(?:me\s+)?(?P<count>{lengths.NUMBER})\s+(?:new\s+)?(?:events|meetings|appointments|entries|things)\b",
    re.IGNORECASE,
)
_CALLED = re.compile(
    r"\b(?:called|named|titled|entitled|with\s+the\s+(?:title|name)|name\s+it|call\s+it|title\s+it)\s+", re.IGNORECASE
)
_SEVERAL = re.compile(
    rf"^\s*(?:{VERB}\s+)?(?:me\s+)?(?:the\s+following\s+)?(?P<count>{lengths.NUMBER})?\s*(?:new\s+)?"
    r"(?:events|meetings|appointments|entries|things)\b(?P<lead>[^:]*):\s*(?P<body>.+)$",
    re.IGNORECASE,
)
_JOINT = re.compile(r"\s*(?:;|,\s*and\b|,|\band\b|&)\s*", re.IGNORECASE)
_MOST_PIECES = 40
_ROOM = re.compile(
    r"\b(?:book|reserve|get|need|find)\s+(?:me\s+|us\s+)?(?:an?\s+|the\s+)?(?:meeting\s+|conference\s+)?room\b",
    re.IGNORECASE,
)
_PEOPLE = re.compile(r"\b(?:for\s+)?([0-9]{1,3})\s+(?:people|persons|guests|attendees|of\s+us)\b", re.IGNORECASE)
_FOR_SO_MANY = re.compile(
    r"\bfor\s+([0-9]{1,3})\b(?!\s*(?:[ap]\.?m\b|[:.h][0-9]|o['’]?clock|h\b|hours?|hrs?|min|days?|weeks?))",
    re.IGNORECASE,
)


def events(clause: str, now: datetime, quotes: Quotes) -> list[Goal]:
    """The new events that a clause asks for."""
    several = _SEVERAL.match(clause)
    if not several and _HOW_MANY.match(clause):
        return [_each_of(_HOW_MANY.sub(r"\g<count>", clause))]
    if not several:
        pieces = _pieces(_VERB.sub("", clause), now)
        return list(_together([event(piece, now, quotes) for piece in pieces], dates.When(), now))
    count = round(lengths.number(several["count"])) if several["count"] else None
    pieces = _pieces(several["body"], now)
    if count and len(pieces) != count:
        pieces = [piece for piece in _JOINT.split(several["body"]) if piece.strip()]
    if count and len(pieces) != count:
        return [_each_of(several["count"])]
    lead, _ = reading.read(several["lead"], now)
    return list(_together([event(piece, now, quotes) for piece in pieces], lead, now))


def _each_of(count: str) -> Unclear:
    said = re.split(r"\s", count.strip())[0]
    return Unclear(f"You speak of {said} events. Please give me a name, a day and a time for each of them.")


def event(text: str, now: datetime, quotes: Quotes, *, dated: bool = False) -> Create:
    """One new event: what a piece of a sentence says about it, whatever is missing. Where nothing else gives the day
    (`dated`), what may be one and is not understood is asked about."""
    rest, notes = phrases.take_notes(text)
    rest, calendar = phrases.take_calendar(rest)
    called = _CALLED.search(rest)
    before, named = (rest[: called.start()], rest[called.end() :]) if called else (rest, "")
    when, rest = reading.read(before, now)
    when, name, place = _named(named, when, now) if called else (when, None, None)
    rest, place_before = phrases.take_place(rest)
    name = name or _token(rest) or phrases.name_of(rest)
    return Create(
        name=_shown(quotes, name),
        when=when if dated else _unread(when, f"{rest} {dates.GAP} {name if called else ''}"),
        place=_shown(quotes, place or place_before),
        notes=_shown(quotes, notes),
        calendar=_shown(quotes, calendar),
    )


def booking(clause: str, now: datetime, quotes: Quotes) -> Booking | None:
    """A room, if that is what the clause asks for."""
    match = _ROOM.search(clause)
    if not match:
        return None
    rest = f"{clause[: match.start()]} {clause[match.end() :]}"
    pattern = _PEOPLE if _PEOPLE.search(rest) else _FOR_SO_MANY
    people, bare = pattern.search(rest), pattern.sub(" ", rest)
    if pattern is _FOR_SO_MANY and not reading.read(bare, now)[0].timed:  # then it may be the time
        people, bare = None, rest
    made = event(bare, now, quotes)
    return Booking(made.when, made.name, int(people[1]) if people else None)


def answered(goal: Create, answer: str, now: datetime) -> Create:
    """With what an answer adds. A name that is known stays, unless the answer gives one in so many words."""
    quotes = Quotes()
    if (half := dates.in_half(goal.when, answer)) is not None:
        return replace(goal, when=half)
    hidden = quotes.hide(phrases.clean(answer))
    said = event(_VERB.sub("", hidden), now, quotes, dated=goal.when.dated)
    explicit = said.name if quotes.texts or _CALLED.search(hidden) else None
    return replace(
        goal,
        name=explicit or goal.name or said.name,
        when=goal.when.joined(said.when),
        place=said.place or goal.place,
        notes=said.notes or goal.notes,
        calendar=said.calendar or goal.calendar,
        calendar_id=None if said.calendar else goal.calendar_id,
    )


def _named(text: str, when: dates.When, now: datetime) -> tuple[dates.When, str | None, str | None]:
    """The name after "called", up to the first time or place."""
    head, tail = grammar.name_and_time(text)
    said, rest = reading.read(tail, now)
    rest, place = phrases.take_place(f"{head} {dates.GAP} {rest}")
    first, *others = rest.split(dates.GAP)
    name = _token(first) or phrases.name_of(first, whole=True)
    company = next((piece.strip() for piece in others if re.match(r"\s*with\s", piece, re.IGNORECASE)), "")
    return when.joined(said), f"{name} {company}".strip() if name else None, place


def _token(text: str) -> str | None:
    match = re.search(phrases.TOKEN, text)
    return match[0] if match else None


def _shown(quotes: Quotes, text: str | None) -> str | None:
    return quotes.show(text) or None if text else None


def _pieces(text: str, now: datetime) -> list[str]:
    """Where a sentence lists several events, one piece each. A piece without a time belongs to the next, one without a
    name to the one before: "Lunch with Ann and Bob at noon" is one event, and "between 3 and 4pm" is one time."""
    pieces: list[str] = []
    start, joints = 0, [*_JOINT.finditer(text), None]
    if len(joints) > _MOST_PIECES:
        return [text]
    for joint in joints:
        end = joint.start() if joint else len(text)
        piece = text[start:end]
        when, rest = reading.read(piece, now)
        if not joint and pieces and not (when.timed and phrases.name_of(rest)):
            pieces[-1] += text[start - _width(text, start) : end]
        elif when.timed and (not pieces or phrases.name_of(rest)):
            pieces.append(piece)
            start = joint.end() if joint else end
        elif not joint:
            pieces.append(piece)
    return pieces


def _width(text: str, start: int) -> int:
    """How long the joint before `start` is."""
    return max((joint.end() - joint.start() for joint in _JOINT.finditer(text) if joint.end() == start), default=0)


def _together(made: list[Create], lead: dates.When, now: datetime) -> list[Create]:
    """Events of one sentence share a day that is said once, and one that is not said at all."""
    days = [create.when.day for create in made if create.when.day]
    if lead.dated:
        return [create if create.when.dated else replace(create, when=lead.joined(create.when)) for create in made]
    doubt = next((create.when.day_doubt for create in made if create.when.day_doubt), None)
    if doubt and not days:
        return [create if create.when.dated else _doubted(create, doubt) for create in made]
    if any(create.when.dated for create in made):
        near = days[0] if days else None
        shared = []
        for create in made:
            near = create.when.day or near
            shared.append(create if create.when.dated else replace(create, when=replace(create.when, day=near)))
        return shared
    clocks = [create.when.clock for create in made if create.when.clock is not None]
    if len(made) < 2 or len(clocks) != len(made):
        return made
    day = dates.shared_day(clocks, now)
    return [replace(create, when=replace(create.when, day=day)) for create in made]


def _doubted(create: Create, doubt: str) -> Create:
    return replace(create, when=replace(create.when, day_doubt=doubt))


def _unread(when: dates.When, left: str) -> dates.When:
    match = None if when.dated else grammar.UNREAD.search(left)
    if not match:
        return when
    return replace(when, day_doubt=f"I cannot read “{match[0].strip()}” as a date. Which day do you mean?")
