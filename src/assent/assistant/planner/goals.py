"""Goals of a person, as the planner understood them. Plain values, made anew from the conversation each time."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime

from assent.assistant.planner.dates.dates import When


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
    name: str | None = None
    when: When = field(default_factory=When)
    place: str | None = None
    notes: str | None = None
    people: tuple[str, ...] = ()
    equipment: str | None = None
    calendar: str | None = None
    calendar_id: str | None = None


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
class Booking:
    """A room. The tool asks for the rest with a form of its own."""

    when: When = field(default_factory=When)
    name: str | None = None
    people: int | None = None
    equipment: str | None = None


@dataclass(frozen=True, slots=True)
class Unclear:
    """Not understood: the question to ask. `guess` is what was probably meant, for a yes."""

    question: str
    guess: str | None = None


@dataclass(frozen=True, slots=True)
class Remark:
    """Nothing to do; the answer says why."""

    answer: str


Goal = Create | Change | Listing | Slots | Calendars | Places | Directions | Booking | Unclear | Remark
