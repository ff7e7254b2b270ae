"""Makes the changes of an event that exists: move, rename, lengthen, invite, delete, another place."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime

from assent.assistant.planner import replies
from assent.assistant.planner.dates import dates, lengths, phrases, reading
from assent.assistant.planner.dates.phrases import Quotes
from assent.assistant.planner.goals import Change, Event, Reference
from assent.assistant.planner.intents import chinese
from assent.assistant.planner.intents.slots import Clause, prepared, reference, time_of
from assent.assistant.planner.intents.words import verb
from assent.assistant.planner.replies import say

_I = re.IGNORECASE
_TO = re.compile(r"\s+(?:to|until|till|for)\s+|\s+(?=(?:to|until)\s)", _I)
_START = re.compile(rf"^\s*{verb('move')}\s+(?:the\s+(?:date|time|start)\s+of\s+)?", _I)
_WAY = re.compile(r"\s+(?:back|forward|off)\s*$", _I)
_MOST_JOINTS = 12
_SAME_TIME = re.compile(r",?\s*\b(?:at\s+the\s+)?same\s+time\b", _I)
_SHORTER = ("shorten", "shorter", "缩短", "减少")
_EARLIER, _LATER = ("earlier", "up", "ahead"), ("later", "back", "out")


def rename(said: Clause) -> list[Change]:
    return [replace(_of(said), name=_new(said))]


def relocate(said: Clause) -> list[Change]:
    return [replace(_of(said), place=_new(said))]


def invite(said: Clause) -> list[Change]:
    who = said.group("who")
    if chinese.HAN.match(who):
        listed = () if chinese.tells(said.shown) else chinese.people(who)
    else:
        listed = phrases.people(who, said.quotes)
    return [replace(_of(said), people=listed)] if listed else []


def delete(said: Clause) -> list[Change]:
    """ "the dentist and the haircut" are two events; what has no article may be one name."""
    whole = said.group("ref") or f"{said.group('when')} {said.group('what')}".strip() or "it"
    part_of_it = re.search(r"\b(?:from|off)\s+(?:the|my|our)\b", whole, _I)
    if part_of_it or ("不" in said.text and chinese.asks(said.shown)):
        return []
    refs = re.split(r"\s*(?:,|\band\b)\s+(?=(?:the|my)\b)", whole, flags=_I)
    return [Change(reference(ref, said.now, said.quotes), delete=True) for ref in refs]


def stretch(said: Clause) -> list[Change]:
    sign = -1 if said.group("verb").lower() in _SHORTER else 1
    return [replace(_of(said), stretch=sign * lengths.minutes(said.group("length")))]


def lengthen(said: Clause) -> list[Change]:
    return [replace(_of(said), when=dates.When(minutes=lengths.minutes(said.group("length"))))]


def until(said: Clause) -> list[Change]:
    end = reading.read(f"until {said.group('new')}", said.now)[0].until
    doubt = None if end is not None else say("unclear end", said=_new(said))
    return [replace(_of(said), when=dates.When(until=end, length_doubt=doubt))]


def unsaid_length(said: Clause) -> list[Change]:
    return [replace(_of(said), doubt=say("how long?"), asks_length=True)]


def shift(said: Clause) -> list[Change]:
    if re.search(r"\b(?:to|in)\s*$", said.group("ref"), _I):
        return []
    change, amount, verb = _of(said), lengths.minutes(said.group("length")), said.group("verb").lower()
    way = " ".join(filter(None, (said.group(name) for name in ("early", "way", "late")))).lower()
    if way in _EARLIER or said.group("sooner") or (verb == "bring" and way == "forward"):
        return [replace(change, shift=-amount)]
    if way in _LATER or said.group("later") or (not way and verb in ("postpone", "push", "delay", "put off")):
        return [replace(change, shift=amount)]
    return [replace(change, doubt=say("which way", length=replies.length(amount)))]


def correct(said: Clause) -> list[Change]:
    """ "I meant 5pm", after the last event was made."""
    when, rest = time_of(said.group("new"), said.now)
    only_a_time = not when.empty and not phrases.name_of(rest) and not chinese.name(rest).strip("了")
    return [Change(Reference("it", it=True), when)] if only_a_time else []


def retime(said: Clause) -> list[Change]:
    """Where the event and its new time stand apart in the pattern."""
    when, rest = time_of(_SAME_TIME.sub("", said.group("new")), said.now)
    return [replace(_of(said), when=when)] if (when.timed or when.dated) and not phrases.name_of(rest) else []


def retime_or_ask(said: Clause) -> list[Change]:
    when, rest = time_of(said.group("new"), said.now)
    if when.empty or chinese.name(rest).strip("了吧"):
        return [replace(_of(said), doubt=say("move to?"))]
    return [replace(_of(said), when=when)]


def move(said: Clause) -> list[Change]:
    """At the last "to" that a time follows, and nothing else. Without any, the question is what to move it to."""
    body, now, quotes = _START.sub("", _SAME_TIME.sub("", said.text)), said.now, said.quotes
    joints = [joint for joint in _TO.finditer(body) if joint.end() > joint.start()]
    for joint in reversed(joints[-_MOST_JOINTS:]):
        when, rest = time_of(body[joint.end() :], now)
        if when.timed or when.dated:
            left, place = phrases.take_place(rest)
            if phrases.name_of(left):
                return []
            shown = quotes.show(place) if place else None
            return [Change(reference(_WAY.sub("", body[: joint.start()]), now, quotes), when, place=shown)]
    if joints:
        last = joints[-1]
        place = quotes.show(body[last.end() :]).strip(" .!?")
        if re.search(rf"\b{phrases.ROOMS}\b|[0-9]", place, _I):
            return [Change(reference(body[: last.start()], now, quotes), place=place)]
        body = body[: last.start()]
    return [Change(reference(body, now, quotes), doubt=say("move to?"))]


def to_event(goal: Change, answer: str, now: datetime) -> Change:
    """With the answer to which event is meant."""
    quotes = Quotes()
    said = reference(prepared(answer, now, quotes), now, quotes)
    when = goal.event.when.joined(said.when)
    return replace(goal, event=Reference(said.text, said.words or goal.event.words, when, said.it, said.doubt))


def to_time(goal: Change, answer: str, now: datetime) -> Change:
    """With the answer to what should change."""
    answer = prepared(answer, now, Quotes())
    if (half := dates.in_half(goal.when, answer)) is not None:
        return replace(goal, when=half)
    when, _ = time_of(answer, now)
    if when.empty:
        return goal
    asks_length = goal.asks_length and not when.minutes
    doubt = goal.doubt if asks_length else None
    return replace(goal, when=goal.when.joined(when), doubt=doubt, asks_length=asks_length, shift=None)


def corrected(goal: Change, known: Event, when: dates.When) -> Change:
    return replace(goal, known=known, when=when, shift=None, stretch=None)


def _of(said: Clause) -> Change:
    return Change(reference(said.group("ref"), said.now, said.quotes))


def _new(said: Clause) -> str:
    return said.quotes.show(said.group("new")).strip("“”的 ")
