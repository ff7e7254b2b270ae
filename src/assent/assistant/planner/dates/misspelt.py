"""Words that look like a day or a month and are none. A guess at them would be a guess at the date, so they are asked
about. Names are let be: a word counts as a month only beside a number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from assent.assistant.planner.dates.grammar import MONTHS, WEEKDAYS
from assent.assistant.planner.replies import say

_DAYS = (*WEEKDAYS, "today", "tonight", "tomorrow", "yesterday")
_ALIKE = 0.82
_NTH = r"[0-9]{1,2}(?:st|nd|rd|th)?\b"
_WORD = r"(?P<word>[A-Za-z]{5,})\b"
_I = re.IGNORECASE
_DAY = re.compile(rf"(?:\b(?:on|next|this|for|until|till|by)\s+)*\b{_WORD}", _I)
_MONTHS = (
    re.compile(rf"(?:\bon\s+)?\b(?:the\s+)?{_NTH}\s+(?:of\s+)?(?P<word>[A-Za-z]{{4,}})\b", _I),
    re.compile(rf"(?:\bon\s+)?\b(?P<word>[A-Za-z]{{4,}})\s+(?:the\s+)?{_NTH}", _I),
)
_DATES = (
    re.compile(rf"\bon\s+(?:the\s+)?{_NTH}\s+(?:of\s+)?[A-Za-z]{{3,}}\b", _I),
    re.compile(rf"\bon\s+(?:the\s+)?[A-Za-z]{{3,}}\s+{_NTH}", _I),
)


@dataclass(frozen=True, slots=True)
class Misspelt:
    """A misspelt phrase, and the question about it."""

    phrase: str
    question: str


def find(text: str) -> Misspelt | None:
    """The first thing in the rest of a text that was meant for a day."""
    for pattern, names in ((_DAY, _DAYS), *((month_pattern, MONTHS) for month_pattern in _MONTHS)):
        for match in pattern.finditer(text):
            if meant := _meant(match["word"], names):
                shown = meant.title() if meant in (*WEEKDAYS, *MONTHS) else meant
                key = "misspelt day" if names is _DAYS else "misspelt month"
                return Misspelt(match[0], say(key, said=match["word"], meant=shown))
    for pattern in _DATES:
        if date_match := pattern.search(text):
            phrase = date_match[0]
            return Misspelt(phrase, say("unread day", said=phrase))
    return None


def _meant(word: str, names: Sequence[str]) -> str | None:
    """The name that it is nearly; none where it is one, which is read or asked about already."""
    lowered = word.lower()
    if lowered in names:
        return None
    near = [(SequenceMatcher(None, lowered, name).ratio(), name) for name in names if abs(len(name) - len(word)) <= 2]
    alike, name = max(near, default=(0.0, ""))
    return name if alike >= _ALIKE else None
