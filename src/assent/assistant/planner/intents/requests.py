"""Reads a person's sentence into goals. Text that is not understood becomes a question, never a guess."""

from __future__ import annotations

import re
from datetime import datetime

from assent.assistant.planner.dates import phrases, reading
from assent.assistant.planner.dates.phrases import Quotes
from assent.assistant.planner.goals import Goal, Remark, Unclear
from assent.assistant.planner.intents import changes, creates, lookups

LONGEST = 1_000

NAME = "offline planner (rules, not a language model)"
ABLE = "I can schedule, move, rename and list events, search places and find ways."

_I = re.IGNORECASE
_POLITE = re.compile(
    r"^\s*(?:(?:please|pls|hi|hello|hey|ok(?:ay)?|so|and|also|then|kindly|assistant|thanks)\b[\s,!.]*"
    r"|(?:(?:can|could)\s+(?:you|we|i)|(?:would|will)\s+you)\s+(?:please\s+)?(?!have)"
    r"|(?:i\s+(?:want|need|would\s+like)|i['’]d\s+like|i\s+wish)\s+(?:you\s+)?to\s+|let['’]?s\s+"
    r"|go\s+ahead\s+and\s+)+",
    _I,
)
_NEED = re.compile(r"^\s*(?:i\s+(?:want|need|would\s+like)|i['’]d\s+like|we\s+need)\s+", _I)
_LEADING = (
    rf"(?:please\s+)?(?:{changes.VERB}|schedule|create|add|book|set\s+up|arrange|organi[sz]e|remind\s+me|put|make"
    rf"|cancel|delete|remove|find|search"
    r"|look\s+up|show\s+me|list|tell\s+me|give\s+me|what['’]?s|what\s+is|what\s+do|where['’]?s|where\s+is|when\s+is"
    r"|how\s+do|how\s+far|directions|am\s+i)\b\s"
)
_SPLIT = re.compile(
    rf"\s*(?:;|[!?](?=\s+\S)"
    rf"|(?<!\b(?-i:[A-Z])[a-z])(?<!\b(?-i:[A-Z])[a-z]{{2}})(?<![ap]\.m)(?<!\s[ap]m)\.(?=\s+(?-i:[A-ZÀ-Þ\ue000])))\s*"
    rf"|\s*(?:,\s*)?\b(?:and\s+then|and\s+also|and|then|also|plus)\s+(?={_LEADING})|,\s+(?={_LEADING})",
    _I,
)
_NOT = re.compile(r"^\s*(?:do\s*n[o'’]t|don['’]?t|do\s+not|never|no\s+need|stop|not)\b", _I)
_REMOVE = re.compile(r"^\s*(?:cancel|delete|remove|drop|clear|erase)\b", _I)
_GREETING = re.compile(
    r"^\W*(?:hi|hello|hey|good\s+(?:morning|afternoon|evening)|help|what\s+can\s+you\s+do|who\s+are\s+you"
    r"|what\s+are\s+you|how\s+are\s+you)\b[\s\w]*\W*$",
    _I,
)
_THANKS = re.compile(
    r"^\W*(?:thanks?|thank\s+you|thx|great|ok(?:ay)?|cool|perfect|bye|goodbye)\b(?:\s+(?:you|a\s+lot|so\s+much"
    r"|very\s+much|bye))?\W*$",
    _I,
)
_QUESTION = re.compile(
    r"^\s*(?:is|are|was|were|does|did|do|who|whom|why|which|what|where|when|how|should|may|might|has|had|can|could"
    r"|would|will)\b",
    _I,
)
_CREATE = re.compile(rf"^\s*{creates.VERB}\b", _I)
_CHANGE = re.compile(rf"^\s*{changes.VERB}\b", _I)
_NEVER_MIND = re.compile(
    r"^\W*(?:never\s?mind|forget\s+(?:it|about\s+it|that)|cancel(?:\s+(?:it|that))?|stop|nothing"
    r"|no(?:pe)?(?:,?\s+thanks?)?|leave\s+it|skip\s+(?:it|that)|abort|drop\s+it)\W*$",
    _I,
)


def understand(text: str, now: datetime) -> list[Goal]:
    """The goals of a request, in the order in which they were said."""
    cleaned = phrases.clean(text)
    if len(cleaned) > LONGEST:
        return [
            Unclear(f"That is longer than I can read ({LONGEST} characters). What should I do, in a sentence or two?")
        ]
    quotes = Quotes()
    hidden = quotes.hide(cleaned)
    if not re.search(r"\w|\ue000", hidden):
        return [Unclear(f"What can I do for you? {ABLE}")]
    goals = [goal for clause in clauses(hidden) for goal in _goals(clause, now, quotes)]
    return [goal for goal in goals if not isinstance(goal, Remark)] or goals[:1]


def clauses(text: str) -> list[str]:
    """The sentence in parts that each ask for one thing. After a colon, a semicolon lists events."""
    head, colon, body = text.partition(":")
    if colon and re.search(r"\b(?:events|meetings|appointments)\b", head, _I):
        parts = _SPLIT.split(head)
        return [*parts[:-1], f"{parts[-1]}:{body}"]
    return [part for part in _SPLIT.split(text) if re.search(r"\w|\ue000", part)]


def gives_up(answer: str) -> bool:
    return bool(_NEVER_MIND.match(answer))


def _goals(clause: str, now: datetime, quotes: Quotes) -> list[Goal]:
    if _GREETING.match(clause):
        return [Remark(f"Hello. I am the {NAME}. {ABLE}")]
    if _THANKS.match(clause):
        return [Remark("You are welcome.")]
    bare = _POLITE.sub("", clause)
    said = quotes.show(bare).strip()
    if _NOT.match(bare):
        return [Remark(f"All right, I did nothing about “{said}”.")]
    if _REMOVE.match(bare):
        return [Remark(f"I cannot delete events, so nothing came of “{said}”. {ABLE}")]
    return _wanted(_NEED.sub("schedule ", bare), now, quotes) or [_unclear(said)]


def _wanted(bare: str, now: datetime, quotes: Quotes) -> list[Goal]:
    booking = creates.booking(bare, now, quotes)
    if booking:
        return [booking]
    if _CHANGE.match(bare):
        return [changes.change(bare, now, quotes)]
    looked = lookups.lookup(bare, now, quotes)
    if looked:
        return [looked]
    if _CREATE.match(bare):
        return creates.events(bare, now, quotes)
    when, _ = reading.read(bare, now)
    bare_event = when.timed and not _QUESTION.match(bare) and not bare.rstrip().endswith("?")
    return creates.events(bare, now, quotes) if bare_event else []


def _unclear(said: str) -> Unclear:
    return Unclear(f"I am the {NAME} and do not understand “{said[:200]}”. {ABLE} What should I do?")
