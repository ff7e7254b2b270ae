"""Goals of a person as the planner understood them, their way through a conversation, and what can be due for them: a
question or a call. Plain values, made anew from the conversation each time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

from assent.assistant.planner.dates.dates import When
from assent.assistant.planner.tools import Role


@dataclass(frozen=True, slots=True)
class Event:
    """An event that exists, as a calendar tool told it."""

    event_id: str
    name: str
    start: datetime
    end: datetime | None = None
    location: str | None = None
    people: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Create:
    """A new event; or, with `room`, a room for `seats` people: its tool asks for the rest with a form of its own."""

    name: str | None = None
    when: When = field(default_factory=When)
    place: str | None = None
    notes: str | None = None
    people: tuple[str, ...] = ()
    equipment: str | None = None
    calendar: str | None = None
    calendar_id: str | None = None
    room: bool = False
    seats: int | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """Words by which a person means an event that exists. `it` is the last one that was spoken of; `doubt` is a
    question about the day or time that was said of it."""

    text: str
    words: tuple[str, ...] = ()
    when: When = field(default_factory=When)
    it: bool = False
    doubt: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """`shift` moves by minutes, `stretch` lengthens by minutes, `people` are invited, `delete` removes the event;
    `doubt` is a question about what is to change, and `asks_length` whether that is its length."""

    event: Reference
    when: When = field(default_factory=When)
    shift: int | None = None
    stretch: int | None = None
    name: str | None = None
    place: str | None = None
    people: tuple[str, ...] = ()
    delete: bool = False
    doubt: str | None = None
    asks_length: bool = False
    known: Event | None = None
    calendar: str | None = None
    calendar_id: str | None = None

    @property
    def says_what(self) -> bool:
        """Whether it is known what is to change, doubtful or not."""
        said = self.shift or self.stretch or self.name or self.place or self.people or self.delete
        return bool(said or not self.when.empty)


@dataclass(frozen=True, slots=True)
class Listing:
    """`words` asks for certain events only, `free` whether a time is free."""

    day: date
    days: int
    words: tuple[str, ...] = ()
    free: When | None = None
    calendar: str | None = None
    calendar_id: str | None = None


@dataclass(frozen=True, slots=True)
class Slots:
    """Times that are free. With `wanted`, one of them is chosen for that event."""

    day: date
    days: int
    half: str | None = None
    minutes: int | None = None
    wanted: Create | None = None


@dataclass(frozen=True, slots=True)
class Calendars:
    """Which calendars there are."""


@dataclass(frozen=True, slots=True)
class Places:
    """`doubt` is what the map says about a place that it does not know, or knows twice."""

    query: str | None
    near: str | None = None
    doubt: str | None = None


@dataclass(frozen=True, slots=True)
class Directions:
    origin: str | None = None
    destination: str | None = None
    mode: str | None = None
    doubt: str | None = None


@dataclass(frozen=True, slots=True)
class Unclear:
    """Not understood: the question to ask. `guess` is what was probably meant, for a yes."""

    question: str
    guess: str | None = None


@dataclass(frozen=True, slots=True)
class Remark:
    """Nothing to do; the answer says why."""

    answer: str


Goal = Create | Change | Listing | Slots | Calendars | Places | Directions | Unclear | Remark


@dataclass(frozen=True, slots=True)
class Ask:
    question: str


@dataclass(frozen=True, slots=True)
class Use:
    """A call, in our own words for fields. One that only prepares another goes alone, before everything else."""

    role: Role
    fields: Mapping[str, Any]
    prepares: bool = False


@dataclass(frozen=True, slots=True)
class Track:
    """`sentence` is what to say about it in the end: while it is None, the goal is open."""

    goal: Goal
    asked: int = 0
    calendars: Mapping[str, str] | None = None
    window: tuple[date, int] | None = None
    events: tuple[Event, ...] = ()
    sentence: str | None = None

    def closed(self, sentence: str) -> Track:
        return replace(self, sentence=sentence)


def opened(goal: Goal) -> Track:
    return Track(goal, sentence=goal.answer if isinstance(goal, Remark) else None)


def with_calendar(track: Track) -> Track:
    """With the id of the calendar that was named, once it is known."""
    goal = track.goal
    if not isinstance(goal, (Create, Change, Listing)) or not goal.calendar or goal.calendar_id:
        return track
    known = {name.casefold(): key for name, key in (track.calendars or {}).items()}
    key = known.get(goal.calendar.casefold())
    return replace(track, goal=replace(goal, calendar_id=key)) if key else track
