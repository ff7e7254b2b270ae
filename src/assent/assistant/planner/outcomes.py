"""Changes that an answer or a result makes to a goal: it is done, it is known better, or it is proposed anew."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from assent.assistant.planner import answers, calendars, gaps
from assent.assistant.planner.dates import dates, phrases
from assent.assistant.planner.dates.chinese import number
from assent.assistant.planner.goals import (
    Calendars,
    Change,
    Create,
    Directions,
    Event,
    Goal,
    Listing,
    Places,
    Slots,
    Track,
    Unclear,
    opened,
)
from assent.assistant.planner.intents import changes, creates, lookups, requests
from assent.assistant.planner.intents.corrections import Correction, correction
from assent.assistant.planner.replies import say
from assent.assistant.planner.results import Kind, Result
from assent.assistant.planner.steps import choices, event_of, window_of
from assent.assistant.planner.tools import Role

PATIENCE = 5
"""So often a goal is asked about; then the planner gives up, and says so."""

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
_CHOICE = re.compile(
    rf"\W*(?:(?P<yes>yes|yeah|yep|that\s+one|好的?|是的?|对的?|行|可以|没错|就这个)|就?选?第(?P<nth>[一二三四五六七八1-8])个?|(?:the\s+)?(?:number\s+|no\.?\s*|#\s*)?(?:(?P<digit>[1-8])(?:st|nd|rd|th)?"
    rf"|(?P<word>{'|'.join(_ORDINALS)}))[.)]?(?:\s+one)?)(?:\W*please)?\W*",
    re.IGNORECASE,
)
_WRONG_PLACE = re.compile(r"(?:^|\s)(?P<field>near|origin|destination):\s+(?P<why>.+)", re.DOTALL)


def heard(track: Track, answer: str, now: datetime) -> list[Track]:
    """After an answer to the question that was due. An unclear request may become several goals."""
    goal = track.goal
    asked = track.asked + 1
    if requests.gives_up(answer):
        return [track.closed(say("left", goal=answers.label(goal)))]
    if asked >= PATIENCE or len(answer) > requests.LONGEST:
        return [track.closed(say("gave up", goal=answers.label(goal)))]
    if isinstance(goal, Unclear):
        if goal.guess and _number(answer) == 0:
            answer = goal.guess
        return [replace(opened(made), asked=asked) for made in requests.understand(answer, now)]
    return [replace(track, goal=_answered(track, answer, now), asked=asked)]


def learned(track: Track, role: Role, fields: Mapping[str, Any], result: Result, now: datetime, others: bool) -> Track:
    """After the result of a call. `others` is whether other calls of the same message were carried out."""
    if result.kind is Kind.DEFERRED:
        return track
    prepared = _prepared(track, role, result, now)
    if prepared:
        return prepared
    if result.kind is Kind.REJECTED or _objects(role, result, now):
        return _rejected(track, fields, replace(result, kind=Kind.REJECTED), now, others)
    return _which_place(track, result) or track.closed(answers.outcome(track.goal, fields, result, now))


def _which_place(track: Track, result: Result) -> Track | None:
    """Asks again for the place that the map found wrong, if it says which one that is."""
    goal, wrong = track.goal, _WRONG_PLACE.search(result.text)
    if result.kind is not Kind.FAILED or not isinstance(goal, (Places, Directions)) or wrong is None:
        return None
    doubt = say("which place", why=wrong["why"].strip(" .")[:300])
    if isinstance(goal, Places):
        return replace(track, goal=replace(goal, doubt=doubt)) if wrong["field"] == "near" else None
    kept = replace(goal, origin=None) if wrong["field"] == "origin" else replace(goal, destination=None)
    return replace(track, goal=replace(kept, doubt=doubt)) if wrong["field"] != "near" else None


def _prepared(track: Track, role: Role, result: Result, now: datetime) -> Track | None:
    """The track with the result of a preparing call; None if the call was not one."""
    if result.kind is not Kind.DONE or (isinstance(track.goal, (Listing, Calendars)) and role is not Role.CALENDARS):
        return None
    if role is Role.CALENDARS and not isinstance(track.goal, Calendars):
        return replace(track, calendars=calendars.calendars(result.data))
    if role is Role.EVENTS and isinstance(track.goal, (Change, Slots)):
        events = tuple(calendars.events(result.data, now.tzinfo))
        if isinstance(track.goal, Change):
            return replace(track, events=events, window=window_of(track.goal, now))
        if track.goal.wanted is not None:
            return replace(track, events=events, window=(track.goal.day, track.goal.days))
    return None


def _answered(track: Track, answer: str, now: datetime) -> Goal:
    goal = track.goal
    if isinstance(goal, (Create, Change, Listing)) and goal.calendar and not goal.calendar_id:
        return replace(goal, calendar=_calendar_said(track, answer))
    if isinstance(goal, Create):
        return creates.answered(goal, answer, now)
    if isinstance(goal, Change):
        return _change_answered(track, goal, answer, now)
    if isinstance(goal, Slots) and goal.wanted:
        when = gaps.chosen(goal, track.events, _number(answer), now)
        return replace(goal.wanted, when=when) if when else creates.answered(goal.wanted, answer, now)
    return _place_answered(goal, answer)


def _change_answered(track: Track, goal: Change, answer: str, now: datetime) -> Change:
    """An answer may ask for another change; of another event, it is a new one."""
    chosen = _chosen(track, goal, answer, now)
    if chosen:
        return replace(goal, known=chosen)
    event = event_of(track, goal, now)
    if event is None:
        return changes.to_event(goal, answer, now)
    said = next((made for made in requests.understand(answer, now) if isinstance(made, Change)), None)
    if said is None or said.event.it:
        return changes.to_time(goal, answer, now)
    same = said.event.words and calendars.matches(replace(said.event, when=dates.When()), [event], now)
    return replace(said, known=goal.known, event=goal.event, calendar_id=goal.calendar_id) if same else said


def _place_answered(goal: Goal, answer: str) -> Goal:
    if isinstance(goal, Directions):
        return lookups.directions(answer, goal)
    if isinstance(goal, Places) and goal.doubt:
        return replace(goal, near=lookups.place(answer), doubt=None)
    if isinstance(goal, Places):
        return replace(goal, query=(phrases.name_of(answer) or "").lower() or None)
    return goal


def _chosen(track: Track, goal: Change, answer: str, now: datetime) -> Event | None:
    """The event that is picked from those offered, by its number."""
    if event_of(track, goal, now) or goal.event.doubt or goal.event.it:
        return None
    offered, number = choices(track, goal, now), _number(answer)
    if number == 0:
        return offered[0] if len(offered) == 1 else None
    return offered[number - 1] if number and number <= len(offered) else None


def _number(answer: str) -> int | None:
    """Which of those offered; 0 is a yes."""
    choice = _CHOICE.fullmatch(answer)
    if not choice:
        return None
    if choice["yes"]:
        return 0
    if choice["nth"]:
        return number(choice["nth"])
    return int(choice["digit"]) if choice["digit"] else _ORDINALS.index(choice["word"].lower()) + 1


def _calendar_said(track: Track, answer: str) -> str:
    lowered = answer.casefold()
    return next((name for name in track.calendars or {} if name.casefold() in lowered), phrases.clean(answer)[:100])


def _objects(role: Role, result: Result, now: datetime) -> bool:
    """A person's words in place of a result: a write tells an event, and not that something should be different."""
    if (
        role not in (Role.CREATE, Role.UPDATE, Role.DELETE, Role.ROOM)
        or result.data is not None
        or result.kind is not Kind.DONE
    ):
        return False
    return correction(result.text, now).wanted


def _rejected(track: Track, fields: Mapping[str, Any], result: Result, now: datetime, others: bool) -> Track:
    """A new proposal if the person said what to do instead; a question if they only said that something is wrong."""
    if isinstance(track.goal, Change) and track.goal.delete:
        return track.closed(answers.outcome(track.goal, fields, result, now))
    wish = correction(result.text, now)
    before = _proposed(track, fields, now)
    if before is None or not wish.wanted or (others and not wish.says_what):
        return track.closed(answers.outcome(track.goal, fields, result, now))
    if not wish.says_what:
        return replace(track, goal=_reopened(before, result.text))
    after = _corrected(before, wish)
    if after == before:
        return track.closed(answers.outcome(track.goal, fields, result, now))
    return replace(track, goal=after, asked=0)


def _proposed(track: Track, fields: Mapping[str, Any], now: datetime) -> Create | Change | None:
    """The goal as it was proposed: from the arguments, so that it does not matter how long ago."""
    goal = track.goal
    event = calendars.event({**fields, "name": fields.get("name") or "Event"}, now.tzinfo)
    when = dates.moment_of(event.start) if event else dates.When()
    when = when.joined(dates.When(minutes=fields.get("duration_minutes")))
    if isinstance(goal, Create):
        return replace(goal, name=fields.get("name"), when=when, place=fields.get("location"))
    known = event_of(track, goal, now) if isinstance(goal, Change) else None
    return changes.corrected(goal, known, when) if isinstance(goal, Change) and known else None


def _corrected(goal: Create | Change, wish: Correction) -> Create | Change:
    when = goal.when.joined(wish.when)
    return replace(goal, when=when, name=wish.name or goal.name, place=wish.place or goal.place)


def _reopened(goal: Create | Change, feedback: str) -> Create | Change:
    question = say("instead?", said=feedback[:200])
    if isinstance(goal, Change):
        return replace(goal, doubt=question)
    return replace(goal, when=replace(goal.when, clock_doubt=question))
