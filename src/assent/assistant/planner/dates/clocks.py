"""Times of day: on the 24-hour clock, on the 12-hour dial with or without its half of the day, and in words."""

from __future__ import annotations

import re
from datetime import time

from assent.assistant.planner.replies import say

Dial = tuple[int, int]
"""Hour (1 to 12) and minute, as a dial shows them: the half of the day is not known."""

Clock = tuple[time | None, Dial | None]
"""One of the two."""

HALF = r"(?:[ap]\.?\s?m\b\.?)"
CLOCK = rf"(?:\bnoon\b|\bmidday\b|\b[0-9]{{1,2}}(?:[:.h][0-9]{{2}})?(?![0-9])(?:\s*{HALF}|h\b|\s*o['’]?clock\b)?)"

_HOURS = ("twelve", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")
_MINUTES = {"half": 30, "a quarter": 15, "quarter": 15, "five": 5, "ten": 10, "twenty": 20, "twenty-five": 25}
_MINUTES |= {"twenty five": 25, "fifteen": 15, "thirty": 30, "forty-five": 45, "forty five": 45, "forty": 40}
_HOUR = rf"(?:(?:{'|'.join(_HOURS)})\b|[0-9]{{1,2}}(?![0-9:.]))"
_PAST = (
    r"\b(?P<m>half|a\s+quarter|quarter|five|ten|twenty[\s-]five|twenty|[0-9]{1,2})(?:\s+minutes)?"
    rf"\s+(?P<way>past|to|before|after)\s+(?P<h>{_HOUR})"
)
_NAMED = (
    rf"(?:\bat\s+|(?=\w+\s+o['’]?clock)|(?=\w+\s*{HALF}))\b(?P<word>{'|'.join(_HOURS)})\b(?!\s+(?:minutes\s+)?(?:past|to|before|after)\s+{_HOUR})"
    rf"(?:[\s-](?P<more>fifteen|thirty|forty[\s-]five|forty|twenty|ten)\b)?"
)
WORDED = rf"(?:{_PAST}|{_NAMED})(?:\s*o['’]?clock\b)?(?:\s*(?P<suffix>{HALF}))?"

_DIGITS = re.compile(
    rf"(?P<h>[0-9]{{1,2}})(?:(?P<sep>[:.h])(?P<m>[0-9]{{2}}))?\s*(?P<suffix>{HALF}|h|o['’]?clock)?", re.IGNORECASE
)
_WORDED = re.compile(WORDED, re.IGNORECASE)


def clock(text: str) -> Clock | None:
    """The time that `CLOCK` found, or None if there is no such time of day."""
    if text.strip().lower() in ("noon", "midday"):
        return time(12), None
    match = _DIGITS.fullmatch(text.strip())
    if not match:
        return None
    h, m, suffix = int(match["h"]), int(match["m"] or 0), (match["suffix"] or "").lower()
    if suffix[:1] in ("a", "p"):
        return _with_half(h, m, suffix)
    if h > 23 or m > 59:
        return None
    padded = len(match["h"]) == 2 and match["sep"] == ":"
    if h == 0 or h > 12 or padded or suffix == "h" or match["sep"] == "h":
        return time(h, m), None
    return None, (h, m)


def worded(text: str) -> Clock | None:
    """The time that `WORDED` found: half past nine, quarter to 5 pm, at nine thirty."""
    match = _WORDED.search(text)
    if not match:
        return None
    if match["word"]:
        h, m = _HOURS.index(match["word"].lower()) or 12, _minute(match["more"] or "0")
    else:
        h, m = _hour(match["h"]), _minute(match["m"])
        if match["way"].lower() in ("to", "before"):
            h, m = (h - 1, 60 - m) if m else (h, 0)
            h = h or (23 if match["h"] == "0" else 12)
    if match["suffix"]:
        # "quarter to 12 pm" is a quarter of an hour before noon
        return (
            _with_half(h, m, match["suffix"])
            if h != 11 or _hour(match["h"] or "0") != 12
            else _eleven(m, match["suffix"])
        )
    if h > 23 or m > 59:
        return None
    return (time(h, m), None) if h == 0 or h > 12 else (None, (h, m))


def half_of(part: str) -> str:
    return {"morning": "am", "afternoon": "pm", "evening": "evening", "night": "night"}.get(part.lower(), part.lower())


def on_dial(dial: Dial, half: str) -> tuple[time | None, str | None]:
    """The time, or the question, for a time of the dial in a part of the day."""
    h, m = dial
    odd = (h == 12 and half != "pm") or (half == "night" and h < 5) or (half == "evening" and h < 4)
    if odd:
        return None, say("half?", clock=f"{h}:{m:02}")
    return time(h % 12 + (0 if half == "am" else 12), m), None


def in_half_of(dial: Dial, *, later: bool) -> time:
    """The time of the dial before noon, or from noon on (`later`)."""
    return time(dial[0] % 12 + (12 if later else 0), dial[1])


def span(first: str, last: str) -> tuple[time | None, Dial | None, int | None] | str:
    """From a time to a time: the start, and the minutes between; or the key of what is wrong with it."""
    start, end = clock(first), clock(last)
    if start is None or end is None:
        return "no such time"
    if start[1] and end[1]:
        return None, start[1], (_dialled(end[1]) - _dialled(start[1])) % 720 or 720
    begin, finish = _resolve(start, end)
    length = finish - begin
    if length <= 0 and begin >= 18 * 60 and finish <= 6 * 60:
        length += 1440
    return "ends first" if length <= 0 else (time(begin // 60, begin % 60), None, length)


def _resolve(start: Clock, end: Clock) -> tuple[int, int]:
    """Minutes of the day of both, where at least one half of the day is known."""
    if start[1] and end[0] is not None:
        finish, early = _of_day(end[0]), _dialled(start[1])
        return (early + 720 if early + 720 < finish else early), finish
    begin = _of_day(start[0] or time(0))
    if end[0] is not None:
        return begin, _of_day(end[0])
    early = _dialled(end[1] or (12, 0))
    return begin, (early if early > begin else early + 720)


def _dialled(dial: Dial) -> int:
    return dial[0] % 12 * 60 + dial[1]


def _of_day(at: time) -> int:
    return at.hour * 60 + at.minute


def _with_half(h: int, m: int, suffix: str) -> Clock | None:
    if not 1 <= h <= 12 or m > 59:
        return None
    return time(h % 12 + (12 if suffix[0].lower() == "p" else 0), m), None


def _eleven(m: int, suffix: str) -> Clock | None:
    return _with_half(11, m, "a" if suffix[0].lower() == "p" else "p")


def _hour(text: str) -> int:
    return int(text) if text.isdigit() else _HOURS.index(text.lower()) or 12


def _minute(text: str) -> int:
    word = re.sub(r"\s+", " ", text.lower())
    return _MINUTES[word] if word in _MINUTES else int(word)
