"""Reads a person's sentence into goals, by the table of intents. Text that is not understood becomes a question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from functools import partial

from assent.assistant.planner.chinese import requests as chinese
from assent.assistant.planner.dates import phrases
from assent.assistant.planner.dates.phrases import Quotes
from assent.assistant.planner.goals import Goal, Remark, Unclear
from assent.assistant.planner.intents import nouns
from assent.assistant.planner.intents.clauses import Clause, bare, clauses
from assent.assistant.planner.intents.table import INTENTS, Intent
from assent.assistant.planner.replies import say

LONGEST = 1_000

_NEVER_MIND = re.compile(
    r"^\W*(?:never\s?mind|forget\s+(?:it|about\s+it|that)|cancel(?:\s+(?:it|that))?|stop|nothing"
    r"|no(?:pe)?(?:,?\s+thanks?)?|leave\s+it|skip\s+(?:it|that)|abort|drop\s+it)\W*$",
    re.IGNORECASE,
)


def understand(text: str, now: datetime) -> list[Goal]:
    """The goals of a request, in the order in which they were said."""
    goals = [goal for _, made in intents(text, now) for goal in made]
    return [goal for goal in goals if not isinstance(goal, Remark)] or goals[:1]


def intents(text: str, now: datetime) -> list[tuple[Intent | None, Sequence[Goal]]]:
    """The intent of each clause, and its goals."""
    cleaned = phrases.clean(chinese.in_english(text, now))
    if len(cleaned) > LONGEST:
        question = say("too long", most=LONGEST)
        return [(None, [Unclear(question)])]
    quotes = Quotes()
    hidden = quotes.hide(cleaned)
    if not re.search(r"\w|\ue000", hidden):
        return [(None, [Unclear(say("help"))])]
    whole = _intent(hidden, now, quotes)
    if whole[0] and whole[0].name in ("greeting", "thanks", "condition", "replace"):
        return [whole]
    return [_intent(clause, now, quotes) for clause in clauses(hidden)]


def gives_up(answer: str) -> bool:
    return bool(_NEVER_MIND.match(answer))


def _intent(clause: str, now: datetime, quotes: Quotes) -> tuple[Intent | None, Sequence[Goal]]:
    """Greetings are politeness, so the clause with it is tried as well."""
    for intent in INTENTS:
        for text in dict.fromkeys((bare(clause), clause.strip())):
            if goals := intent.goals(text, partial(Clause, text, now, quotes)):
                return intent, goals
    return None, [_unclear(quotes.show(bare(clause)))]


def _unclear(said: str) -> Unclear:
    rest, verb = said.partition(" ")[2], nouns.misspelt_verb(said)
    if verb and rest:
        return Unclear(say("did you mean", said=f"{verb} {rest[:200]}"), guess=f"{verb} {rest}")
    return Unclear(say("unclear", said=said[:200]))
