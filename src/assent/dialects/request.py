"""A request made through the API: any type, any payload, with actions where the requester names some.

Nothing is ever recognised as one: no interrupt asks this way. Its answer goes to the requester as it was decided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assent.dialects.decisions import write
from assent.dialects.dialect import Decoded
from assent.dialects.verdicts import RULES, pair, uniform
from assent.domain import canonical
from assent.domain.canonical import Json
from assent.domain.questions import (
    Action,
    Interrupt,
    InvalidDecision,
    ItemType,
    Problem,
    Question,
    Verb,
    Verdict,
    headline,
)

NAME = "request"
EXACT = True

ALLOWED = (Verb.APPROVE, Verb.EDIT, Verb.REJECT)
POSSIBLE = (*ALLOWED, Verb.RESPOND, Verb.IGNORE)


def question(asked: Mapping[str, Any]) -> Question:
    """The question in a request, which its route has checked: without actions, the payload is the one to decide."""
    given = asked.get("actions") or [{"name": asked["type"], "args": asked.get("payload")}]
    actions = tuple(_action(index, one) for index, one in enumerate(given))
    interrupt = Interrupt(NAME, asked)
    return Question(NAME, ItemType.TOOL, headline(asked["title"]), asked.get("description"), actions, (), interrupt)


def recognise(interrupt: Interrupt) -> None:
    """None: see above."""


def encode(question: Question, verdicts: Sequence[Verdict]) -> Json:
    return {"decisions": [{"key": action.key, **write(action, one)} for action, one in pair(question, verdicts, RULES)]}


def decode(question: Question, value: Json) -> Decoded:
    raise InvalidDecision([Problem("", "a request takes no answer from a run: decide it in the inbox")])


def negative(question: Question, reason: str) -> tuple[Verdict, ...] | None:
    return uniform(question, Verb.REJECT, reason)


def feedback(question: Question, notes: str) -> None:
    """None: it is held, and the requester resubmits."""


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
