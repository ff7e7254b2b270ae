"""Requests for new events: one of them, or several in one sentence."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime

from assent.assistant.planner.dates import dates, grammar, lengths, phrases, reading
from assent.assistant.planner.dates.phrases import Quotes
from assent.assistant.planner.goals import Booking, Create, Goal, Remark, Unclear
from assent.assistant.planner.intents import nouns
from assent.assistant.planner.intents.clauses import Clause
from assent.assistant.planner.replies import say

VERB = (
    r"(?:schedule|create|pencil\s+in|add|book(?:\s+(?:me|us)\s+in(?:\s+for)?)?|make(?!\s+(?:sure|it|that|do)\b)|set\s+up|plan|arrange|organi[sz]e|put"
    r"|block(?:\s+off)?|enter|reserve|set(?!\s+(?:the|my)\b)|remind\s+me(?:\s+(?:to|of|about))?"
    rf"|have(?=\s+(?:an?|the)\b)|(?:i|we)(?:\s+have(?:\s+got)?|['’]ve(?:\s+got)?)(?=\s+(?:an?|another|my|our|the|{nouns.NOUNS})\b)|new(?=\s+(?:event|meeting|appointment)))"
)
_VERB = re.compile(
    rf"^\s*{VERB}\b\s*(?:(?:an?\s+)?(?:new\s+)?(?:event|meeting|appointment|entry|reminder)\s*:\s*)?", re.IGNORECASE
)
_LOOSE = re.compile(r"\s*(?:put|make|set(?!\s+up)|have|plan|enter|i|we)\b", re.IGNORECASE)
"""Verbs of everyday life: "put the kettle on" is no event."""
_OF_A_CALENDAR = re.compile(
    rf"\b(?:{nouns.NOUNS})s?\b|\b(?:calendar|diary|agenda)\b|{phrases.TOKEN}|\b(?:called|named|titled)\b|:\s",
    re.IGNORECASE,
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
_I_HAVE = re.compile(rf"(^|{dates.GAP})\s*(?:i|we)(?:\s+have|['’]ve)(?:\s+got)?\s", re.IGNORECASE)
_JOINT = re.compile(r"\s*(?:;|,\s*and\b|,|\band\b|&)\s*", re.IGNORECASE)
_MOST_PIECES = 40
_PEOPLE = re.compile(rf"\b(?:for\s+)?({lengths.NUMBER})\s+(?:people|persons|guests|attendees|of\s+us)\b", re.IGNORECASE)
_FOR_SO_MANY = re.compile(
    r"\bfor\s+([0-9]{1,3})\b(?!\s*(?:[ap]\.?m\b|[:.h][0-9]|o['’]?clock|h\b|hours?|hrs?|min|days?|weeks?))",
    re.IGNORECASE,
)


def events(said: Clause) -> list[Goal]:
    """The new events that a clause asks for."""
    clause, now, quotes = said.text, said.now, said.quotes
    several = _SEVERAL.match(clause)
    if _LOOSE.match(clause) and not _OF_A_CALENDAR.search(clause):
        return []
    if not several and _HOW_MANY.match(clause):
        return [_each_of(_HOW_MANY.sub(r"\g<count>", clause))]
    if not several:
        pieces = _pieces(_VERB.sub("", clause), now)
        made = [event(piece, now, quotes) for piece in pieces]
        if any(create.name and re.match(r"nothing\b", create.name, re.IGNORECASE) for create in made):
            return [Remark(say("kept", said=quotes.show(clause)))]
        return list(_together(made, dates.When(), now))
    count = round(lengths.number(several["count"])) if several["count"] else None
    pieces = _pieces(several["body"], now)
    if count and len(pieces) != count:
        pieces = [piece for piece in _JOINT.split(several["body"]) if piece.strip()]
    if count and len(pieces) != count:
        return [_each_of(several["count"])]
    lead, _ = reading.read(several["lead"], now)
    return list(_together([event(piece, now, quotes) for piece in pieces], lead, now))


def appointment(said: Clause) -> list[Goal]:
    """ "Lunch with Bob on Friday at noon": no verb, but a kind of event that is known, and a time."""
    when, rest = reading.read(said.text, said.now)
    name = phrases.name_of(phrases.take_place(phrases.take_equipment(rest)[0])[0])
    known = (
        name
        and nouns.is_appointment(name)
        and not re.match(r"\W*(?:the|my|our|that|this|his|her)\b", rest, re.IGNORECASE)
    )
    return events(said) if when.timed and known else []


def _each_of(count: str) -> Unclear:
    said = re.split(r"\s", count.strip())[0]
    return Unclear(say("each of them", count=said))


def event(text: str, now: datetime, quotes: Quotes, *, dated: bool = False) -> Create:
    """One new event: what a piece of a sentence says about it, whatever is missing. Where nothing else gives the day
    (`dated`), what may be one and is not understood is asked about."""
    rest, notes = phrases.take_notes(text)
    rest, calendar = phrases.take_calendar(rest)
    rest, equipment = phrases.take_equipment(rest)
    called = _CALLED.search(rest)
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


def booking(said: Clause) -> list[Goal]:
    """A room."""
    rest = f"{said.text[: said.match.start('room')]} {said.text[said.match.end('room') :]}"
    pattern = _PEOPLE if _PEOPLE.search(rest) else _FOR_SO_MANY
    people, bare = pattern.search(rest), pattern.sub(" ", rest)
    if pattern is _FOR_SO_MANY and not reading.read(bare, said.now)[0].timed:  # then it may be the time
        people, bare = None, rest
    made = event(bare, said.now, said.quotes)
    return [Booking(made.when, made.name, round(lengths.number(people[1])) if people else None, made.equipment)]


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
        people=said.people or goal.people,
        equipment=said.equipment or goal.equipment,
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
    return replace(when, day_doubt=say("unread day", said=match[0].strip()))
