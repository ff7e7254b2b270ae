"""Corrections that a rejection contains: "Wrong time, should be 10am" is a new proposal, "not needed" ends it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from assent.assistant.planner.dates import dates, reading
from assent.assistant.planner.dates.clocks import CLOCK
from assent.assistant.planner.dates.phrases import Quotes
from assent.assistant.planner.intents import chinese
from assent.assistant.planner.intents.slots import new_event, prepared
from assent.assistant.planner.replies import is_chinese

_I = re.IGNORECASE
_NOT_THAT = re.compile(
    rf"\b(?:not|instead\s+of|rather\s+than)\s+(?:at\s+|on\s+|for\s+|in\s+)?(?:{CLOCK}|[\w'’]+)(?:\s+but\b)?", _I
)
_CUE = re.compile(
    r"\b(?:it\s+|this\s+|that\s+|the\s+\w+\s+)?(?:should|must|needs?\s+to|has\s+to|ought\s+to)\s+(?:have\s+been|be"
    r"|start|begin|last|take)(?:\s+at(?=\s+(?:at|@)))?"
    r"|\b(?:please\s+)?(?:make|set|put|move|change|try|use|prefer|schedule)\b(?:\s+(?:it|that|this|the\s+(?:time"
    r"|date|day|place|location|name|title|length|duration)))?(?:\s+(?:to|for)\b)?"
    r"|\b(?:how|what)\s+about\b|\binstead\b|\brather\b|\bbetter\b|\bmaybe\b|\bi\s+(?:said|meant|mean|want(?:ed)?"
    r"|asked\s+for)\b|\bactually\b|\bbut\b|\bit['’]s\b"
    r"|\b(?:wrong|incorrect|bad)(?:\s+(?:time|date|day|name|title|length|duration|place|location))?\b"
    r"|\btoo\s+(?:early|late|long|short)\b",
    _I,
)
_ANYTHING_BUT = re.compile(
    r"\b(?:any\s?(?:thing|time|where)?(?:\s+(?:day|time|hour))?|every\s?(?:thing|\s+day))(?:\s+(?:other|else))?"
    r"\s+(?:but|except|than|apart\s+from|other\s+than)\b",
    _I,
)
_RENAME = re.compile(
    r"\b(?:(?:it\s+)?(?:should|must)\s+be\s+)?(?:called|named|titled|(?:re)?name\s+it(?:\s+to)?|call\s+it"
    r"|title\s+it)\s+"
    r"|\b(?:the\s+)?(?:name|title)\s+(?:should\s+be|is|to)\s+",
    _I,
)
_WANTS_CHANGE = re.compile(
    r"\b(?:wrong|incorrect|should|change|different|another|later|earlier|longer|shorter|too|other|better|reschedule"
    r"|move)\b",
    _I,
)

_CHINESE_CUE = re.compile(r"改|换|应该|不对|错|太[早晚长短]")


@dataclass(frozen=True, slots=True)
class Correction:
    """`wanted` is whether the person wants something else at all; what exactly may still have to be asked."""

    when: dates.When
    name: str | None = None
    place: str | None = None
    wanted: bool = False

    @property
    def says_what(self) -> bool:
        return bool(self.name or self.place or not self.when.empty)


def correction(feedback: str, now: datetime) -> Correction:
    if _ANYTHING_BUT.search(feedback):
        return Correction(dates.When(), wanted=True)
    quotes = Quotes()
    hidden = prepared(feedback[:1000], now, quotes)
    if is_chinese(feedback):
        return _in_chinese(feedback, *reading.read(hidden, now))
    text = _NOT_THAT.sub(" ", hidden)
    named = bool(_RENAME.search(text))
    cue = bool(_CUE.search(_RENAME.sub(" ", text)))
    said = new_event(_CUE.sub(" ", _RENAME.sub(" called ", text)), now, quotes)
    if named or cue or (not said.name and not said.when.empty):
        corrected = Correction(said.when, said.name if named else None, said.place, wanted=True)
        if corrected.says_what:
            return corrected
    return Correction(dates.When(), wanted=bool(_WANTS_CHANGE.search(feedback)))


def _in_chinese(feedback: str, when: dates.When, rest: str) -> Correction:
    cue = _CHINESE_CUE.search(feedback)
    if not when.empty and (cue or not chinese.name(rest)):
        return Correction(when, wanted=True)
    return Correction(dates.When(), wanted=bool(cue))
