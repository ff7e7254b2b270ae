"""Reads days, times and lengths out of a text by the rules of `dates`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

from assent.assistant.planner import replies
from assent.assistant.planner.dates import doubtful, grammar, lengths, misspelt
from assent.assistant.planner.dates.clocks import Clock, Dial, clock, half_of, span, worded
from assent.assistant.planner.dates.dates import FURTHEST, GAP, When
from assent.assistant.planner.replies import say

_JUST_PASSED = timedelta(days=92)
"""A date that passed within this time may be meant as it stands, and is asked about."""

Span = tuple[time | None, Dial | None, int | None]


def read(text: str, now: datetime, *, strictly: bool = True) -> tuple[When, str]:
    """The day, time and length that the text gives, and the text without them. Not `strictly`: where an event is looked
    up by words that may be its name, only words that stand for a day count."""
    reader = _Reader(text.replace(GAP, " "), now)
    when = reader.when()
    return (reader.doubted(when) if strictly else when), reader.text


def _fits(at: time, half: str) -> bool:
    first, last = {"am": (0, 11), "pm": (12, 23), "evening": (16, 23)}.get(half, (17, 23))
    return first <= at.hour <= last or (half == "night" and at.hour < 5)


class _Reader:
    """Takes one kind of phrase after another out of the text, the most specific first, and collects what they say."""

    def __init__(self, text: str, now: datetime) -> None:
        self.text, self.now, self.today = text, now, now.date()
        self.days: list[date] = []
        self.weekdays: list[date] = []
        self.clocks: list[Clock] = []
        self.spans: list[Span] = []
        self.half: str | None = None
        self.minutes: int | None = None
        self.until: time | None = None
        self.named_today: str | None = None
        self.bare = False
        self.day_doubt: str | None = None
        self.clock_doubt: str | None = None
        self.length_doubt: str | None = None
        for pattern, name in grammar.PATTERNS:
            self._take(pattern, getattr(self, name))

    def when(self) -> When:
        day, clock_time, dial = self._day(), *self._clock()
        if clock_time and self.half and not _fits(clock_time, self.half):
            self._doubt_clock(f"{clock_time:%H:%M}", "other half")
            clock_time = None
        self._suspect(day)
        doubts = (self.day_doubt, self.clock_doubt, self.length_doubt)
        bare = self.bare and day is not None and not self.days
        said = When(day, clock_time, dial, None, self.minutes, self.until, *doubts, bare=bare)
        return said.joined(When(half=self.half)) if self.half else said

    def _take(self, pattern: re.Pattern[str], handle: Callable[[re.Match[str]], bool | None]) -> None:
        """A handler that returns False leaves the phrase where it is."""
        self.text = pattern.sub(lambda match: match[0] if handle(match) is False else f" {GAP} ", self.text)

    def _day(self) -> date | None:
        if self.named_today and self.today.weekday() not in {day.weekday() for day in self.days}:
            self._doubt_day(self.named_today, "today or next")
        days = list(dict.fromkeys(self.days or self.weekdays))
        days += [day for day in self.weekdays if day not in days and day.weekday() not in {d.weekday() for d in days}]
        if len(days) > 1 and not self.day_doubt:
            names = say("or").join(replies.day(day, self.now) for day in days)
            self.day_doubt = say("which day of", days=names)
        if len(days) == 1 and abs(days[0] - self.today) > FURTHEST:
            self._doubt_day(f"{days[0]:%Y-%m-%d}", "years away")
        return days[0] if len(days) == 1 and not self.day_doubt else None

    def _clock(self) -> tuple[time | None, Dial | None]:
        readings = list(dict.fromkeys([*self.clocks, *((at, dial) for at, dial, _ in self.spans)]))
        if len(readings) > 1:
            self.clock_doubt = self.clock_doubt or say("two times")
        if len(readings) != 1 or self.clock_doubt:
            return None, None
        self.minutes = self.minutes or (self.spans[0][2] if self.spans else None)
        return readings[0]

    def _suspect(self, day: date | None) -> None:
        """Text that looks like a day and was not read must not be taken for "no day given"."""
        if day or self.day_doubt:
            return
        left = grammar.SUSPICIOUS.search(self.text)
        if left:
            self.day_doubt = say("unread day", said=left[0].strip())
        elif misspelling := misspelt.find(self.text):
            self.day_doubt = misspelling.question
            self.text = self.text.replace(misspelling.phrase, f" {GAP} ", 1)

    def doubted(self, when: When) -> When:
        """Nothing of it counts as read where a word is left that changes its meaning."""
        for doubt in doubtful.find(self.text):
            self.text = self.text.replace(doubt.phrase, f" {GAP} ", 1)
            when = replace(when, day=None, day_doubt=when.day_doubt or doubt.question)
            if doubt.clock:
                when = replace(when, clock=None, dial=None, clock_doubt=when.clock_doubt or say("what time"))
        return when

    def _doubt_day(self, phrase: str, why: str = "open day", **fields: str) -> None:
        self.day_doubt = self.day_doubt or say(why, said=phrase.strip(), **fields)

    def _doubt_clock(self, phrase: str, why: str = "open time", **fields: str) -> None:
        self.clock_doubt = self.clock_doubt or say(why, said=phrase.strip(), **fields)

    def _add_day(self, match: re.Match[str], year: int | None, month: int, day: int) -> None:
        """A date; without a year the next one, unless it has only just passed."""
        try:
            made = date(year or self.today.year, month, day)
            if year is None and made < self.today - _JUST_PASSED:
                made = date(self.today.year + 1, month, day)
        except ValueError:
            self._doubt_day(match[0], "no such day")
            return
        self._bounded(match, made)

    def _bounded(self, match: re.Match[str], day: date, days: list[date] | None = None) -> None:
        if match.groupdict().get("bound"):
            self._doubt_day(match[0])
        else:
            (self.days if days is None else days).append(day)

    def _later(self, amount: timedelta) -> datetime | None:
        try:
            return (self.now.astimezone(UTC) + amount).astimezone(self.now.tzinfo)
        except OverflowError:
            return None

    # One method per kind of phrase.

    def repeated(self, match: re.Match[str]) -> None:
        self._doubt_day(match[0], "repeats")

    def zoned(self, match: re.Match[str]) -> None:
        self._doubt_clock(match[0], "zone", zone=self.now.tzname() or "local time")

    def iso(self, match: re.Match[str]) -> None:
        try:
            moment = datetime.fromisoformat(match[0].strip().removeprefix("on ").replace(" ", "T").upper())
        except ValueError:
            self._doubt_day(match[0], "no such day")
            return
        try:
            moment = moment.astimezone(self.now.tzinfo) if moment.tzinfo else moment
        except OverflowError:
            self._doubt_day(match[0], "far day")
            return
        self.days.append(moment.date())
        if "T" in match[0].upper() or ":" in match[0]:
            self.clocks.append((moment.time().replace(second=0, microsecond=0), None))

    def from_now(self, match: re.Match[str]) -> None:
        amount = timedelta(minutes=lengths.minutes(match["length"]))
        moment = self._later(amount)
        if moment is None:
            self._doubt_day(match[0], "far day")
            return
        self.days.append(moment.date())
        if amount % timedelta(days=1) or not re.search("day|week|fortnight", match[0], re.IGNORECASE):
            self.clocks.append((moment.time().replace(second=0, microsecond=0), None))

    def counted_from(self, match: re.Match[str]) -> None:
        self._doubt_day(match[0], "uncounted")

    def whole_day(self, match: re.Match[str]) -> None:
        self.length_doubt = say("whole day")

    def length(self, match: re.Match[str]) -> bool | None:
        if grammar.HOUR_MARK.fullmatch(match[0].strip()):
            return False  # 15h and 15h30 alone are times of day
        count = lengths.minutes(match["length"])
        negative = re.search(r"\s[-–−]$", match.string[: match.start("length")])
        if negative or not 0 < count <= 14 * 1440 or (self.minutes and self.minutes != count):
            self.length_doubt = say("no length", said=match["length"].strip())
        else:
            self.minutes = count
        return None

    def to_from(self, match: re.Match[str]) -> bool | None:
        lead, joint = (match["lead"] or "").lower(), match["joint"].lower()
        if joint == "and" and lead != "between":
            return False
        if not lead and not re.search(r"[apn:h]", match["a"] + match["b"], re.IGNORECASE):
            return False
        result = span(match["a"], match["b"])
        if isinstance(result, str):
            self._doubt_clock(match[0], result)
        else:
            self.spans.append(result)
        return None

    def ends(self, match: re.Match[str]) -> bool | None:
        at, _ = clock(match["clock"]) or (None, None)
        if at is None:
            self.length_doubt = say("open end", said=match[0].strip())
        self.until = at
        return None

    def vague_day(self, match: re.Match[str]) -> None:
        self._doubt_day(match[0])

    def vague_clock(self, match: re.Match[str]) -> None:
        self._doubt_clock(match[0])

    def near(self, match: re.Match[str]) -> None:
        word = match["word"].lower()
        days = {"today": 0, "tonight": 0, "yesterday": -1}.get(word.split("'")[0].split("’")[0])
        if days is None:
            days = 2 if "after" in word else 1
        if word == "tonight":
            self.half = "night"
        self._bounded(match, self.today + timedelta(days=days))

    def weekday(self, match: re.Match[str]) -> None:
        index = next(i for i, name in enumerate(grammar.WEEKDAYS) if name.startswith(match["name"][:3].lower()))
        which = f"{match['which'] or ''} {match['week'] or match['first'] or ''}".lower()
        ahead = (index - self.today.weekday()) % 7
        this_week = self.today + timedelta(days=index - self.today.weekday())
        if "last" in which:
            self.weekdays.append(self.today - timedelta(days=(self.today.weekday() - index) % 7 or 7))
        elif "next" in which:
            self._bounded(match, this_week + timedelta(days=7), self.weekdays)
        elif not ahead:
            self.named_today = match["name"]  # with a date beside it, it is not in doubt
        elif "this" in which and "coming" not in which:
            self._bounded(match, this_week, self.weekdays)
        else:
            self.bare = not which.strip()
            self._bounded(match, self.today + timedelta(days=ahead), self.weekdays)

    def month_day(self, match: re.Match[str]) -> None:
        month = next(i for i, name in enumerate(grammar.MONTHS, 1) if name.startswith(match["month"][:3].lower()))
        self._add_day(match, int(match["year"]) if match["year"] else None, month, int(match["day"]))

    def nth(self, match: re.Match[str]) -> None:
        day = int(match["day"])
        year, month = self.today.year, self.today.month
        if day < self.today.day:
            year, month = (year + 1, 1) if month == 12 else (year, month + 1)
        self._add_day(match, year, month, day)

    def slashes(self, match: re.Match[str]) -> None:
        a, b = int(match["a"]), int(match["b"])
        year = int(match["year"]) + (2000 if len(match["year"]) == 2 else 0) if match["year"] else None
        if a <= 12 and b <= 12 and a != b:
            first, second = (f"{d} {grammar.MONTHS[m - 1].title()}" for d, m in ((a, b), (b, a)))
            self._doubt_day(match[0], "two dates", first=first, second=second)
        else:
            self._add_day(match, year, *((b, a) if a > 12 else (a, b)))

    def dots(self, match: re.Match[str]) -> None:
        self._add_day(match, int(match["year"]) if match["year"] else None, int(match["b"]), int(match["a"]))

    def part(self, match: re.Match[str]) -> None:
        if re.match(r"\s*this", match[0], re.IGNORECASE):
            self.days.append(self.today)
        self.half = half_of(match["part"])

    def bounded_clock(self, match: re.Match[str]) -> None:
        self._doubt_clock(match[0])

    def in_words(self, match: re.Match[str]) -> None:
        self._clock_or_doubt(match, worded(match[0]))

    def in_digits(self, match: re.Match[str]) -> None:
        self._clock_or_doubt(match, clock(match["clock"]))

    def midnight(self, match: re.Match[str]) -> None:
        self._doubt_clock(match[0], "midnight")

    def _clock_or_doubt(self, match: re.Match[str], read: Clock | None) -> None:
        if read is None:
            self._doubt_clock(match[0], "no such time")
        else:
            self.clocks.append(read)
