"""A thread stopped by `interrupt_before` or `interrupt_after`: nothing was raised, so there is no value to answer.

Such a thread is interrupted, has no interrupts, and knows what would run next. Approving runs it on without input;
rejecting ends the thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from assent.dialects.dialect import Decoded
from assent.dialects.verdicts import DECISION, NOTHING, RULES, Layout, pair, uniform
from assent.domain import canonical
from assent.domain.canonical import Json
from assent.domain.questions import (
    Action,
    Interrupt,
    InvalidDecision,
    ItemType,
    Problem,
    Question,
    Verb,
    Verdict,
    headline,
)

NAME = "breakpoint"
EXACT = True

_RULES = {**RULES, Verb.REJECT: NOTHING}


class Step(StrEnum):
    """What a decided breakpoint does to its thread, in place of a resume value."""

    CONTINUE = "continue"
    END = "end"


def question(upcoming: Sequence[str]) -> Question:
    """The question of a thread that stopped before these nodes."""
    nodes = [str(node) for node in upcoming]
    args = {"next": nodes}
    title = headline(f"Paused before {', '.join(nodes)}")
    action = Action("0", NAME, args, canonical.text(args), None, (Verb.APPROVE, Verb.REJECT))
    return Question(NAME, ItemType.BREAKPOINT, title, None, (action,))


def recognise(interrupt: Interrupt) -> None:
    """None: where something was raised, it is no breakpoint."""


def encode(question: Question, verdicts: Sequence[Verdict], layout: Layout = DECISION) -> Step:
    [(_, verdict)] = pair(question, verdicts, _RULES, layout)
    return Step.CONTINUE if verdict.verb == Verb.APPROVE else Step.END


def decode(question: Question, value: Json) -> Decoded:
    raise InvalidDecision([Problem("", "a breakpoint takes no answer: run the thread without input")])


def negative(question: Question, reason: str) -> tuple[Verdict, ...] | None:
    return uniform(question, Verb.REJECT)


def feedback(question: Question, notes: str) -> None:
    """None: nobody is there to read it."""
