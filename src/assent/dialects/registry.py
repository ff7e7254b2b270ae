"""All dialects in the order in which they are tried, and the way in for everyone who does not care which one it is.

A question is recognised once; after that its `dialect` says who writes and reads its answers. Whatever the dialect,
a value that leaves here fits the interrupt's own `response_schema`, if it has one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from assent.dialects import (
    breakpoint,
    clarification,
    confirmation,
    form_elicitation,
    hitl_request,
    human_interrupt,
    mcp_elicitation,
    oauth_url,
    raw,
    request,
    tool_approval,
)
from assent.dialects.dialect import Decoded, Dialect
from assent.dialects.plain import plain
from assent.dialects.verdicts import stringified
from assent.domain.canonical import Json
from assent.domain.questions import MOST_ACTIONS, Interrupt, InvalidDecision, ItemType, Problem, Question, Verdict

DIALECTS: tuple[Dialect, ...] = (
    human_interrupt,
    hitl_request,
    tool_approval,
    clarification,
    confirmation,
    oauth_url,
    mcp_elicitation,
    form_elicitation,  # after all that have a form of their own: it takes any value that has a response_schema
    breakpoint,
    request,
    raw,  # takes everything
)


def recognise(interrupt: Interrupt) -> Question:
    """The question in an interrupt. Never raises: what is not understood is a raw question that says why."""
    value, lost = plain(interrupt.value)
    schema, remarks = _schema(interrupt.response_schema)
    asked = Interrupt(str(interrupt.id), value, schema, (*interrupt.lost, *lost))
    if asked.lost:
        return raw.question(asked, [*asked.lost, *remarks])
    found = next(question for dialect in DIALECTS if (question := dialect.recognise(asked)) is not None)
    if len(found.actions) > MOST_ACTIONS:
        return raw.too_many(asked, len(found.actions))
    return replace(found, problems=(*found.problems, *remarks, *_unenforceable(found), *_unbound(found)))


def dialect_of(question: Question) -> Dialect:
    return next(dialect for dialect in DIALECTS if question.dialect == dialect.NAME)


def encode(question: Question, verdicts: Sequence[Verdict], *, stringify_args: bool = False) -> Json:
    """The exact value to resume with (for a breakpoint, a `Step`), or `InvalidDecision` naming the field."""
    value = dialect_of(question).encode(question, verdicts)
    if stringify_args:
        value = dialect_of(question).encode(question, stringified(question, verdicts))
    return _fitting(question, value)


def decode(question: Question, value: Json) -> Decoded:
    """What an answer from elsewhere says, with its exact form; `InvalidDecision` if it cannot be understood fully."""
    decoded = dialect_of(question).decode(question, value)
    _fitting(question, decoded.value)
    return decoded


def negative(question: Question, reason: str) -> tuple[Verdict, ...] | None:
    return dialect_of(question).negative(question, reason)


def feedback(question: Question, notes: str) -> tuple[Verdict, ...] | None:
    return dialect_of(question).feedback(question, notes)


def mismatches(question: Question, value: Json) -> tuple[Problem, ...]:
    """Where a resume value breaks the interrupt's own `response_schema`."""
    schema = question.response_schema
    if schema is None:
        return ()
    from assent.domain import schemas  # slow to import, and many agents have none

    return schemas.problems(schema, value)


def _fitting(question: Question, value: Json) -> Json:
    if problems := mismatches(question, value):
        raise InvalidDecision(problems)
    return value


def _schema(schema: object) -> tuple[Json, tuple[Problem, ...]]:
    """The response schema as JSON. What is not one is left out: LangGraph itself only checks Python types."""
    if schema is None:
        return None, ()
    value, lost = plain(schema)
    if lost or not isinstance(value, dict):
        return None, (Problem("response_schema", "is not a JSON Schema and is left out"),)
    return value, ()


def _unbound(question: Question) -> Iterator[Problem]:
    for action in question.actions if question.type is ItemType.TOOL else ():
        if action.call_id and action.known_by is None:
            yield Problem(f"actions[{action.key}]", "has a NUL in its name or call id, so no approval is bound to it")


def _unenforceable(question: Question) -> Iterator[Problem]:
    own = question.response_schema
    theirs = [(f"actions[{action.key}].schema", action.schema) for action in question.actions if action.schema != own]
    for path, schema in [("response_schema", own), *theirs]:
        if schema is None:
            continue
        from assent.domain import schemas  # slow to import, and many agents have none

        if (defect := schemas.defect(schema)) is not None:
            yield Problem(path, f"{defect}, so answers are not checked against it")
