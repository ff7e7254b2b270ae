"""The assistant's questions in words: one action per question, each answered with a text under its `call_id`."""

from __future__ import annotations

from collections.abc import Sequence

from assent.dialects import calls
from assent.dialects.dialect import Decoded
from assent.dialects.fields import Fields
from assent.dialects.verdicts import DECISION, RULES, Layout, pair
from assent.domain import canonical
from assent.domain.canonical import Json
from assent.domain.questions import Action, Interrupt, ItemType, Question, Verb, Verdict, headline

NAME = "clarification"
EXACT = False

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


def negative(question: Question, reason: str) -> None:
    """None: a question can only be answered."""


def feedback(question: Question, notes: str) -> None:
    """None: a text would be taken for the answer."""


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
