"""A thread stopped by `interrupt_before` or `interrupt_after`: no interrupt was raised, so there is no value to answer.

Such a thread is interrupted, has no interrupts, and has next nodes. Approving continues it without input; rejecting
ends the thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from assent.errors import InvalidDecision, Problem
from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.review.dialects.dialect import Decoded
from assent.review.dialects.verdicts import DECISION, NOTHING, RULES, Layout, pair, uniform
from assent.review.model.questions import Action, Interrupt, ItemType, Question, Verb, Verdict, headline

NAME = "breakpoint"
EXACT = True
HEARS = frozenset[Verb]()

_RULES = {**RULES, Verb.REJECT: NOTHING}


class Step(StrEnum):
    """The effect of a decided breakpoint on its thread, in place of a resume value."""

    CONTINUE = "continue"
    END = "end"


def question(upcoming: Sequence[str], notes: Sequence[str] = ()) -> Question:
    """The question of a thread that stopped before these nodes. `notes` are the server's, for the reviewer."""
    nodes = [str(node) for node in upcoming]
    args = {"next": nodes}
    title = headline(f"Paused before {', '.join(nodes)}")
    action = Action("0", NAME, args, canonical.text(args), None, (Verb.APPROVE, Verb.REJECT))
    return Question(NAME, ItemType.BREAKPOINT, title, "\n\n".join(notes) or None, (action,))


def recognise(interrupt: Interrupt) -> None:
    """None: an interrupt is never a breakpoint."""


def encode(question: Question, verdicts: Sequence[Verdict], layout: Layout = DECISION) -> Step:
    [(_, verdict)] = pair(question, verdicts, _RULES, layout)
    return Step.CONTINUE if verdict.verb == Verb.APPROVE else Step.END


def decode(question: Question, value: Json) -> Decoded:
    raise InvalidDecision(problems=[Problem("", "a breakpoint takes no answer: run the thread without input")])


def approves(question: Question) -> bool:
    return True


def negative(question: Question, reason: str) -> tuple[Verdict, ...] | None:
    return uniform(question, Verb.REJECT)


def feedback(question: Question, notes: str) -> None:
    """None: no code would read it."""
