"""A form: `{"kind": "form_elicitation", …}` with its schema, or any value raised with a `response_schema`.

The first is answered in MCP's format, `{"action": "accept", "content": …}`, and can be declined; the second takes the
bare value that fits the schema, and cannot be rejected.
"""

from __future__ import annotations

from collections.abc import Sequence

from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.review.dialects import raw
from assent.review.dialects.approvals import contains_call, has_other_keys
from assent.review.dialects.dialect import Decoded
from assent.review.dialects.fields import Fields
from assent.review.dialects.langchain import tool_approval
from assent.review.dialects.mcp import elicitation
from assent.review.dialects.verdicts import ANY_VALUE, DECISION, RULES, Layout, pair, uniform
from assent.review.model.questions import Action, Interrupt, ItemType, Question, Verb, Verdict, headline

NAME = "form_elicitation"
EXACT = False
HEARS = frozenset[Verb]()

_FIELDS = ("kind", "message", "schema")
_BARE_RULES = {**RULES, Verb.ACCEPT: ANY_VALUE}
_ANSWER = Layout("", lambda index: "", elicitation.PARTS)
_BARE_ANSWER = Layout("", lambda index: "", {"args": "", "key": "", "verb": ""})


def recognise(interrupt: Interrupt) -> Question | None:
    if isinstance(interrupt.value, dict) and interrupt.value.get("kind") == NAME:
        return _form(interrupt)
    return None if interrupt.response_schema is None else _bare(interrupt)


def encode(question: Question, verdicts: Sequence[Verdict], layout: Layout = DECISION) -> Json:
    bare = _is_bare(question)
    [(_, verdict)] = pair(question, verdicts, _BARE_RULES if bare else RULES, layout)
    return verdict.args if bare else elicitation.write(verdict)


def decode(question: Question, value: Json) -> Decoded:
    if _is_bare(question):
        verdicts = (Verdict("0", Verb.ACCEPT, args=value),)
        return Decoded(verdicts, encode(question, verdicts, _BARE_ANSWER))
    fields = Fields(value)
    verdict = elicitation.read("0", fields)
    fields.refuse()
    read = () if verdict is None else (verdict,)
    return Decoded(read, encode(question, read, _ANSWER))


def approves(question: Question) -> bool:
    """Only if a form is part of a tool call, or accepts the decisions about one."""
    if _is_bare(question):
        return contains_call(question.value) or any(tool_approval.decisions_in(question.response_schema))
    return has_other_keys(question.value, _FIELDS)


def negative(question: Question, reason: str) -> tuple[Verdict, ...] | None:
    return uniform(question, Verb.DECLINE)


def feedback(question: Question, notes: str) -> None:
    """None: a form cannot be revised."""


def _is_bare(question: Question) -> bool:
    return not (isinstance(question.value, dict) and question.value.get("kind") == NAME)


def _form(interrupt: Interrupt) -> Question:
    fields = Fields(interrupt.value)
    message, schema = fields.text("message"), fields.mapping("schema")
    if fields.problems:
        return raw.question(interrupt, fields.problems)
    allowed = tuple(elicitation.VERBS.values())
    action = Action("0", NAME, {}, "{}", message, allowed, schema)
    return Question(NAME, ItemType.FORM, headline(message, "Form"), message, (action,), (), interrupt)


def _bare(interrupt: Interrupt) -> Question:
    """The value describes the form, so it is shown as the arguments."""
    plain = raw.question(interrupt)
    args_text = canonical.text(interrupt.value)
    schema = interrupt.response_schema
    action = Action("0", NAME, interrupt.value, args_text, plain.description, (Verb.ACCEPT,), schema)
    return Question(NAME, ItemType.FORM, plain.title, plain.description, (action,), (), interrupt)
