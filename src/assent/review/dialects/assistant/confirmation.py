"""The assistant's tool calls that need approval.

Each is approved, approved with edited arguments, or rejected with feedback, under its `call_id`.
"""

from __future__ import annotations

from collections.abc import Sequence

from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.review.dialects.assistant import calls
from assent.review.dialects.dialect import Decoded
from assent.review.dialects.fields import Fields
from assent.review.dialects.verdicts import DECISION, EDIT_SAME_TOOL, REASON_NEEDED, RULES, Layout, pair, uniform
from assent.review.model.questions import Action, Interrupt, ItemType, Question, Verb, Verdict, headline

NAME = "confirmation"
EXACT = False
HEARS = frozenset({Verb.REJECT})

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
    approvals = [(calls.key(entry, keys), entry) for entry in fields.each("approvals")]
    verdicts = tuple(_verdict(key, entry, actions.get(key)) for key, entry in approvals)
    fields.refuse()
    return Decoded(verdicts, encode(question, verdicts, _ANSWER))


def approves(question: Question) -> bool:
    return True


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
    """Arguments equal to the request are an approval; a text beside an approval is refused, as it would get lost."""
    message = approval.optional_text("feedback")
    args = None if approval.get("arguments") is None else approval.mapping("arguments")
    if not approval.flag("approved"):
        return Verdict(key, Verb.REJECT, args=args, message=message)
    if args is None or (action is not None and canonical.same(args, action.args)):
        return Verdict(key, Verb.APPROVE, message=message)
    return Verdict(key, Verb.EDIT, args=args, message=message)
