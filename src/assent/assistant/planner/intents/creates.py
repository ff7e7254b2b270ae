"""Requests for new events: one of them, or several in one sentence."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime

from assent.assistant.planner.dates import dates, lengths, phrases, reading
from assent.assistant.planner.dates.phrases import Quotes
from assent.assistant.planner.goals import Create, Goal, Remark, Unclear
from assent.assistant.planner.intents import chinese, words
from assent.assistant.planner.intents.slots import CALLED, VERB, Clause, chinese_event, new_event, prepared
from assent.assistant.planner.intents.words import verb
from assent.assistant.planner.replies import is_chinese, say

_I = re.IGNORECASE
_LOOSE = re.compile(rf"\s*(?:{'|'.join(words.LOOSE)})\b(?!\s+up)", _I)
_OF_A_CALENDAR = re.compile(
    rf"\b(?:{words.NOUNS})s?\b|\b(?:calendar|diary|agenda)\b|{phrases.TOKEN}|\b(?:called|named|titled)\b|:\s", _I
)
_THINGS = r"(?:events|meetings|appointments|entries|things)\b"
_NO_EVENT = re.compile(
    r"(?:an?|the|my|some)?\s*(?:new\s+)?(?:document|doc|file|folder|poll|playlist|list|ticket|issue|alarm|timer|e?mail|message"
    r"|question|problem|headache|contact|spreadsheet|backup|page|account|password|channel)s?\b",
    _I,
)
"""Things that people create, set or have, and no calendar holds."""
_A_SENTENCE = re.compile(
    r"\b(?:because|which|(?-i:who)|that\s+(?:i|we|needs?|has|is|was)|so\s+(?:that|s?he|they|we|i)\b|i\s+(?:want|need|guess|think|have)"
    r"|needs?\s+to|don['’]?t|on\s+hold|actually|maybe|perhaps)\b",
    _I,
)
_HOW_MANY = re.compile(rf"^\s*{verb('create')}\s+(?:me\s+)?(?P<count>{lengths.NUMBER})\s+(?:new\s+)?{_THINGS}", _I)
_SEVERAL = re.compile(
    rf"^\s*(?:{verb('create')}\s+)?(?:me\s+)?(?:the\s+following\s+)?(?P<count>{lengths.NUMBER})?\s*(?:new\s+)?"
    rf"{_THINGS}(?P<lead>[^:]*):\s*(?P<body>.+)$",
    _I,
)
_JOINT = re.compile(r"\s*(?:;|,\s*and\b|,|\band\b|&)\s*", _I)
_MOST_PIECES = 40
_PEOPLE = re.compile(rf"\b(?:for\s+)?({lengths.NUMBER})\s+(?:people|persons|guests|attendees|of\s+us)\b", _I)
_FOR_SO_MANY = re.compile(
    r"\bfor\s+([0-9]{1,3})\b(?!\s*(?:[ap]\.?m\b|[:.h][0-9]|o['’]?clock|h\b|hours?|hrs?|min|days?|weeks?))", _I
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
        asked = VERB.sub("", clause)
        if re.match(r"(?:no|not|none|nothing)\b", asked, _I):
            return [Remark(say("kept", said=said.shown))]
        made = [new_event(piece, now, quotes) for piece in _pieces(asked, now)]
        if _NO_EVENT.match(asked) or (not CALLED.search(asked) and any(_says_more(create, quotes) for create in made)):
            return []
        return list(_together(made, dates.When(), now))
    count = round(lengths.number(several["count"])) if several["count"] else None
    pieces = _pieces(several["body"], now)
    if count and len(pieces) != count:
        pieces = [piece for piece in _JOINT.split(several["body"]) if piece.strip()]
    if count and len(pieces) != count:
        return [_each_of(several["count"])]
    lead, _ = reading.read(several["lead"], now)
    return list(_together([new_event(piece, now, quotes) for piece in pieces], lead, now))


def _says_more(create: Create, quotes: Quotes) -> bool:
    """Whether the name is a part of a sentence, and not in quotes."""
    return create.name not in quotes.texts and bool(_A_SENTENCE.search(create.name or ""))


def chinese_events(said: Clause) -> list[Goal]:
    when, rest = reading.read(said.text, said.now)
    timed = when.timed or when.dated or bool(when.half)
    if not chinese.asks_for_an_event(said.shown, rest.replace(dates.GAP, " "), timed=timed):
        return []
    return [chinese_event(said.text, said.now, said.quotes)]


def appointment(said: Clause) -> list[Goal]:
    """ "Lunch with Bob on Friday at noon": no verb, but a kind of event that is known, and a time."""
    when, rest = reading.read(said.text, said.now)
    name = phrases.name_of(phrases.take_place(phrases.take_equipment(rest)[0])[0])
    if said.text.rstrip().endswith("?"):
        return []
    known = name and words.is_appointment(name) and not re.match(r"\W*(?:the|my|our|that|this|his|her)\b", rest, _I)
    return events(said) if when.timed and known else []


def _each_of(count: str) -> Unclear:
    return Unclear(say("each of them", count=re.split(r"\s", count.strip())[0]))


def booking(said: Clause) -> list[Goal]:
    """A room."""
    if not said.group("room"):
        return [] if chinese.tells(said.shown) else [_chinese_booking(said)]
    if phrases.name_of(reading.read(said.text[: said.match.start("room")], said.now)[1]):
        return []
    rest = f"{said.text[: said.match.start('room')]} {said.text[said.match.end('room') :]}"
    pattern = _PEOPLE if _PEOPLE.search(rest) else _FOR_SO_MANY
    people, bare = pattern.search(rest), pattern.sub(" ", rest)
    if pattern is _FOR_SO_MANY and not reading.read(bare, said.now)[0].timed:  # then it may be the time
        people, bare = None, rest
    made = new_event(bare, said.now, said.quotes)
    seats = round(lengths.number(people[1])) if people else None
    return [Create(made.name, made.when, equipment=made.equipment, room=True, seats=seats)]


def _chinese_booking(said: Clause) -> Create:
    when, rest = reading.read(said.text, said.now)
    return Create(when=when, equipment=chinese.equipment(rest), room=True, seats=chinese.headcount(rest))


def answered(goal: Create, answer: str, now: datetime) -> Create:
    """With what an answer adds. A name that is known stays, unless the answer gives one in so many words."""
    quotes = Quotes()
    hidden = prepared(answer, now, quotes)
    if (half := dates.in_half(goal.when, hidden)) is not None:
        return replace(goal, when=half)
    if is_chinese(answer):
        said = chinese_event(chinese.bare(hidden), now, quotes)
    else:
        said = new_event(VERB.sub("", hidden), now, quotes, dated=goal.when.dated)
    explicit = said.name if quotes.texts or CALLED.search(hidden) else None
    return replace(
        goal,
        name=goal.name if goal.room else explicit or goal.name or said.name,
        when=goal.when.joined(said.when),
        place=said.place or goal.place,
        notes=said.notes or goal.notes,
        people=said.people or goal.people,
        equipment=said.equipment or goal.equipment,
        calendar=said.calendar or goal.calendar,
        calendar_id=None if said.calendar else goal.calendar_id,
    )


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
