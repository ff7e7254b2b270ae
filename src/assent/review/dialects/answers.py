"""Answers through the LangGraph API, validated before they reach the graph.

Stock clients send `command.resume` by position or by interrupt id. LangGraph stores a wrong value before the agent
reads it, which breaks the thread permanently; so it becomes an exact value per interrupt id here, or is refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from assent.errors import InvalidAnswer, InvalidDecision, Problem
from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.review.dialects import registry
from assent.review.dialects.verdicts import unstorable
from assent.review.model.questions import Interrupt, Question, Verdict

_ID = re.compile(r"[0-9a-f]{32}")  # LangGraph treats an object as a map of ids if all its keys match


@dataclass(frozen=True, slots=True)
class Answer:
    """One answered interrupt: the value to send, and the verdicts in it.

    Without verdicts the value could not be parsed (see `problems`) and goes to the agent unchanged, which only advisory
    items allow.
    """

    question: Question
    value: Json
    verdicts: tuple[Verdict, ...] | None = None
    problems: tuple[Problem, ...] = ()

    @property
    def decoded(self) -> bool:
        return self.verdicts is not None


class UnknownInterrupt(LookupError):
    """The answer refers to interrupts that are not pending (`ids`; empty if it has no id and nothing is pending)."""

    def __init__(self, ids: Iterable[str], pending: Iterable[str]) -> None:
        self.ids = tuple(ids)
        self.pending = tuple(pending)
        waiting = ", ".join(self.pending) or "nothing"
        named = f"{', '.join(self.ids)} is not pending" if self.ids else "there is no pending interrupt"
        super().__init__(f"{named}; waiting: {waiting}")


def check_resume(
    pending: Sequence[Interrupt], resume: Json, *, exact: Collection[str] = frozenset()
) -> dict[str, Answer]:
    """The answers by interrupt id. Those in `exact` must parse fully, so that none goes beyond its question; for
    others, problems are only reported.

    Raises `UnknownInterrupt` (the questions have changed: a conflict) or `InvalidAnswer` (malformed).
    """
    _must_be_sendable(resume)
    by_id = {interrupt.id: interrupt for interrupt in pending}
    keyed = _is_keyed(resume, by_id)
    values = _keyed(resume, by_id) if keyed else _positional(resume, by_id)
    answers: dict[str, Answer] = {}
    problems: list[Problem] = []
    for id, value in values.items():
        try:
            answers[id] = _answer(by_id[id], value, exact=id in exact)
        except InvalidDecision as error:
            problems.extend(
                Problem(canonical.below(id if keyed else "", each.path), each.message) for each in error.problems
            )
    if problems:
        raise InvalidAnswer(problems=problems)
    return answers


def _must_be_sendable(resume: Json) -> None:
    try:
        canonical.text(resume)
    except canonical.NotJson as error:
        raise InvalidAnswer(problems=[Problem(error.path, error.reason)]) from None
    if resume is None or resume == {}:
        raise InvalidAnswer(problems=[Problem("", "null and {} are no answers")])
    if problems := list(unstorable(resume)):
        raise InvalidAnswer(problems=problems)


def is_interrupt_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def _is_keyed(resume: Json, known: Mapping[str, Interrupt]) -> bool:
    if not isinstance(resume, dict):
        return False
    return any(key in known for key in resume) or all(map(is_interrupt_id, resume))


def _keyed(resume: dict[str, Json], known: Mapping[str, Interrupt]) -> dict[str, Json]:
    unknown = [id for id in resume if id not in known]
    if unknown:
        raise UnknownInterrupt(unknown, known)
    return resume


def _positional(resume: Json, known: Mapping[str, Interrupt]) -> dict[str, Json]:
    if not known:
        raise UnknownInterrupt((), ())
    if len(known) > 1:
        raise InvalidAnswer(problems=[Problem("", f"several interrupts wait, answer by id: {', '.join(known)}")])
    return dict.fromkeys(known, resume)


def _answer(interrupt: Interrupt, value: Json, *, exact: bool) -> Answer:
    question = registry.recognise(interrupt)
    try:
        decoded = registry.decode(question, value)
    except InvalidDecision as error:
        if exact or registry.dialect_of(question).EXACT or _is_unacceptable(question, value):
            raise
        return Answer(question, value, None, error.problems)
    return Answer(question, decoded.value, decoded.verdicts)


def _is_unacceptable(question: Question, value: Json) -> bool:
    """Whether no agent could accept this value as an answer."""
    return value is None or value == {} or bool(registry.mismatches(question, value))
