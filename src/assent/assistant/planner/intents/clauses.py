"""A sentence in clauses that each ask for one thing, without the politeness around it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from assent.assistant.planner.dates.phrases import Quotes

_I = re.IGNORECASE
_POLITE = re.compile(
    r"^\s*(?:(?:please|pls|plz|hi|hello|hey|ok(?:ay)?|so|and|also|then|kindly|assistant|thanks|just)\b[\s,!.]*"
    r"|(?:sorry|actually|oops|oh|hmm|well|um|wait)\b[\s,!.]+|no\b(?:\s*[,.!]\s*|\s+(?=wait\b))"
    r"|(?:(?:can|could)\s+(?:you|u|we|i)|(?:would|will)\s+(?:you|u))\s+(?:please\s+)?(?:be\s+so\s+kind\s+as\s+to\s+)?(?!have)"
    r"|(?:i\s+(?:want|need|would\s+like)|i['’]d\s+like|i\s+wish)\s+(?:you\s+)?to\s+|let['’]?s\s+"
    r"|go\s+ahead\s+and\s+)+",
    _I,
)
_NEED = re.compile(r"^\s*(?:(?:i|we)\s+)?(?:want|need|would\s+like|['’]d\s+like)\s+(?!to\b)", _I)
_ADD_IT = re.compile(
    r"\s*[,;]\s*(?:please\s+)?(?:add|book|schedule|note|put)\s+(?:it|that)(?:\s+(?:down|(?:in|on|into|to)(?:\s+(?:my|the)\s+calendar)?))?\s*$",
    _I,
)
_MANNERS = re.compile(r"[\s,]+(?:please|pls|plz|thanks|thank\s+you|for\s+me)\s*$", _I)
_LEADING = (
    r"(?:please\s+)?(?:move|reschedule|shift|postpone|push|delay|bring|change|rename|retitle|extend|lengthen|prolong"
    r"|shorten|schedule|create|add|book|set\s+up|arrange|organi[sz]e|invite|remind\s+me|put|make|cancel|delete|remove"
    r"|find|search|look\s+up|show\s+me|list|tell\s+me|give\s+me|what['’]?s|what\s+is|what\s+do|where['’]?s|where\s+is"
    r"|when\s+is|how\s+do|how\s+far|directions|am\s+i)\b\s"
)
_SPLIT = re.compile(
    rf"\s*(?:;|[!?](?=\s+\S)"
    rf"|(?<!\b(?-i:[A-Z])[a-z])(?<!\b(?-i:[A-Z])[a-z]{{2}})(?<![ap]\.m)(?<!\s[ap]m)\.(?=\s+(?-i:[A-ZÀ-Þ\ue000])))\s*"
    rf"|\s*(?:,\s*)?\b(?:and\s+then|and\s+also|and|then|also|plus)\s+(?={_LEADING})|,\s+(?={_LEADING})",
    _I,
)


@dataclass(frozen=True, slots=True)
class Clause:
    """`match` is of the pattern by which an intent recognised the text."""

    text: str
    now: datetime
    quotes: Quotes
    match: re.Match[str]

    def group(self, name: str) -> str:
        return (self.match.groupdict().get(name) or "").strip()


def clauses(text: str) -> list[str]:
    """After a colon, a semicolon lists events."""
    text = _MANNERS.sub("", text.rstrip(" .!"))
    if _ADD_IT.search(text):
        text = f"schedule {_ADD_IT.sub('', text)}"
    head, colon, body = text.partition(":")
    if colon and re.search(r"\b(?:events|meetings|appointments)\b", head, _I):
        parts = _SPLIT.split(head)
        return [*parts[:-1], f"{parts[-1]}:{body}"]
    return [part for part in _SPLIT.split(text) if re.search(r"\w|\ue000", part)]


def bare(clause: str) -> str:
    """Without politeness; "I need a haircut" asks to schedule one."""
    return _NEED.sub("schedule ", _POLITE.sub("", clause)).strip()
