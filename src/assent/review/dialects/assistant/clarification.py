"""The assistant's text questions: one action per question, each answered with a text under its `call_id`."""

from __future__ import annotations

from collections.abc import Sequence

from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.review.dialects.approvals import has_other_keys
from assent.review.dialects.assistant import calls
from assent.review.dialects.dialect import Decoded
from assent.review.dialects.fields import Fields
from assent.review.dialects.verdicts import DECISION, RULES, Layout, pair
from assent.review.model.questions import Action, Interrupt, ItemType, Question, Verb, Verdict, headline

NAME = "clarification"
EXACT = False
HEARS = frozenset[Verb]()

_FIELDS = ("kind", "clarifications")
_ENTRY = ("call_id", "question", "context")
_ANSWER = Layout("responses", lambda index: f"responses[{index}]", {"key": "call_id", "message": "response"})


def recognise(interrupt: Interrupt) -> Question | None:
    def title(actions: tuple[Action, ...]) -> str:
        return headline(actions[0].description or "")

    return calls.recognise(interrupt, NAME, "clarifications", ItemType.QUESTION, _action, title)


def encode(question: Question, verdicts: Sequence[Verdict], layout: Layout = DECISION) -> Json:
    chosen = pair(question, verdicts, RULES, layout)
    return {"responses": [{"call_id": action.call_id, "response": verdict.message} for action, verdict in chosen]}


def decode(question: Question, value: Json) -> Decoded:
    fields = Fields(value)
    keys = calls.keys(question)
    verdicts = tuple(
        Verdict(calls.key(entry, keys), Verb.RESPOND, message=entry.text("response"))
        for entry in fields.each("responses")
    )
    fields.refuse()
    return Decoded(verdicts, encode(question, verdicts, _ANSWER))


def approves(question: Question) -> bool:
    """Only if it has fields besides the questions."""
    value = question.value
    return has_other_keys(value, _FIELDS) or any(has_other_keys(entry, _ENTRY) for entry in value["clarifications"])


def negative(question: Question, reason: str) -> None:
    """None: a question can only be answered."""


def feedback(question: Question, notes: str) -> None:
    """None: the agent would read the text as the answer."""


def _action(key: str, asked: Fields) -> Action:
    question, context = asked.text("question"), asked.optional_text("context")
    args = {"question": question, "context": context}
    return Action(
        key=key,
        name=NAME,
        args=args,
        args_text=canonical.text(args),
        description=question,
        allowed=(Verb.RESPOND,),
        call_id=asked.text("call_id"),
    )
