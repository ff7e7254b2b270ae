"""The words that are known: verbs, and kinds of events. A clause without a verb is a new event only if it names such a
kind, and says nothing about it."""

from __future__ import annotations

import re
from difflib import get_close_matches

VERBS = (
    *("schedule", "create", "arrange", "organise", "reserve", "book", "remind", "invite"),
    *("move", "reschedule", "postpone", "shift", "delay", "change", "rename", "extend", "shorten"),
    *("cancel", "delete", "remove"),
)
_ALIKE = 0.75
NOUNS = (
    r"1[:\-]1|1-on-1|one[- ]on[- ]one|all[- ]hands|anniversary|appointment|appt|audit|bbq|barbecue"
    r"|birthday|breakfast|briefing|brunch|call|catch[- ]?up|ceremony|chat|check[- ]?in|check[- ]?up|cinema"
    r"|class|coffee|concert|conference|course|debrief|demo|dentist|dinner|discussion|doctor|drinks|event"
    r"|exam|exhibition|film|flight|football|game|gym|haircut|handover|hike|interview|kick[- ]?off|lecture"
    r"|lesson|lunch|match|massage|meal|meet[- ]?up|meeting|movie|offsite|party|phone\s+call|physio|picnic"
    r"|pilates|planning|practice|presentation|rehearsal|reservation|retro|retrospective|review|run|seminar"
    r"|session|show|sprint|stand[- ]?up|supper|swim|swimming|sync|talk|tea|tennis|test|therapy|theat(?:re"
    r"|er)|training|vet|video\s+call|viewing|visit|walk|webinar|wedding|workout|workshop|yoga|zoom"
)
_PARTICLES = r"(?:an?|the|in|on|up|out|off|back|for|to|with|at|of|from|by)\b"
_ACTIVITIES = r"(?:meet|visit|phone|call|pick\s+up|drop\s+off)\s+(?!me\b|you\b|it\b|off\b)"
_APPOINTMENT = re.compile(
    rf"(?:{_ACTIVITIES}.+|(?:(?!{_PARTICLES})[\w&/.-]+(?:['’]s?)?\s+){{0,3}}?(?:{NOUNS})s?"
    r"(?:\s+(?:(?:with|at|in|for|of|about|to|and|on|re)\b|w/|&).*)?)",
    re.IGNORECASE,
)
_SAYS_SOMETHING = re.compile(
    r"\b(?:is|isn['’]?t|was|wasn['’]?t|were|are|am|be|been|will|won['’]?t|would|can(?:['’]?t|not)?|could|should|must|has|have|had"
    r"|does|did|do|don['’]?t|not|never|off|no|cancel\w*|moved?|leaves?|starts?|hates?|loves?|likes?|only|but|or|meant|mean"
    r"|i|you|he|she|they|who|why|what|which|how|if|said|says|thinks?|was|because|instead|swap|free|busy|every|each)\b"
    r"|->|=>|→|[?<>=]",
    re.IGNORECASE,
)


def misspelt_verb(text: str) -> str | None:
    """The verb that the first word is nearly."""
    word = text.split(" ", 1)[0].lower()
    if word in VERBS or re.fullmatch(rf"(?:{NOUNS})s?", word):
        return None
    return next(iter(get_close_matches(word, VERBS, 1, _ALIKE)), None)


def is_appointment(name: str) -> bool:
    return bool(_APPOINTMENT.fullmatch(name)) and not _SAYS_SOMETHING.search(name) and not misspelt_verb(name)
