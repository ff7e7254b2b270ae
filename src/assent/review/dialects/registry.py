"""All dialects in the order in which they are tried, and the dialect-independent functions.

A question is recognised once; after that its `dialect` selects the module for its answers. In every dialect, a value
that leaves here fits the interrupt's own `response_schema`, if it has one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from assent.errors import InvalidDecision, Problem
from assent.kernel.canonical import Json
from assent.review.dialects import breakpoint, human_interrupt, raw, request, workspace_review
from assent.review.dialects.approvals import takes_boolean
from assent.review.dialects.assistant import clarification, confirmation
from assent.review.dialects.dialect import Decoded, Dialect
from assent.review.dialects.langchain import hitl_request, tool_approval
from assent.review.dialects.mcp import form_elicitation, mcp_elicitation, oauth_url
from assent.review.dialects.plain import plain
from assent.review.dialects.verdicts import message_of, stringified
from assent.review.model.questions import MOST_ACTIONS, Interrupt, ItemType, Question, Verb, Verdict

DIALECTS: tuple[Dialect, ...] = (
    human_interrupt,
    hitl_request,
    tool_approval,
    clarification,
    confirmation,
    workspace_review,
    oauth_url,
    mcp_elicitation,
    form_elicitation,  # last before the generic ones: it accepts any value that has a response_schema
    breakpoint,
    request,
    raw,  # accepts everything
)


def recognise(interrupt: Interrupt) -> Question:
    """The question in an interrupt. Never raises: an unsupported value becomes a raw question with its problems."""
    value, lost = plain(interrupt.value)
    schema, remarks = _schema(interrupt.response_schema)
    asked = Interrupt(str(interrupt.id), value, schema, (*interrupt.lost, *lost))
    if asked.lost:
        return raw.question(asked, [*asked.lost, *remarks])
    question = next(candidate for dialect in DIALECTS if (candidate := dialect.recognise(asked)) is not None)
    if len(question.actions) > MOST_ACTIONS:
        return raw.too_many(asked, len(question.actions))
    return replace(question, problems=(*question.problems, *remarks, *_unenforceable(question), *_unbound(question)))


def dialect_of(question: Question) -> Dialect:
    return next(dialect for dialect in DIALECTS if question.dialect == dialect.NAME)


def encode(question: Question, verdicts: Sequence[Verdict], *, stringify_args: bool = False) -> Json:
    """The exact value to resume with (for a breakpoint, a `Step`), or `InvalidDecision` naming the field."""
    value = dialect_of(question).encode(question, verdicts)
    if stringify_args:
        value = dialect_of(question).encode(question, stringified(question, verdicts))
    return _fitting(question, value)


def decode(question: Question, value: Json) -> Decoded:
    """The verdicts of an answer from outside the inbox, and its exact form; `InvalidDecision` if it does not parse
    fully."""
    decoded = dialect_of(question).decode(question, value)
    _fitting(question, decoded.value)
    return decoded


def approves(question: Question) -> bool:
    """Whether an answer can let the agent act; true if the question has unparsed fields."""
    asked = question.interrupt
    if asked is None or asked.lost or dialect_of(question).approves(question):
        return True
    return asked.response_schema is not None and takes_boolean(asked.response_schema)


def negative(question: Question, reason: str) -> tuple[Verdict, ...] | None:
    return dialect_of(question).negative(question, reason)


def feedback(question: Question, notes: str) -> tuple[Verdict, ...] | None:
    return dialect_of(question).feedback(question, notes)


def heard_with(question: Question) -> frozenset[Verb]:
    return dialect_of(question).HEARS


def with_text(question: Question, verdicts: Sequence[Verdict], text: str) -> tuple[Verdict, ...]:
    """The verdicts with a text for the agent's model, once: after the first message that it reads."""
    hears = heard_with(question)
    first = next((verdict for verdict in verdicts if verdict.verb in hears), None)
    return tuple(_saying(verdict, text) if verdict is first else verdict for verdict in verdicts)


def _saying(verdict: Verdict, text: str) -> Verdict:
    return replace(verdict, message="\n\n".join(filter(None, (message_of(verdict), text))))


def mismatches(question: Question, value: Json) -> tuple[Problem, ...]:
    """The violations of the interrupt's own `response_schema` in a resume value."""
    schema = question.response_schema
    if schema is None:
        return ()
    from assent.review.model.schemas import validation as schemas  # slow to import, and many agents have no schema

    return schemas.problems(schema, value)


def _fitting(question: Question, value: Json) -> Json:
    if problems := mismatches(question, value):
        raise InvalidDecision(problems=problems)
    return value


def _schema(schema: object) -> tuple[Json, tuple[Problem, ...]]:
    """The response schema as JSON. Anything else is left out: LangGraph itself checks Python types only."""
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
        from assent.review.model.schemas import validation as schemas  # slow to import, and many agents have no schema

        if (defect := schemas.defect(schema)) is not None:
            yield Problem(path, f"{defect}, so answers are not checked against it")
