"""Answers that come through the LangGraph API, checked before anything touches the graph.

Stock clients send `command.resume` by position or by interrupt id. A wrong value is stored by LangGraph before the
agent looks at it and breaks the thread for good, so here it becomes an exact value per interrupt id, or is refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from assent.dialects import registry
from assent.dialects.verdicts import unstorable
from assent.domain import canonical
from assent.domain.canonical import Json
from assent.domain.questions import Interrupt, InvalidDecision, Problem, Question, Verdict

_ID = re.compile(r"[0-9a-f]{32}")  # LangGraph takes an object for a map of ids if all its keys look like this


@dataclass(frozen=True, slots=True)
class Answer:
    """One answered interrupt: the value to send, and the verdicts in it.

    Without verdicts the value was not understood (`problems` say why) and goes to the agent as it came, which only
    advisory items allow.
    """

    question: Question
    value: Json
    verdicts: tuple[Verdict, ...] | None = None
    problems: tuple[Problem, ...] = ()

    @property
    def decoded(self) -> bool:
        return self.verdicts is not None


class UnknownInterrupt(LookupError):
    """The answer names an interrupt that is not pending (`ids`; empty if it names none and nothing is pending)."""

    def __init__(self, ids: Iterable[str], pending: Iterable[str]) -> None:
        self.ids = tuple(ids)
        self.pending = tuple(pending)
        waiting = ", ".join(self.pending) or "nothing"
        named = f"{', '.join(self.ids)} is not pending" if self.ids else "there is nothing to answer"
        super().__init__(f"{named}; waiting: {waiting}")


class InvalidAnswer(InvalidDecision):
    """The answer does not fit what is pending; nothing was sent and the interrupt can still be answered."""


def check_resume(
    pending: Sequence[Interrupt], resume: Json, *, gated: Collection[str] = frozenset()
) -> dict[str, Answer]:
    """The answers by interrupt id. Those in `gated` must be understood fully; of others that is only reported.

    Raises `UnknownInterrupt` (what is asked has changed: a conflict) or `InvalidAnswer` (wrong in itself).
    """
    _must_be_sendable(resume)
    known = {interrupt.id: interrupt for interrupt in pending}
    keyed = _is_keyed(resume, known)
    values = _keyed(resume, known) if keyed else _positional(resume, known)
    answers: dict[str, Answer] = {}
    problems: list[Problem] = []
    for id, value in values.items():
        try:
            answers[id] = _answer(known[id], value, gated=id in gated)
        except InvalidDecision as error:
            problems.extend(
                Problem(canonical.below(id if keyed else "", each.path), each.message) for each in error.problems
            )
    if problems:
        raise InvalidAnswer(problems)
    return answers


def _must_be_sendable(resume: Json) -> None:
    try:
        canonical.text(resume)
    except canonical.NotJson as error:
        raise InvalidAnswer([Problem(error.path, error.reason)]) from None
    if resume is None or resume == {}:
        raise InvalidAnswer([Problem("", "null and {} are no answers")])
    if problems := list(unstorable(resume)):
        raise InvalidAnswer(problems)


def _is_keyed(resume: Json, known: Mapping[str, Interrupt]) -> bool:
    if not isinstance(resume, dict):
        return False
    return any(key in known for key in resume) or all(_ID.fullmatch(key) for key in resume)


def _keyed(resume: dict[str, Json], known: Mapping[str, Interrupt]) -> dict[str, Json]:
    unknown = [id for id in resume if id not in known]
    if unknown:
        raise UnknownInterrupt(unknown, known)
    return resume


def _positional(resume: Json, known: Mapping[str, Interrupt]) -> dict[str, Json]:
    if not known:
        raise UnknownInterrupt((), ())
    if len(known) > 1:
        raise InvalidAnswer([Problem("", f"several interrupts wait, answer by id: {', '.join(known)}")])
    return dict.fromkeys(known, resume)


def _answer(interrupt: Interrupt, value: Json, *, gated: bool) -> Answer:
    question = registry.recognise(interrupt)
    try:
        decoded = registry.decode(question, value)
    except InvalidDecision as error:
        if gated or registry.dialect_of(question).EXACT or _never(question, value):
            raise
        return Answer(question, value, None, error.problems)
    return Answer(question, decoded.value, decoded.verdicts)


def _never(question: Question, value: Json) -> bool:
    """Whether no agent could take this for an answer, in whatever form it expects one."""
    return value is None or value == {} or bool(registry.mismatches(question, value))
