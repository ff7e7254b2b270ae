"""The assistant's tool calls that need a person.

Each is approved, approved with other arguments, or rejected with feedback, under its `call_id`.
"""

from __future__ import annotations

from collections.abc import Sequence

from assent.dialects import calls
from assent.dialects.dialect import Decoded
from assent.dialects.fields import Fields
from assent.dialects.verdicts import DECISION, EDIT_SAME_TOOL, REASON_NEEDED, RULES, Layout, pair, uniform
from assent.domain import canonical
from assent.domain.canonical import Json
from assent.domain.questions import Action, Interrupt, ItemType, Question, Verb, Verdict, headline

NAME = "confirmation"
EXACT = False

_RULES = {**RULES, Verb.EDIT: EDIT_SAME_TOOL, Verb.REJECT: REASON_NEEDED}
_PARTS = {"key": "call_id", "verb": "approved", "args": "arguments", "message": "feedback"}
_ANSWER = Layout("approvals", lambda index: f"approvals[{index}]", _PARTS)


def recognise(interrupt: Interrupt) -> Question | None:
    def title(actions: tuple[Action, ...]) -> str:
        return headline(", ".join(action.name for action in actions), "Request")

    return calls.recognise(interrupt, NAME, "tool_calls", ItemType.TOOL, _action, title)


def encode(question: Question, verdicts: Sequence[Verdict], layout: Layout = DECISION) -> Json:
    return {"approvals": [_approval(*pairing) for pairing in pair(question, verdicts, _RULES, layout)]}


def decode(question: Question, value: Json) -> Decoded:
    fields = Fields(value)
    keys = calls.keys(question)
    actions = {action.key: action for action in question.actions}
    found = [(calls.key(entry, keys), entry) for entry in fields.each("approvals")]
    verdicts = tuple(_verdict(key, entry, actions.get(key)) for key, entry in found)
    fields.refuse()
    return Decoded(verdicts, encode(question, verdicts, _ANSWER))


def negative(question: Question, reason: str) -> tuple[Verdict, ...] | None:
    return uniform(question, Verb.REJECT, reason)


def feedback(question: Question, notes: str) -> tuple[Verdict, ...] | None:
    return uniform(question, Verb.REJECT, notes)


def _action(key: str, asked: Fields) -> Action:
    args = asked.mapping("arguments")
    return Action(
        key=key,
        name=asked.text("tool_name"),
        args=args,
        args_text=canonical.text(args),
        description=asked.optional_text("description"),
        allowed=(Verb.APPROVE, Verb.EDIT, Verb.REJECT),
        schema=asked.mapping("args_schema") if asked.get("args_schema") is not None else None,
        call_id=asked.text("call_id"),
    )


def _approval(action: Action, verdict: Verdict) -> Json:
    if verdict.verb == Verb.REJECT:
        return {"call_id": action.call_id, "approved": False, "feedback": verdict.message}
    if verdict.verb == Verb.EDIT:
        return {"call_id": action.call_id, "approved": True, "arguments": verdict.args}
    return {"call_id": action.call_id, "approved": True}


def _verdict(key: str, approval: Fields, action: Action | None) -> Verdict:
    """Arguments that repeat the request are an approval; a text beside an approval is refused, as it would get lost."""
    message = approval.optional_text("feedback")
    args = None if approval.get("arguments") is None else approval.mapping("arguments")
    if not approval.flag("approved"):
        return Verdict(key, Verb.REJECT, args=args, message=message)
    if args is None or (action is not None and canonical.same(args, action.args)):
        return Verdict(key, Verb.APPROVE, message=message)
    return Verdict(key, Verb.EDIT, args=args, message=message)
