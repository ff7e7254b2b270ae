"""Words that change what a day or a time means, and that the grammar does not read: a week on Friday, not at 3pm.

They are looked for in what is left of a text, whatever else was understood. Taken for a part of the name they would
leave a date that nobody meant, so each of them is asked about. Quoted text and explicit names are kept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from assent.assistant.planner.dates.dates import GAP
from assent.assistant.planner.replies import say

_I = re.IGNORECASE
_REST = rf"[^{GAP},;.!?]*"
_SURE_MONTHS = "january|february|july|september|october|november|december"
_MONTHS = f"{_SURE_MONTHS}|march|april|may|june|august"
_SEASONS = "spring|summer|autumn|fall|winter"
_ORDINAL = (
    r"(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|last|penultimate|[0-9]{1,2}(?:st|nd|rd|th))"
)
_PERIOD = rf"(?:weeks?|fortnights?|weekends?|months?|quarters?|years?|{_MONTHS}|{_SEASONS})"
_EDGE = r"(?:early|late|mid|middle|beginning|start|end|close)"

_DAYS = re.compile(
    "|".join(
        (
            rf"\b(?:in\s+|on\s+|at\s+)?(?:the\s+)?{_EDGE}\b[\s-]*(?:(?:of|in|on)\s+)?(?:the\s+|this\s+|next\s+)?(?:{_PERIOD}\b|{GAP})",
            rf"{GAP}\s*,?\s*(?:early|late)\b",
            rf"\b(?:on\s+)?(?:the\s+)?(?-i:eve)\b{_REST}",
            rf"\b(?:on\s+|in\s+)?(?:the\s+)?{_ORDINAL}\s*(?:{GAP}\s*(?:(?:of|in)\s+{_REST})?|(?:week(?:day)?|day|working\s+day|business\s+day)\b{_REST})",
            rf"{GAP}\s*,?\s*(?:of|in)\s+(?:the\s+|this\s+|next\s+)?{_PERIOD}\b",
            rf"{GAP}\s*,?\s*(?:after|before|following|or\s+(?:later|earlier|after|before)){_REST}",
            rf"\b(?:in|of|by|until|till|during|since|before|after|this|next|for)\s+(?:the\s+)?(?:{_MONTHS})\b",
            rf"\b(?:{_SURE_MONTHS})\b",
            rf"\b(?:in|during|this|next)\s+(?:the\s+)?(?:{_SEASONS})\b",
            r"\b(?:in|during|of|by|for)\s+q[1-4]\b",
            rf"(?:\b(?:a|the|in|that|same|per)\s+|{GAP}\s*)(?:week|fortnight|month)\b(?:\s+of\b)?",
            rf"\b(?:week|fortnight|month)s?\s*(?={GAP}|$)",
            rf"\b\w+\s+of\s*(?={GAP})",
            rf"\bthe\s+day\s*(?={GAP})",
            r"\bwithin\b",
            r"\bany\s+(?:other\s+)?(?:day|weekday)\b",
            r"\b(?:recurring|repeating|repeated(?:ly)?|repeats?)\b",
            rf"\b(?:hourly|daily|weekly|biweekly|fortnightly|monthly|yearly|annually)\b(?=\s*(?:$|[,.;!?{GAP}]))",
            r"\b(?:once|twice|[0-9]+\s+times|three\s+times)\s+(?:a|per)\s+\w+",
        )
    ),
    _I,
)
_TIMES = re.compile(
    "|".join(
        (
            r"\b(?:not|never|except|excluding|unless|but|other\s+than|apart\s+from)\b(?:\s+(?:one|on|at|for|in)\b)?",
            r"\b(?:earlier|later|sooner)\s+than\b",
            r"\b(?:at\s+the\s+|the\s+)?(?:latest|earliest)\b",
            rf"(?<={GAP})\s*-?\s*ish\b",
            rf"\b(?:at\s+)?(?:an?\s+)?(?:half|quarter|five|ten|twenty(?:[\s-]five)?)(?:\s+minutes)?"
            rf"(?:\s+(?:past|to|before|after))?\s*(?={GAP})",
        )
    ),
    _I,
)


@dataclass(frozen=True, slots=True)
class Doubtful:
    """A phrase that changes the day, or even the time of day (`clock`)."""

    phrase: str
    clock: bool

    @property
    def question(self) -> str:
        shown = " ".join(self.phrase.replace(GAP, " ").split()).strip(" ,")
        return say("unread time" if self.clock else "unread", said=shown)


def find(text: str) -> list[Doubtful]:
    times = [Doubtful(match[0], clock=True) for match in _TIMES.finditer(text)]
    return times + [Doubtful(match[0], clock=False) for match in _DAYS.finditer(text)]


def begins(text: str, at: int) -> bool:
    """Whether a phrase of several words stands there; a single one may belong to a name."""
    match = _DAYS.match(text, at)
    return match is not None and bool(re.search(r"[\s-]", match[0].strip()))
