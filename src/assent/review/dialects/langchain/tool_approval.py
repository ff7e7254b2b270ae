"""LangChain's `HumanInTheLoopMiddleware` in its per-call mode: one interrupt per gated tool call.

Only the interrupt's `response_schema` lists the allowed decisions; it also pins the tool's name and describes its
arguments. If a server omits the schema, all four decisions are offered: LangGraph validates the answer against the real
schema before it stores anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.review.dialects import raw
from assent.review.dialects.dialect import Decoded
from assent.review.dialects.fields import Fields
from assent.review.dialects.langchain import decisions
from assent.review.dialects.verdicts import DECISION, EDIT_SAME_TOOL, RULES, Layout, pair, uniform
from assent.review.model.questions import Action, Interrupt, ItemType, Question, Verb, Verdict, headline

NAME = "tool_approval"
EXACT = True
HEARS = frozenset({Verb.REJECT, Verb.RESPOND})

_RULES = {**RULES, Verb.EDIT: EDIT_SAME_TOOL}
_ANSWER = Layout("", lambda index: "", decisions.parts())
_MAX_HOPS = 8


def recognise(interrupt: Interrupt) -> Question | None:
    if not isinstance(interrupt.value, dict) or interrupt.value.get("type") != NAME:
        return None
    fields = Fields(interrupt.value)
    name, args = fields.text("name"), fields.mapping("args")
    branches = dict(decisions_in(interrupt.response_schema))
    action = Action(
        key="0",
        name=name,
        args=args,
        args_text=canonical.text(args),
        description=fields.optional_text("description"),
        allowed=tuple(verb for verb in decisions.VERBS.values() if not branches or verb in branches),
        schema=_args_schema(branches.get(Verb.EDIT), interrupt.response_schema) or _schema_in(interrupt.value),
        call_id=fields.text("tool_call_id"),
    )
    if fields.problems:
        return raw.question(interrupt, fields.problems)
    return Question(NAME, ItemType.TOOL, headline(name, "Request"), action.description, (action,), (), interrupt)


def encode(question: Question, verdicts: Sequence[Verdict], layout: Layout = DECISION) -> Json:
    [pairing] = pair(question, verdicts, _RULES, layout)
    return decisions.write(*pairing)


def decode(question: Question, value: Json) -> Decoded:
    fields = Fields(value)
    verdict = decisions.read("0", fields, question.actions[0])
    fields.refuse()
    read = () if verdict is None else (verdict,)
    return Decoded(read, encode(question, read, _ANSWER))


def approves(question: Question) -> bool:
    return True


def negative(question: Question, reason: str) -> tuple[Verdict, ...] | None:
    return uniform(question, Verb.REJECT, reason)


def feedback(question: Question, notes: str) -> tuple[Verdict, ...] | None:
    return uniform(question, Verb.REJECT, notes)


def decisions_in(schema: Json) -> Iterator[tuple[Verb, Json]]:
    """The decisions that the schema describes: its branches, or the schema itself."""
    root = _resolved(schema, schema)
    for option in _listed(root, "oneOf") or _listed(root, "anyOf") or [root]:
        branch = _resolved(option, schema)
        kind = _resolved(_property(branch, "type"), schema)
        for word in [kind.get("const"), *_listed(kind, "enum")]:
            if isinstance(word, str) and word in decisions.VERBS:
                yield decisions.VERBS[word], branch


def _listed(schema: dict[str, Json], key: str) -> list[Json]:
    options = schema.get(key)
    return options if isinstance(options, list) else []


def _args_schema(branch: Json, root: Json) -> Json:
    """The schema of an edit's arguments, self-contained."""
    if branch is None:
        return None
    edited = _resolved(_property(branch, "edited_action"), root)
    schema = _resolved(_property(edited, "args"), root)
    definitions = root.get("$defs")
    return {**schema, "$defs": definitions} if schema and definitions else schema or None


def _schema_in(value: dict[str, Json]) -> Json:
    """The schema in the question itself: the gate adds it if the arguments cannot be edited."""
    schema = value.get("args_schema")
    return schema if isinstance(schema, dict) else None


def _property(schema: Json, name: str) -> Json:
    properties = schema.get("properties")
    return properties.get(name) if isinstance(properties, dict) else None


def _resolved(schema: Json, root: Json) -> dict[str, Json]:
    """Follows a chain of local references; returns an empty schema for a broken one."""
    for _ in range(_MAX_HOPS):
        if not isinstance(schema, dict):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        schema = _at(root, reference)
    return {}


def _at(root: Json, reference: str) -> Json:
    if not reference.startswith("#/"):
        return None
    target = root
    for step in reference[2:].split("/"):
        target = target.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
    return target
