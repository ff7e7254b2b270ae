"""LangChain's `HumanInTheLoopMiddleware` in its per-call mode: one interrupt per gated tool call.

What is allowed stands only in the interrupt's `response_schema`, which also pins the tool's name and describes its
arguments. Where a server passes interrupts on without their schema, all four decisions are offered: LangGraph checks
the answer against the real schema before it stores anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assent.dialects import decisions, raw
from assent.dialects.dialect import Decoded
from assent.dialects.fields import Fields
from assent.dialects.verdicts import DECISION, EDIT_SAME_TOOL, RULES, Layout, pair, uniform
from assent.domain import canonical
from assent.domain.canonical import Json
from assent.domain.questions import Action, Interrupt, ItemType, Question, Verb, Verdict, headline

NAME = "tool_approval"
EXACT = True

_RULES = {**RULES, Verb.EDIT: EDIT_SAME_TOOL}
_ANSWER = Layout("", lambda index: "", decisions.PARTS)
_MAX_HOPS = 8


def recognise(interrupt: Interrupt) -> Question | None:
    if not isinstance(interrupt.value, dict) or interrupt.value.get("type") != NAME:
        return None
    fields = Fields(interrupt.value)
    name, args = fields.text("name"), fields.mapping("args")
    branches = dict(_branches(interrupt.response_schema))
    action = Action(
        key="0",
        name=name,
        args=args,
        args_text=canonical.text(args),
        description=fields.optional_text("description"),
        allowed=tuple(verb for verb in decisions.VERBS.values() if not branches or verb in branches),
        schema=_args_schema(branches.get(Verb.EDIT), interrupt.response_schema),
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


def negative(question: Question, reason: str) -> tuple[Verdict, ...] | None:
    return uniform(question, Verb.REJECT, reason)


def feedback(question: Question, notes: str) -> tuple[Verdict, ...] | None:
    return uniform(question, Verb.REJECT, notes)


def _branches(schema: Json) -> Iterator[tuple[Verb, Json]]:
    """The decisions that the schema describes: one of several, or the whole of it."""
    root = _resolved(schema, schema)
    for option in _listed(root, "oneOf") or _listed(root, "anyOf") or [root]:
        branch = _resolved(option, schema)
        kind = _resolved(_property(branch, "type"), schema)
        for word in [kind.get("const"), *_listed(kind, "enum")]:
            if isinstance(word, str) and word in decisions.VERBS:
                yield decisions.VERBS[word], branch


def _listed(schema: dict[str, Json], key: str) -> list[Json]:
    found = schema.get(key)
    return found if isinstance(found, list) else []


def _args_schema(branch: Json, root: Json) -> Json:
    """The schema of an edit's arguments, standing by itself."""
    if branch is None:
        return None
    edited = _resolved(_property(branch, "edited_action"), root)
    found = _resolved(_property(edited, "args"), root)
    definitions = root.get("$defs")
    return {**found, "$defs": definitions} if found and definitions else found or None


def _property(schema: Json, name: str) -> Json:
    properties = schema.get("properties")
    return properties.get(name) if isinstance(properties, dict) else None


def _resolved(schema: Json, root: Json) -> dict[str, Json]:
    """The schema behind a chain of local references; an empty one where there is none."""
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
    found = root
    for step in reference[2:].split("/"):
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found
