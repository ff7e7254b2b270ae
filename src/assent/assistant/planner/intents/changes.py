"""Requests to change an event that exists: move, rename, lengthen, another place."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, time

from assent.assistant.planner import calendars
from assent.assistant.planner.dates import dates, lengths, phrases, reading
from assent.assistant.planner.dates.phrases import Quotes
from assent.assistant.planner.goals import Change, Event, Reference

_MOVE = r"(?:move|reschedule|shift|postpone|push|delay|bring|change|put\s+off|set(?=\s+(?:the|my)\b.*\bto\b))"
VERB = rf"(?:{_MOVE}|rename|retitle|extend|lengthen|prolong|shorten|make(?=.*\b(?:longer|shorter|long)\b))"
_LENGTH = rf"(?P<length>{lengths.LENGTH})"


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(rf"^\s*{text}\s*[.!?]*\s*$", re.IGNORECASE)


_RENAME = (
    _pattern(r"(?:rename|retitle)\s+(?P<ref>.+?)\s+(?:to|as|into)\s+(?P<new>.+?)"),
    _pattern(r"change\s+the\s+(?:name|title)\s+of\s+(?P<ref>.+?)\s+to\s+(?P<new>.+?)"),
)
_PLACE = (
    _pattern(r"(?:change|move|set)\s+the\s+(?:location|place|room|venue)\s+of\s+(?P<ref>.+?)\s+to\s+(?P<new>.+?)"),
)
_STRETCH = (
    _pattern(rf"(?P<verb>extend|lengthen|prolong|shorten)\s+(?P<ref>.+?)\s+by\s+{_LENGTH}"),
    _pattern(rf"make\s+(?P<ref>.+?)\s+{_LENGTH}\s+(?P<verb>longer|shorter)"),
)
_LONG = (
    _pattern(rf"(?:extend|lengthen|prolong|shorten)\s+(?P<ref>.+?)\s+to\s+{_LENGTH}"),
    _pattern(rf"make\s+(?P<ref>.+?)\s+(?:last\s+)?{_LENGTH}(?:\s+long)?"),
)
_UNTIL = (_pattern(r"(?:extend|lengthen|prolong|shorten)\s+(?P<ref>.+?)\s+(?:to|until|till)\s+(?P<new>.+?)"),)
_BARE = (
    _pattern(r"(?P<verb>extend|lengthen|prolong|shorten)\s+(?P<ref>.+?)"),
    _pattern(r"make\s+(?P<ref>.+?)\s+(?P<verb>longer|shorter)"),
)
_SHIFT = (
    _pattern(
        rf"(?P<verb>{_MOVE})\s+(?:(?P<early>back|forward|up|out)\s+)?(?P<ref>.+?)\s+(?:(?P<way>back|forward|up|out"
        rf"|earlier|later)\s+)?"
        rf"(?:by\s+)?{_LENGTH}(?:\s+(?P<late>earlier|later|back|forward|ahead))?"
    ),
)
_TO = re.compile(r"\s+(?:to|until|till|for)\s+|\s+(?=(?:to|until)\s)", re.IGNORECASE)
_START = re.compile(rf"^\s*{_MOVE}\s+(?:the\s+(?:date|time|start)\s+of\s+)?", re.IGNORECASE)
_MOST_JOINTS = 12
_IT = {
    "it",
    "that",
    "this",
    "that one",
    "this one",
    "that event",
    "this event",
    "the event",
    "that meeting",
    "this meeting",
}
_GENERIC = {
    "a", "an", "the", "my", "our", "meeting", "event", "appointment", "entry", "one", "of", "on", "at", "in", "for",
    "with", "from", "and", "to", "is", "me", "please", "next", "upcoming", "calendar", "i", "s",
}  # fmt: skip


def change(clause: str, now: datetime, quotes: Quotes) -> Change:
    """The change that the clause asks for, and the event that it is about."""
    clause, calendar = phrases.take_calendar(clause)
    made = (
        _rename(clause, now, quotes)
        or _length(clause, now, quotes)
        or _shift(clause, now, quotes)
        or _move(clause, now, quotes)
    )
    return replace(made, calendar=quotes.show(calendar) if calendar else None)


def reference(text: str, now: datetime, quotes: Quotes) -> Reference:
    bare = text.strip(" .,!?")
    when, rest = reading.read(bare, now, strictly=False)
    words = quotes.show(rest.replace(dates.GAP, " ")).lower()
    it = bare.lower() in _IT
    event_words = () if it else tuple(word for word in calendars.words(words) if word not in _GENERIC)
    doubt = when.day_doubt or when.clock_doubt
    return Reference(quotes.show(bare), event_words, dates.plain(when), it=it, doubt=doubt)


def answered(goal: Change, answer: str, now: datetime, asked_which: bool) -> Change:
    """With the answer: to which event is meant, or to what should change."""
    quotes = Quotes()
    hidden = quotes.hide(phrases.clean(answer))
    if asked_which:
        said = reference(hidden, now, quotes)
        when = goal.event.when.joined(said.when)
        merged = Reference(said.text, said.words or goal.event.words, when, said.it, said.doubt)
        return replace(goal, event=merged)
    if (half := dates.in_half(goal.when, answer)) is not None:
        return replace(goal, when=half)
    if re.match(rf"\s*{VERB}\b", hidden, re.IGNORECASE):
        return replace(change(hidden, now, quotes), known=goal.known, event=goal.event, calendar_id=goal.calendar_id)
    when, _ = reading.read(re.sub(r"^\s*(?:to|at|by)\s+", "at ", hidden), now)
    wants_length = goal.doubt is not None and "How long" in goal.doubt
    if when.empty:
        return goal
    doubt = goal.doubt if wants_length and not when.minutes else None
    return replace(goal, when=goal.when.joined(when), doubt=doubt, shift=None)


def corrected(goal: Change, known: Event, when: dates.When) -> Change:
    return replace(goal, known=known, when=when, shift=None, stretch=None)


def _match(patterns: tuple[re.Pattern[str], ...], clause: str) -> re.Match[str] | None:
    return next((match for match in (pattern.match(clause) for pattern in patterns) if match), None)


def _rename(clause: str, now: datetime, quotes: Quotes) -> Change | None:
    named, placed = _match(_RENAME, clause), _match(_PLACE, clause)
    match = named or placed
    if not match:
        return None
    ref, new = reference(match["ref"], now, quotes), quotes.show(match["new"])
    return Change(ref, name=new) if named else Change(ref, place=new)


def _length(clause: str, now: datetime, quotes: Quotes) -> Change | None:
    match = _match(_STRETCH, clause)
    if match:
        sign = -1 if match["verb"].lower().startswith("short") else 1
        return Change(reference(match["ref"], now, quotes), stretch=sign * lengths.minutes(match["length"]))
    match = _match(_LONG, clause)
    if match:
        when = dates.When(minutes=lengths.minutes(match["length"]))
        return Change(reference(match["ref"], now, quotes), when)
    match = _match(_UNTIL, clause)
    if match:
        said, _ = reading.read(f"until {match['new']}", now)
        return Change(
            reference(match["ref"], now, quotes),
            dates.When(until=said.until, length_doubt=_end_doubt(said.until, quotes.show(match["new"]))),
        )
    match = _match(_BARE, clause)
    return Change(reference(match["ref"], now, quotes), doubt="How long should it be?") if match else None


def _end_doubt(until: time | None, text: str) -> str | None:
    return None if until is not None else f"“{text}” is not clear to me as its end. How long should it be?"


def _shift(clause: str, now: datetime, quotes: Quotes) -> Change | None:
    match = _match(_SHIFT, clause)
    if not match or re.search(r"\b(?:to|in)\s*$", match["ref"], re.IGNORECASE):
        return None
    ref, amount = reference(match["ref"], now, quotes), lengths.minutes(match["length"])
    way = " ".join(filter(None, (match["early"], match["way"], match["late"]))).lower()
    verb = match["verb"].lower()
    if way in ("earlier", "up", "ahead") or (verb == "bring" and way in ("forward", "up")):
        return Change(ref, shift=-amount)
    if way in ("later", "back", "out") or (not way and verb in ("postpone", "push", "delay", "put off")):
        return Change(ref, shift=amount)
    return Change(ref, doubt=f"Should it be {lengths.spoken(amount)} earlier or later? Please give the new time.")


def _move(clause: str, now: datetime, quotes: Quotes) -> Change:
    """At the last "to" that a time follows. Without any, the question is what to move it to."""
    body = _START.sub("", clause)
    joints = [joint for joint in _TO.finditer(body) if joint.end() > joint.start()]
    for joint in reversed(joints[-_MOST_JOINTS:]):
        when, rest = reading.read(
            f"at {body[joint.end() :]}" if body[joint.end() :][:1].isdigit() else body[joint.end() :], now
        )
        if when.timed or when.dated:
            _, place = phrases.take_place(rest)
            shown = quotes.show(place) if place else None
            return Change(reference(body[: joint.start()], now, quotes), when, place=shown)
    if joints:
        last = joints[-1]
        place = quotes.show(body[last.end() :]).strip(" .!?")
        if re.match(r"(?:the\s+)?(?:[A-ZÀ-Þ]|room\b)", place):
            return Change(reference(body[: last.start()], now, quotes), place=place)
        body = body[: last.start()]
    return Change(reference(body, now, quotes), doubt="To which day and time should it move?")
