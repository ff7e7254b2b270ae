"""Reads a person's sentence into goals, by the table of intents. Text that is not understood becomes a question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from functools import partial

from assent.assistant.planner.dates import phrases
from assent.assistant.planner.dates.phrases import Quotes
from assent.assistant.planner.goals import Goal, Remark, Unclear
from assent.assistant.planner.intents import chinese, words
from assent.assistant.planner.intents.slots import Clause, prepared
from assent.assistant.planner.intents.table import GIVES_UP, INTENTS, WHOLE, Intent
from assent.assistant.planner.intents.words import verb
from assent.assistant.planner.replies import is_chinese, say

LONGEST = 1_000

_I = re.IGNORECASE
_POLITE = re.compile(
    r"^\s*(?:(?:please|pls|plz|hi|hello|hey|ok(?:ay)?|so|and|also|then|kindly|assistant|thanks|just)\b[\s,!.]*"
    r"|(?:sorry|actually|oops|oh|hmm|well|um|wait)\b[\s,!.]+|no\b(?:\s*[,.!]\s*|\s+(?=wait\b))"
    r"|(?:(?:can|could)\s+(?:you|u|we|i)|(?:would|will)\s+(?:you|u))\s+(?:please\s+)?(?:be\s+so\s+kind\s+as\s+to\s+)?"
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
_LEADING = rf"(?:please\s+)?{verb(*words.VERBS)}\b\s"
_SPLIT = re.compile(
    rf"\s*(?:;|[!?](?=\s+\S)"
    rf"|(?<!\b(?-i:[A-Z])[a-z])(?<!\b(?-i:[A-Z])[a-z]{{2}})(?<![ap]\.m)(?<!\s[ap]m)\.(?=\s+(?-i:[A-ZÀ-Þ\ue000])))\s*"
    rf"|\s*(?:,\s*)?\b(?:and\s+then|and\s+also|and|then|also|plus)\s+(?={_LEADING})|,\s+(?={_LEADING})",
    _I,
)


def understand(text: str, now: datetime) -> list[Goal]:
    """The goals of a request, in the order in which they were said."""
    goals = [goal for _, made in intents(text, now) for goal in made]
    return [goal for goal in goals if not isinstance(goal, Remark)] or goals[:1]


def intents(text: str, now: datetime) -> list[tuple[Intent | None, Sequence[Goal]]]:
    """The intent of each clause, and its goals. A clause that is not understood may take back the others, so then the
    question is about all of it."""
    if len(phrases.clean(text)) > LONGEST:
        return [(None, [Unclear(say("too long", most=LONGEST))])]
    quotes = Quotes()
    hidden = prepared(text, now, quotes)
    if not re.search(r"\w|\ue000", hidden):
        return [(None, [Unclear(say("help"))])]
    shown = text.strip() if is_chinese(text) else None
    whole = _intent(hidden, now, quotes, shown)
    if whole[0] and whole[0].name in WHOLE:
        return [whole]
    split = chinese.SPLIT.split(hidden) if shown else _clauses(hidden)
    read = [_intent(clause, now, quotes, shown) for clause in split if re.search(r"\w|\ue000", clause)]
    if len(read) > 1 and any(intent is None for intent, _ in read):
        return [(None, [Unclear(say("unclear", said=phrases.clean(text)[:200]))])]
    return read


def gives_up(answer: str) -> bool:
    text = phrases.clean(answer).strip(" .,;:!?…")
    return any(pattern.fullmatch(text) for pattern in GIVES_UP)


def _readings(clause: str) -> Sequence[str]:
    """With and without its politeness: a greeting is nothing else."""
    if chinese.HAN.search(clause):
        return list(dict.fromkeys((chinese.bare(clause), clause.strip())))
    return list(dict.fromkeys((_bare(clause), clause.strip())))


def _intent(clause: str, now: datetime, quotes: Quotes, shown: str | None) -> tuple[Intent | None, Sequence[Goal]]:
    """`shown` is a Chinese request as it was said, before its times were put into English."""
    readings = _readings(clause)
    for intent in INTENTS:
        for text in readings:
            if goals := intent.goals(text, partial(Clause, text, shown or quotes.show(text), now, quotes)):
                return intent, goals
    return None, [_unclear(shown or quotes.show(readings[0]))]


def _unclear(said: str) -> Unclear:
    rest, meant = said.partition(" ")[2], words.misspelt_verb(said)
    if meant and rest:
        return Unclear(say("did you mean", said=f"{meant} {rest[:200]}"), guess=f"{meant} {rest}")
    return Unclear(say("unclear", said=said[:200]))


def _clauses(text: str) -> list[str]:
    """A sentence in clauses that each ask for one thing. After a colon, a semicolon lists events."""
    text = _MANNERS.sub("", text.rstrip(" .!"))
    if _ADD_IT.search(text):
        text = f"schedule {_ADD_IT.sub('', text)}"
    head, colon, body = text.partition(":")
    if colon and re.search(r"\b(?:events|meetings|appointments)\b", head, _I):
        parts = _SPLIT.split(head)
        return [*parts[:-1], f"{parts[-1]}:{body}"]
    return _SPLIT.split(text)


def _bare(clause: str) -> str:
    """Without politeness; "I need a haircut" asks to schedule one."""
    return _NEED.sub("schedule ", _POLITE.sub("", clause)).strip()
