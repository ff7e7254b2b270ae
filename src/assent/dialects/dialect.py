"""The one interface of a way of asking. Each dialect is a module with these functions; none of them holds state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from assent.domain.canonical import Json
from assent.domain.questions import Interrupt, Question, Verdict


@dataclass(frozen=True, slots=True)
class Decoded:
    """An answer that came from elsewhere, understood: what it says, and the exact value to send for it."""

    verdicts: tuple[Verdict, ...]
    value: Json


class Dialect(Protocol):
    NAME: str
    EXACT: bool
    """Whether an answer in any other form would break the thread for good, and is refused even on advisory items."""

    def recognise(self, interrupt: Interrupt) -> Question | None:
        """The question, if it is asked in this dialect; a raw one with problems, if it only tries to be."""

    def encode(self, question: Question, verdicts: Sequence[Verdict]) -> Json:
        """The exact resume value. Raises `InvalidDecision`, naming the field, for anything that does not fit."""

    def decode(self, question: Question, value: Json) -> Decoded:
        """The verdicts in a resume value that someone sent. Raises `InvalidDecision`, naming the field."""

    def negative(self, question: Question, reason: str) -> tuple[Verdict, ...] | None:
        """The verdicts that say no, with the true reason where the dialect has room for one (expiry, withdrawal)."""

    def feedback(self, question: Question, notes: str) -> tuple[Verdict, ...] | None:
        """The verdicts that ask for another try, with the notes; None where the dialect has no such verb."""
