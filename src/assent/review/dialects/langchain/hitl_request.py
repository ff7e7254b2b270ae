"""LangChain's `HumanInTheLoopMiddleware` in its batched mode: one interrupt contains all gated calls of a model turn.

The answers are matched by position. LangGraph stores a wrong count, verb or shape before the middleware reads it, which
breaks the thread permanently; so only an exact answer is accepted. LangChain for JavaScript has names of its own for
the fields, in questions and in answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from assent.errors import Problem
from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.review.dialects import raw
from assent.review.dialects.dialect import Decoded
from assent.review.dialects.fields import Fields
from assent.review.dialects.langchain import decisions
from assent.review.dialects.verdicts import DECISION, RULES, Layout, pair, uniform
from assent.review.model.grants import marks_of
from assent.review.model.questions import Action, Interrupt, ItemType, Question, Verb, Verdict, headline

NAME = "hitl_request"
EXACT = True
HEARS = frozenset({Verb.REJECT, Verb.RESPOND})


@dataclass(frozen=True, slots=True)
class _Spelling:
    """The names of the fields."""

    requests: str
    configs: str
    tool: str
    allowed: str
    schema: str
    edited: str

    @property
    def answer(self) -> Layout:
        return Layout("decisions", lambda index: f"decisions[{index}]", decisions.parts(self.edited))


_PYTHON = _Spelling(
    "action_requests", "review_configs", "action_name", "allowed_decisions", "args_schema", decisions.EDITED
)
_JAVASCRIPT = _Spelling(
    "actionRequests", "reviewConfigs", "actionName", "allowedDecisions", "argsSchema", "editedAction"
)


def recognise(interrupt: Interrupt) -> Question | None:
    value = interrupt.value
    spelling = _spelling(value)
    if spelling is None:
        return None
    fields, remarks = Fields(value), list[Problem]()
    requests, configs = fields.each(spelling.requests), _Configs(fields.each(spelling.configs), spelling)
    actions = tuple(_action(index, request, configs, remarks) for index, request in enumerate(requests))
    if fields.problems:
        return raw.question(interrupt, fields.problems)
    if len(actions) == 1 and (marks := marks_of(value, interrupt.response_schema)) is not None:
        actions = (replace(actions[0], call_id=str(marks.get("tool_call_id"))),)
    title = headline(", ".join(action.name for action in actions), "Request")
    description = actions[0].description if len(actions) == 1 else None
    return Question(NAME, ItemType.TOOL, title, description, actions, tuple(remarks), interrupt)


def encode(question: Question, verdicts: Sequence[Verdict], layout: Layout = DECISION) -> Json:
    paired, edited = pair(question, verdicts, RULES, layout), _spelled(question).edited
    return {"decisions": [decisions.write(action, verdict, edited) for action, verdict in paired]}


def decode(question: Question, value: Json) -> Decoded:
    fields, spelling = Fields(value), _spelled(question)
    actions = dict(enumerate(question.actions))
    entries = enumerate(fields.each("decisions"))
    verdicts = [decisions.read(str(index), entry, actions.get(index), spelling.edited) for index, entry in entries]
    fields.refuse()
    read = tuple(verdict for verdict in verdicts if verdict is not None)
    return Decoded(read, encode(question, read, spelling.answer))


def approves(question: Question) -> bool:
    return True


def negative(question: Question, reason: str) -> tuple[Verdict, ...] | None:
    return uniform(question, Verb.REJECT, reason)


def feedback(question: Question, notes: str) -> tuple[Verdict, ...] | None:
    return uniform(question, Verb.REJECT, notes)


def _spelling(value: Json) -> _Spelling | None:
    named = value if isinstance(value, dict) else {}
    spellings = (_PYTHON, _JAVASCRIPT)
    return next((known for known in spellings if known.requests in named or known.configs in named), None)


def _spelled(question: Question) -> _Spelling:
    asked = question.interrupt
    return (_spelling(asked.value) if asked else None) or _PYTHON


def _action(index: int, request: Fields, configs: _Configs, remarks: list[Problem]) -> Action:
    name = request.text("name")
    args = request.mapping("arguments" if "arguments" in request and "args" not in request else "args")
    config, spelling = configs.find(index, name), configs.spelling
    if config is None:
        request.fault("name", "has no review config")
    return Action(
        key=str(index),
        name=name,
        args=args,
        args_text=canonical.text(args),
        description=request.optional_text("description"),
        allowed=_allowed(config, spelling.allowed, remarks) if config else (),
        schema=config.mapping(spelling.schema) if config and config.get(spelling.schema) is not None else None,
    )


class _Configs:
    """The review configs: matched to the requests by index and name, else by name."""

    def __init__(self, configs: list[Fields], spelling: _Spelling) -> None:
        self.spelling = spelling
        self.by_place = {(index, config.text(spelling.tool)): config for index, config in enumerate(configs)}
        self.by_name = {name: config for (_, name), config in reversed(self.by_place.items())}

    def find(self, index: int, name: str) -> Fields | None:
        """The config at the same index if its name matches, else the first with that name."""
        return self.by_place.get((index, name)) or self.by_name.get(name)


def _allowed(config: Fields, field: str, remarks: list[Problem]) -> tuple[Verb, ...]:
    """The allowed verbs that are supported; an unknown verb, of a later version, becomes a remark."""
    path = canonical.join(config.path, field)
    words = config.sequence(field)
    unknown = [word for word in words if not isinstance(word, str) or word not in decisions.VERBS]
    remarks.extend(Problem(path, f"{canonical.text(word)[:80]} is not supported") for word in unknown)
    verbs = tuple(verb for word, verb in decisions.VERBS.items() if word in words)
    if not verbs:
        config.fault(field, "contains no supported decision")
    return verbs
