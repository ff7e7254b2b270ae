"""Days, times and lengths in everyday English, and what is doubtful about them. Nothing is guessed.

The rules, so that a reading can be predicted:

- A time without a day is the next time the clock shows it: today, or tomorrow if that has passed.
- An hour from 1 to 12 without am, pm or a part of the day is asked about; so are 9:30 and half past nine. Two digits on
  each side of a colon are the 24-hour clock (09:30, 12:15), and so are 15, 15h and 0:30. Noon is 12:00; midnight is
  asked about, because it has two sides.
- Weeks begin on Monday. "Friday" is the first Friday after today, "this Friday" the one of this week, "next Friday" the
  one of next week. On a Friday, "Friday" and "this Friday" are asked about.
- "the 3rd" is in this month, or in the next if it has passed. "Dec 4" is in this year, or in the next; one that passed
  within the last three months is asked about.
- 4.12. is the 4th of December. 4/12 is asked about, 25/12 is not.
- "from 3 to 4:30pm": the half of the day at the end counts for the start too, unless the start would then be later.
- Times are those of the planner's clock; another time zone is asked about. Of an hour that comes twice in autumn, the
  first is meant.
- What has passed, what does not exist and what is more than five years away is asked about. So is a day that is
  misspelt or not known ("Wensday", "on Christmas Eve"), and what may be one where no day is given ("a talk on AI").
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta

from assent.assistant.planner import replies
from assent.assistant.planner.dates.clocks import Dial, in_half_of, on_dial
from assent.assistant.planner.dates.zone import exists
from assent.assistant.planner.replies import say

GAP = "\x1f"
"""Stands in the remaining text where a day, a time or a length was taken out."""

FURTHEST = timedelta(days=5 * 366)

_HALF_ONLY = re.compile(
    r"\W*(?:in\s+the\s+|the\s+)?(?:(?P<later>p\.?\s?m|afternoon)|a\.?\s?m|morning)\b(?:\W*please)?\W*", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class When:
    """The day, time and length that a text gives. `dial` is a time whose half of the day is not known; a doubt is a
    question; `bare` is a day that was given by its weekday alone."""

    day: date | None = None
    clock: time | None = None
    dial: Dial | None = None
    half: str | None = None
    minutes: int | None = None
    until: time | None = None
    day_doubt: str | None = None
    clock_doubt: str | None = None
    length_doubt: str | None = None
    bare: bool = False

    @property
    def timed(self) -> bool:
        return bool(self.clock or self.dial or self.clock_doubt) or self.clock == time(0)

    @property
    def dated(self) -> bool:
        return bool(self.day or self.day_doubt)

    @property
    def empty(self) -> bool:
        return self == When()

    def joined(self, later: When) -> When:
        """Merged with a later text, which wins where both give the same field."""
        day = later if later.dated else self
        said = later if later.timed else self
        length = later if later.minutes or later.until or later.length_doubt else self
        half = later.half or self.half
        clock, dial, doubt = said.clock, said.dial, said.clock_doubt
        if dial and half and not doubt:
            clock, doubt = on_dial(dial, half)
            dial = None if clock else dial
        elif doubt and said is self and self.dial and later.half:
            clock, doubt = on_dial(self.dial, later.half)
        doubts = (day.day_doubt, doubt, length.length_doubt)
        return When(day.day, clock, dial, half, length.minutes, length.until, *doubts, bare=day.bare)


def in_half(when: When, answer: str) -> When | None:
    """With the half of the day that was asked for; None where the answer says something else, or more."""
    match = _HALF_ONLY.fullmatch(answer)
    if not match or not when.dial:
        return None
    return replace(when, clock=in_half_of(when.dial, later=bool(match["later"])), dial=None, clock_doubt=None)


def moment_of(start: datetime) -> When:
    return When(day=start.date(), clock=start.time().replace(second=0, microsecond=0))


def start_of(when: When, now: datetime) -> tuple[datetime | None, str | None]:
    """The moment that is meant, or the question that has to be answered first."""
    question = when.day_doubt or when.clock_doubt or _dial_question(when) or _missing(when, now)
    if question or when.clock is None:
        return None, question
    day = when.day or _next_day(when.clock, now)
    moment = datetime.combine(day, when.clock, now.tzinfo)
    if not exists(moment):
        return None, say("skipped", clock=f"{when.clock:%H:%M}", day=replies.day(day, now))
    if moment <= now:
        said = replies.day(day, now)
        return None, say("passed", day=f"{said[0].upper()}{said[1:]}", clock=hour(when.clock))
    if moment - now > FURTHEST:
        return None, say("too far", day=f"{day:%Y-%m-%d}")
    return moment, None


def minutes_of(when: When, start: datetime) -> tuple[int | None, str | None]:
    """How long it takes: None where nothing was said; or the question."""
    if when.length_doubt or when.until is None:
        return when.minutes, when.length_doubt
    end = datetime.combine(start.date(), when.until, start.tzinfo)
    if end <= start:
        return None, say("ends early", end=hour(when.until), start=hour(start.time()))
    return (end - start) // timedelta(minutes=1), None


def shared_day(clocks: list[time], now: datetime) -> date:
    """One day for several times without one: today while all are still to come, else tomorrow."""
    return max(_next_day(each, now) for each in clocks)


def hour(clock: time | datetime) -> str:
    return f"{clock.hour}:{clock.minute:02}"


def plain(when: When) -> When:
    """Without its doubts: for looking something up, where they do no harm."""
    return replace(when, day_doubt=None, clock_doubt=None, length_doubt=None)


def _next_day(clock: time, now: datetime) -> date:
    return now.date() + timedelta(days=clock <= now.time().replace(tzinfo=None))


def _dial_question(when: When) -> str | None:
    if not when.dial:
        return None
    h, m = when.dial
    return say("half?", clock=f"{h}:{m:02}")


def _missing(when: When, now: datetime) -> str | None:
    if when.clock is not None:
        return None
    if when.day is None:
        return say("when?")
    return say("clock?", day=replies.day(when.day, now))
