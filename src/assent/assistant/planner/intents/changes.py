"""Makes the changes of an event that exists: move, rename, lengthen, invite, delete, another place."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime

from assent.assistant.planner import calendars, replies
from assent.assistant.planner.dates import dates, lengths, phrases, reading
from assent.assistant.planner.dates.phrases import Quotes
from assent.assistant.planner.goals import Change, Event, Reference
from assent.assistant.planner.intents.clauses import Clause
from assent.assistant.planner.replies import say

MOVE = (
    r"(?:move|reschedule|shift|postpone|push|delay|bring|change|put\s+off|put(?=\s+.+\s(?:back|forward)\b)"
    r"|set(?=\s+(?:the|my)\b.*\bto\b))"
)
_I = re.IGNORECASE
_TO = re.compile(r"\s+(?:to|until|till|for)\s+|\s+(?=(?:to|until)\s)", _I)
_START = re.compile(rf"^\s*{MOVE}\s+(?:the\s+(?:date|time|start)\s+of\s+)?", _I)
_WAY = re.compile(r"\s+(?:back|forward|off)\s*$", _I)
_MOST_JOINTS = 12
_IT = re.compile(r"(?:it|(?:that|this)(?:\s+(?:one|event|meeting))?|the\s+event)(?:\s+instead)?", _I)
_SEVERAL = re.compile(
    r"\b(?:everything|all|every|both|each|(?:my|the|these|those)\s+(?:events|meetings|appointments))\b", _I
)
_SAME_TIME = re.compile(r",?\s*\b(?:at\s+the\s+)?same\s+time\b", _I)
_GENERIC = {
    "a", "an", "the", "my", "our", "meeting", "event", "appointment", "entry", "one", "of", "on", "at", "in", "for",
    "with", "from", "and", "to", "is", "me", "please", "next", "upcoming", "calendar", "i", "s", "appt", "scheduled",
    "会议", "会", "日程", "活动", "事",
}  # fmt: skip


def reference(text: str, now: datetime, quotes: Quotes) -> Reference:
    bare = text.strip(" .,!?")
    when, rest = reading.read(bare, now, strictly=False)
    words = quotes.show(rest.replace(dates.GAP, " ")).lower()
    it = bool(_IT.fullmatch(bare))
    event_words = () if it else tuple(word for word in calendars.words(words) if word not in _GENERIC)
    doubt = when.day_doubt or when.clock_doubt or (say("one at a time") if _SEVERAL.search(bare) else None)
    return Reference(quotes.show(bare), event_words, dates.plain(when), it=it, doubt=doubt)


def rename(said: Clause) -> list[Change]:
    return [replace(_of(said), name=said.quotes.show(said.group("new")))]


def relocate(said: Clause) -> list[Change]:
    return [replace(_of(said), place=said.quotes.show(said.group("new")))]


def invite(said: Clause) -> list[Change]:
    people = phrases.people(said.group("who"), said.quotes)
    return [replace(_of(said), people=people)] if people else []


def delete(said: Clause) -> list[Change]:
    """ "the dentist and the haircut" are two events; what has no article may be one name."""
    refs = re.split(r"\s*(?:,|\band\b)\s+(?=(?:the|my)\b)", said.group("ref") or "it", flags=_I)
    return [Change(reference(ref, said.now, said.quotes), delete=True) for ref in refs]


def stretch(said: Clause) -> list[Change]:
    sign = -1 if said.group("verb").lower().startswith("short") else 1
    return [replace(_of(said), stretch=sign * lengths.minutes(said.group("length")))]


def lengthen(said: Clause) -> list[Change]:
    return [replace(_of(said), when=dates.When(minutes=lengths.minutes(said.group("length"))))]


def until(said: Clause) -> list[Change]:
    end = reading.read(f"until {said.group('new')}", said.now)[0].until
    shown = said.quotes.show(said.group("new"))
    doubt = None if end is not None else say("unclear end", said=shown)
    return [replace(_of(said), when=dates.When(until=end, length_doubt=doubt))]


def unsaid_length(said: Clause) -> list[Change]:
    return [replace(_of(said), doubt=say("how long?"), asks_length=True)]


def shift(said: Clause) -> list[Change]:
    if re.search(r"\b(?:to|in)\s*$", said.group("ref"), _I):
        return []
    change, amount, verb = _of(said), lengths.minutes(said.group("length")), said.group("verb").lower()
    way = " ".join(filter(None, (said.group(name) for name in ("early", "way", "late")))).lower()
    if way in ("earlier", "up", "ahead") or (verb == "bring" and way in ("forward", "up")):
        return [replace(change, shift=-amount)]
    if way in ("later", "back", "out") or (not way and verb in ("postpone", "push", "delay", "put off")):
        return [replace(change, shift=amount)]
    return [replace(change, doubt=say("which way", length=replies.length(amount)))]


def correct(said: Clause) -> list[Change]:
    """ "I meant 5pm", after the last event was made."""
    when, rest = reading.read(
        f"at {said.group('new')}" if said.group("new")[:1].isdigit() else said.group("new"), said.now
    )
    only_a_time = not when.empty and not phrases.name_of(rest)
    return [Change(Reference("it", it=True), when)] if only_a_time else []


def retime(said: Clause) -> list[Change]:
    """Where the event and its new time stand apart in the pattern."""
    new = _SAME_TIME.sub("", said.group("new"))
    when, _ = reading.read(f"at {new}" if new[:1].isdigit() else new, said.now)
    return [replace(_of(said), when=when)] if when.timed or when.dated else []


def move(said: Clause) -> list[Change]:
    """At the last "to" that a time follows. Without any, the question is what to move it to."""
    body, now, quotes = _START.sub("", _SAME_TIME.sub("", said.text)), said.now, said.quotes
    joints = [joint for joint in _TO.finditer(body) if joint.end() > joint.start()]
    for joint in reversed(joints[-_MOST_JOINTS:]):
        target = body[joint.end() :]
        when, rest = reading.read(f"at {target}" if target[:1].isdigit() else target, now)
        if when.timed or when.dated:
            _, place = phrases.take_place(rest)
            shown = quotes.show(place) if place else None
            return [Change(reference(_WAY.sub("", body[: joint.start()]), now, quotes), when, place=shown)]
    if joints:
        last = joints[-1]
        place = quotes.show(body[last.end() :]).strip(" .!?")
        if re.match(r"(?:the\s+)?(?:[A-ZÀ-Þ]|room\b)", place):
            return [Change(reference(body[: last.start()], now, quotes), place=place)]
        body = body[: last.start()]
    return [Change(reference(body, now, quotes), doubt=say("move to?"))]


def to_event(goal: Change, answer: str, now: datetime) -> Change:
    """With the answer to which event is meant."""
    quotes = Quotes()
    said = reference(quotes.hide(phrases.clean(answer)), now, quotes)
    when = goal.event.when.joined(said.when)
    return replace(goal, event=Reference(said.text, said.words or goal.event.words, when, said.it, said.doubt))


def to_time(goal: Change, answer: str, now: datetime) -> Change:
    """With the answer to what should change."""
    if (half := dates.in_half(goal.when, answer)) is not None:
        return replace(goal, when=half)
    when, _ = reading.read(re.sub(r"^\s*(?:to|at|by)\s+", "at ", Quotes().hide(phrases.clean(answer))), now)
    if when.empty:
        return goal
    asks_length = goal.asks_length and not when.minutes
    doubt = goal.doubt if asks_length else None
    return replace(goal, when=goal.when.joined(when), doubt=doubt, asks_length=asks_length, shift=None)


def corrected(goal: Change, known: Event, when: dates.When) -> Change:
    return replace(goal, known=known, when=when, shift=None, stretch=None)


def _of(said: Clause) -> Change:
    return Change(reference(said.group("ref"), said.now, said.quotes))
