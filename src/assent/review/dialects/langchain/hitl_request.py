"""LangChain's `HumanInTheLoopMiddleware` in its batched mode: one interrupt contains all gated calls of a model turn.

The answers are matched by position. LangGraph stores a wrong count, verb or shape before the middleware reads it, which
breaks the thread permanently; so only an exact answer is accepted.
"""

from __future__ import annotations

from collections.abc import Sequence

from assent.errors import Problem
from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.review.dialects import raw
from assent.review.dialects.dialect import Decoded
from assent.review.dialects.fields import Fields
from assent.review.dialects.langchain import decisions
from assent.review.dialects.verdicts import DECISION, RULES, Layout, pair, uniform
from assent.review.model.questions import Action, Interrupt, ItemType, Question, Verb, Verdict, headline

NAME = "hitl_request"
EXACT = True
HEARS = frozenset({Verb.REJECT, Verb.RESPOND})

_ANSWER = Layout("decisions", lambda index: f"decisions[{index}]", decisions.PARTS)


def recognise(interrupt: Interrupt) -> Question | None:
    value = interrupt.value
    if not isinstance(value, dict) or not ("action_requests" in value or "review_configs" in value):
        return None
    fields, remarks = Fields(value), list[Problem]()
    requests, configs = fields.each("action_requests"), _Configs(fields.each("review_configs"))
    actions = tuple(_action(index, request, configs, remarks) for index, request in enumerate(requests))
    if fields.problems:
        return raw.question(interrupt, fields.problems)
    title = headline(", ".join(action.name for action in actions), "Request")
    description = actions[0].description if len(actions) == 1 else None
    return Question(NAME, ItemType.TOOL, title, description, actions, tuple(remarks), interrupt)


def encode(question: Question, verdicts: Sequence[Verdict], layout: Layout = DECISION) -> Json:
    return {"decisions": [decisions.write(*pairing) for pairing in pair(question, verdicts, RULES, layout)]}


def decode(question: Question, value: Json) -> Decoded:
    fields = Fields(value)
    actions = dict(enumerate(question.actions))
    entries = fields.each("decisions")
    verdicts = [decisions.read(str(index), entry, actions.get(index)) for index, entry in enumerate(entries)]
    fields.refuse()
    read = tuple(verdict for verdict in verdicts if verdict is not None)
    return Decoded(read, encode(question, read, _ANSWER))


def approves(question: Question) -> bool:
    return True


def negative(question: Question, reason: str) -> tuple[Verdict, ...] | None:
    return uniform(question, Verb.REJECT, reason)


def feedback(question: Question, notes: str) -> tuple[Verdict, ...] | None:
    return uniform(question, Verb.REJECT, notes)


def _action(index: int, request: Fields, configs: _Configs, remarks: list[Problem]) -> Action:
    name = request.text("name")
    args = request.mapping("arguments" if "arguments" in request and "args" not in request else "args")
    config = configs.find(index, name)
    if config is None:
        request.fault("name", "has no review config")
    return Action(
        key=str(index),
        name=name,
        args=args,
        args_text=canonical.text(args),
        description=request.optional_text("description"),
        allowed=_allowed(config, remarks) if config else (),
        schema=config.mapping("args_schema") if config and config.get("args_schema") is not None else None,
    )


class _Configs:
    """The review configs: matched to the requests by index and name, else by name."""

    def __init__(self, configs: list[Fields]) -> None:
        self.by_place = {(index, config.text("action_name")): config for index, config in enumerate(configs)}
        self.by_name = {name: config for (_, name), config in reversed(self.by_place.items())}

    def find(self, index: int, name: str) -> Fields | None:
        """The config at the same index if its name matches, else the first with that name."""
        return self.by_place.get((index, name)) or self.by_name.get(name)


def _allowed(config: Fields, remarks: list[Problem]) -> tuple[Verb, ...]:
    """The allowed verbs that are supported; an unknown verb, of a later version, becomes a remark."""
    path = canonical.join(config.path, "allowed_decisions")
    words = config.sequence("allowed_decisions")
    unknown = [word for word in words if not isinstance(word, str) or word not in decisions.VERBS]
    remarks.extend(Problem(path, f"{canonical.text(word)[:80]} is not supported") for word in unknown)
    verbs = tuple(verb for word, verb in decisions.VERBS.items() if word in words)
    if not verbs:
        config.fault("allowed_decisions", "contains no supported decision")
    return verbs
