"""Anything that no other dialect understands: shown as it is, answered with a text or with JSON.

It accepts every value, so nothing an agent asks can get lost. A value that looks like another dialect but breaks its
form ends up here too, with `problems` that say what is wrong, field by field.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from assent.dialects.dialect import Decoded
from assent.dialects.verdicts import DECISION, RULES, TEXT_OR_JSON, Layout, pair
from assent.domain import canonical
from assent.domain.canonical import Json
from assent.domain.questions import (
    TOO_MANY,
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

NAME = "raw"
EXACT = False

MAX_PROBLEMS = 50
_RULES = {**RULES, Verb.RESPOND: TEXT_OR_JSON}
_ANSWER = Layout(whole="", entry=lambda index: "", names={"args": "", "message": "", "verb": "", "key": ""})
_SPEAKING = ("question", "message", "title", "prompt", "task", "query", "description")


def recognise(interrupt: Interrupt) -> Question:
    return question(interrupt)


def question(interrupt: Interrupt, problems: Iterable[Problem] = ()) -> Question:
    value = interrupt.value
    action = Action(
        key="0",
        name="answer",
        args=value,
        args_text=canonical.text(value),
        allowed=(Verb.RESPOND,),
        schema=interrupt.response_schema,
    )
    return Question(
        NAME,
        ItemType.QUESTION,
        _title(value),
        _description(value),
        (action,),
        tuple(problems)[:MAX_PROBLEMS],
        interrupt,
    )


def too_many(interrupt: Interrupt, count: int) -> Question:
    """More than anybody reads. No rule has spoken of what is in it, so none of it is shown and nobody can answer it;
    it can be withdrawn."""
    told = question(Interrupt(interrupt.id, f"Asks about {count} things at once"), [TOO_MANY])
    actions = tuple(replace(action, allowed=()) for action in told.actions)
    return replace(told, actions=actions, interrupt=interrupt)


def encode(question: Question, verdicts: Sequence[Verdict], layout: Layout = DECISION) -> Json:
    [(_, verdict)] = pair(question, verdicts, _RULES, layout)
    return verdict.message if verdict.args is None else verdict.args


def decode(question: Question, value: Json) -> Decoded:
    if value is None or value == {}:
        raise InvalidDecision([Problem("", "null and {} are no answers")])
    text = isinstance(value, str) and bool(value.strip())
    verdict = Verdict("0", Verb.RESPOND, message=value) if text else Verdict("0", Verb.RESPOND, args=value)
    return Decoded((verdict,), encode(question, (verdict,), _ANSWER))


def negative(question: Question, reason: str) -> None:
    """None: what "no" looks like to this agent is not known."""


def feedback(question: Question, notes: str) -> None:
    """None: a text would be taken for the answer."""


def _title(value: Json) -> str:
    if isinstance(value, str):
        return headline(value)
    return headline(_spoken(value) or "", "Input needed")


def _description(value: Json) -> str | None:
    return value if isinstance(value, str) else _spoken(value)


def _spoken(value: Json) -> str | None:
    """The sentence in an object that was probably written for a person."""
    found = value if isinstance(value, dict) else {}
    return next((found[key] for key in _SPEAKING if isinstance(found.get(key), str)), None)
