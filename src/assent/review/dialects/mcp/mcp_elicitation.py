"""LangChain's `MCPAdapter` on behalf of an MCP server: several forms and links in one interrupt, answered by key.

The adapter validates no schema, and the server rejects wrong content only after the call was repeated, so every form is
validated here; content is flat, as MCP requires.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assent.kernel import canonical
from assent.kernel.canonical import Json, join
from assent.review.dialects import raw
from assent.review.dialects.approvals import has_other_keys
from assent.review.dialects.dialect import Decoded
from assent.review.dialects.fields import Fields, repeated
from assent.review.dialects.mcp import elicitation
from assent.review.dialects.verdicts import DECISION, MAYBE_ARGS, RULES, Layout, Objection, pair, uniform
from assent.review.model.questions import Action, Interrupt, ItemType, Question, Verb, Verdict, headline

NAME = "mcp_elicitation"
EXACT = False
HEARS = frozenset[Verb]()

_RULES = {**RULES, Verb.ACCEPT: MAYBE_ARGS}
_FIELDS = ("type", "tool_name", "requests")
_FORM = ("key", "message", "mode", "requested_schema")
_MODES = {"form": ItemType.FORM, "url": ItemType.OAUTH}


def recognise(interrupt: Interrupt) -> Question | None:
    if not isinstance(interrupt.value, dict) or interrupt.value.get("type") != NAME:
        return None
    fields = Fields(interrupt.value)
    tool = fields.text("tool_name")
    requests = fields.each("requests")
    actions = tuple(_action(str(index), tool, request) for index, request in enumerate(requests))
    twice = repeated(action.call_id for action in actions)
    for request, action in zip(requests, actions, strict=True):
        if action.call_id in twice:
            request.fault("key", "is not unique")
    if fields.problems:
        return raw.question(interrupt, fields.problems)
    item_type = ItemType.OAUTH if all(map(_is_link, actions)) else ItemType.FORM
    description = actions[0].description if len(actions) == 1 else None
    return Question(NAME, item_type, headline(tool, "Request"), description, actions, (), interrupt)


def encode(question: Question, verdicts: Sequence[Verdict], layout: Layout = DECISION) -> Json:
    chosen = pair(question, verdicts, _RULES, layout, _content_faults)
    return {"responses": {action.call_id: elicitation.write(verdict) for action, verdict in chosen}}


def decode(question: Question, value: Json) -> Decoded:
    fields = Fields(value)
    responses = fields.inside("responses")
    names = {str(action.call_id): action.key for action in question.actions}
    for name in responses:
        if name not in names:
            responses.fault(name, "is not a key of the question")
    verdicts = [elicitation.read(key, responses.inside(name)) for name, key in names.items()]
    fields.refuse()
    read = tuple(verdict for verdict in verdicts if verdict is not None)
    return Decoded(read, encode(question, read, _layout(list(names))))


def approves(question: Question) -> bool:
    """A link does: following it may authorise the server. Forms do not, unless they have other fields."""
    value = question.value
    more = has_other_keys(value, _FIELDS) or any(has_other_keys(request, _FORM) for request in value["requests"])
    return more or any(map(_is_link, question.actions))


def negative(question: Question, reason: str) -> tuple[Verdict, ...] | None:
    return uniform(question, Verb.DECLINE)


def feedback(question: Question, notes: str) -> None:
    """None: a form cannot be revised."""


def _action(key: str, tool: str, request: Fields) -> Action:
    mode = request.choice("mode", _MODES)
    args = {"url": elicitation.link(request)[0]} if mode == ItemType.OAUTH else {}
    return Action(
        key=key,
        name=tool,
        args=args,
        args_text=canonical.text(args),
        description=request.text("message"),
        allowed=tuple(elicitation.VERBS.values()),
        schema=request.mapping("requested_schema") if mode == ItemType.FORM else None,
        call_id=request.text("key"),
    )


def _layout(names: list[str]) -> Layout:
    return Layout("responses", lambda index: join("responses", names[index]), elicitation.PARTS)


def _is_link(action: Action) -> bool:
    return action.schema is None


def _content_faults(action: Action, verdict: Verdict) -> Iterator[Objection]:
    if verdict.verb != Verb.ACCEPT:
        return
    if _is_link(action):
        if verdict.args is not None:
            yield Objection("args", "is not allowed for a link")
    elif verdict.args is None:
        yield Objection("args", "is required to accept")
    else:
        for name, value in verdict.args.items():
            if not _is_flat(value):
                yield Objection("args", "must be a text, a number, true, false, null or a list of texts", name)


def _is_flat(value: Json) -> bool:
    if isinstance(value, list):
        return all(isinstance(entry, str) for entry in value)
    return not isinstance(value, dict)
