"""The interface of a dialect. Each dialect is a module with these functions; none of them has state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from assent.kernel.canonical import Json
from assent.review.model.questions import Interrupt, Question, Verb, Verdict


@dataclass(frozen=True, slots=True)
class Decoded:
    """A parsed answer from outside the inbox: its verdicts, and the exact value to send for it."""

    verdicts: tuple[Verdict, ...]
    value: Json


class Dialect(Protocol):
    NAME: str
    EXACT: bool
    """Whether an answer in any other form would break the thread permanently, and is refused even on advisory items."""

    HEARS: frozenset[Verb]
    """The verbs with a text for the agent's model, where comments can follow it. A text that code reads, such as the
    answer to a question, stays exactly as it was written."""

    def recognise(self, interrupt: Interrupt) -> Question | None:
        """The question, if it uses this dialect; a raw one with problems, if it uses it wrongly."""

    def encode(self, question: Question, verdicts: Sequence[Verdict]) -> Json:
        """The exact resume value. Raises `InvalidDecision` with the field for a verdict that does not fit."""

    def decode(self, question: Question, value: Json) -> Decoded:
        """The verdicts in a received resume value. Raises `InvalidDecision` with the field."""

    def approves(self, question: Question) -> bool:
        """Whether an answer can let the agent act; true if uncertain. If not, callers of the thread may answer, unless
        a policy forbids it."""

    def negative(self, question: Question, reason: str) -> tuple[Verdict, ...] | None:
        """The rejecting verdicts, with the reason (expiry, withdrawal) if the dialect has a field for it."""

    def feedback(self, question: Question, notes: str) -> tuple[Verdict, ...] | None:
        """The verdicts that request a revision, with the notes; None if the dialect has no such verb."""
