"""The fallback dialect: shows any value unchanged; answered with a text or with JSON.

It accepts every value, so no question gets lost. A malformed value of another dialect ends up here too, with a list of
`problems` by field.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from assent.errors import InvalidDecision, Problem
from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.review.dialects.approvals import is_packed
from assent.review.dialects.dialect import Decoded
from assent.review.dialects.verdicts import DECISION, RULES, TEXT_OR_JSON, Layout, pair
from assent.review.model.questions import TOO_MANY, Action, Interrupt, ItemType, Question, Verb, Verdict, headline

NAME = "raw"
EXACT = False
HEARS = frozenset[Verb]()

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
    """Replaces a question with more actions than the limit. No rule has checked its content, so nothing of it is shown
    and it cannot be answered; it can be withdrawn."""
    summary = question(Interrupt(interrupt.id, f"Asks about {count} actions at once"), [TOO_MANY])
    actions = tuple(replace(action, allowed=()) for action in summary.actions)
    return replace(summary, actions=actions, interrupt=interrupt)


def encode(question: Question, verdicts: Sequence[Verdict], layout: Layout = DECISION) -> Json:
    [(_, verdict)] = pair(question, verdicts, _RULES, layout)
    return verdict.message if verdict.args is None else verdict.args


def decode(question: Question, value: Json) -> Decoded:
    if value is None or value == {}:
        raise InvalidDecision(problems=[Problem("", "null and {} are no answers")])
    text = isinstance(value, str) and bool(value.strip())
    verdict = Verdict("0", Verb.RESPOND, message=value) if text else Verdict("0", Verb.RESPOND, args=value)
    return Decoded((verdict,), encode(question, (verdict,), _ANSWER))


def approves(question: Question) -> bool:
    """Only a text or a number is certainly a question; objects and lists can be anything, including calls."""
    value = question.value
    is_text = isinstance(value, (str, int, float)) and not isinstance(value, bool) and not is_packed(value)
    return bool(question.problems) or not is_text


def negative(question: Question, reason: str) -> None:
    """None: the agent's format of a rejection is unknown."""


def feedback(question: Question, notes: str) -> None:
    """None: the agent would read the text as the answer."""


def _title(value: Json) -> str:
    if isinstance(value, str):
        return headline(value)
    return headline(_spoken(value) or "", "Input needed")


def _description(value: Json) -> str | None:
    return value if isinstance(value, str) else _spoken(value)


def _spoken(value: Json) -> str | None:
    """The text in an object that was probably written for a person."""
    fields = value if isinstance(value, dict) else {}
    return next((fields[key] for key in _SPEAKING if isinstance(fields.get(key), str)), None)
