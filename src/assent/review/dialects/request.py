"""A request through the API: any type, any payload, and optional actions.

No interrupt is recognised as a request. Its answer goes to the requester unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assent.errors import InvalidDecision, Problem
from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.review.dialects.dialect import Decoded
from assent.review.dialects.langchain.decisions import write
from assent.review.dialects.verdicts import RULES, pair, uniform
from assent.review.model.questions import Action, Interrupt, ItemType, Question, Verb, Verdict, headline

NAME = "request"
EXACT = True
HEARS = frozenset[Verb]()

ALLOWED = (Verb.APPROVE, Verb.EDIT, Verb.REJECT)
POSSIBLE = (*ALLOWED, Verb.RESPOND, Verb.IGNORE)


def question(asked: Mapping[str, Any]) -> Question:
    """The question in a validated request: without actions, the payload is the only action."""
    entries = asked.get("actions") or [{"name": asked["type"], "args": asked.get("payload")}]
    actions = tuple(_action(index, entry) for index, entry in enumerate(entries))
    interrupt = Interrupt(NAME, asked)
    return Question(NAME, ItemType.TOOL, headline(asked["title"]), asked.get("description"), actions, (), interrupt)


def recognise(interrupt: Interrupt) -> None:
    """None: an interrupt is never a request."""


def encode(question: Question, verdicts: Sequence[Verdict]) -> Json:
    return {
        "decisions": [
            {"key": action.key, **write(action, verdict)} for action, verdict in pair(question, verdicts, RULES)
        ]
    }


def decode(question: Question, value: Json) -> Decoded:
    raise InvalidDecision(problems=[Problem("", "a request takes no answer from a run: decide it in the inbox")])


def approves(question: Question) -> bool:
    return True


def negative(question: Question, reason: str) -> tuple[Verdict, ...] | None:
    return uniform(question, Verb.REJECT, reason)


def feedback(question: Question, notes: str) -> None:
    """None: the item is held, and the requester resubmits."""


def _action(index: int, given: Mapping[str, Any]) -> Action:
    args = given.get("args")
    allowed = tuple(map(Verb, given.get("allowed") or ALLOWED))
    return Action(
        key=str(given.get("key") or index),
        name=given["name"],
        args=args,
        args_text=canonical.text(args),
        description=given.get("description"),
        allowed=allowed if isinstance(args, dict) else tuple(verb for verb in allowed if verb is not Verb.EDIT),
        schema=given.get("schema"),
    )
