"""The Agent Inbox dialect: `interrupt(HumanInterrupt)`, a list of them, or the JSON text of either.

The flags of `config` are the allowed verbs. The answer is always a list with one `HumanResponse` per request, so
`interrupt(request)[0]["type"]` works; `accept` returns the action request exactly as it was asked.
"""

from collections.abc import Sequence
from typing import (
    Any,
    Literal,
    NotRequired,  # pydantic refuses typing.TypedDict before Python 3.12
)

from typing_extensions import TypedDict

from assent.errors import InvalidDecision, Problem
from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.review.dialects import raw
from assent.review.dialects.approvals import has_other_keys
from assent.review.dialects.dialect import Decoded
from assent.review.dialects.fields import Fields, entries, kind
from assent.review.dialects.verdicts import DECISION, RULES, Layout, pair, uniform
from assent.review.model.questions import Action, Interrupt, ItemType, Question, Verb, Verdict, headline

NAME = "human_interrupt"
EXACT = False
HEARS = frozenset({Verb.RESPOND})


class HumanInterruptConfig(TypedDict):
    """The verbs that the reviewer may use."""

    allow_ignore: bool
    allow_respond: bool
    allow_edit: bool
    allow_accept: bool


class ActionRequest(TypedDict):
    """The agent's intended action. `action` is the title of the item."""

    action: str
    args: dict[str, Any]


class HumanInterrupt(TypedDict):
    """The value to pass to `interrupt()`. `description` is markdown."""

    action_request: ActionRequest
    config: HumanInterruptConfig
    description: NotRequired[str | None]


class HumanResponse(TypedDict):
    """The result of `interrupt()`, in a list. `args`: the request (accept, edit), a text (response), null (ignore)."""

    type: Literal["accept", "ignore", "response", "edit"]
    args: str | ActionRequest | None


_FLAGS = {
    "allow_accept": Verb.APPROVE,
    "allow_edit": Verb.EDIT,
    "allow_respond": Verb.RESPOND,
    "allow_ignore": Verb.IGNORE,
}
_TYPES = {"accept": Verb.APPROVE, "edit": Verb.EDIT, "response": Verb.RESPOND, "ignore": Verb.IGNORE}
_REQUEST = ("action_request", "config", "description")
_ACTION = ("action", "args")
_HARMLESS = {Verb.RESPOND, Verb.IGNORE}
_ANSWER = Layout("", lambda index: f"[{index}]", {"key": "", "verb": "type", "args": "args.args", "message": "args"})


def recognise(interrupt: Interrupt) -> Question | None:
    try:
        value = _unwrapped(interrupt.value)
    except canonical.JsonError as error:
        return raw.question(interrupt, [Problem(error.path, error.reason)])
    requests = value if isinstance(value, list) else [value]
    if not any(map(_is_meant, requests)):
        return None
    problems: list[Problem] = []
    remarks: list[Problem] = []
    fields = entries(value, "", problems) if isinstance(value, list) else [Fields(value, "", problems)]
    actions = tuple(_action(str(index), request, remarks) for index, request in enumerate(fields))
    if problems:
        return raw.question(interrupt, problems)
    title = headline(", ".join(action.name for action in actions), "Request")
    description = actions[0].description if len(actions) == 1 else None
    return Question(NAME, ItemType.TOOL, title, description, actions, tuple(remarks), interrupt)


def encode(question: Question, verdicts: Sequence[Verdict], layout: Layout = DECISION) -> Json:
    value = _unwrapped(question.value)
    requests = value if isinstance(value, list) else [value]
    chosen = pair(question, verdicts, RULES, layout)
    return [_response(request["action_request"], *pairing) for request, pairing in zip(requests, chosen, strict=True)]


def decode(question: Question, value: Json) -> Decoded:
    if not isinstance(value, list):
        raise InvalidDecision(
            problems=[Problem("", f"must be a list with one response per request, not {kind(value)}")]
        )
    problems: list[Problem] = []
    actions = dict(enumerate(question.actions))
    responses = entries(value, "", problems)
    verdicts = [_verdict(str(index), response, actions.get(index)) for index, response in enumerate(responses)]
    if problems:
        raise InvalidDecision(problems=problems)
    read = tuple(verdict for verdict in verdicts if verdict is not None)
    return Decoded(read, encode(question, read, _ANSWER))


def approves(question: Question) -> bool:
    """Only if every request allows just responding or ignoring, and has no unknown fields, it does not."""
    harmless = all(action.allowed and set(action.allowed) <= _HARMLESS for action in question.actions)
    value = _unwrapped(question.value)
    return not harmless or any(map(_says_more, value if isinstance(value, list) else [value]))


def negative(question: Question, reason: str) -> tuple[Verdict, ...] | None:
    """`ignore`, which has no field for the reason."""
    return uniform(question, Verb.IGNORE)


def feedback(question: Question, notes: str) -> tuple[Verdict, ...] | None:
    return uniform(question, Verb.RESPOND, notes)


def _unwrapped(value: Json) -> Json:
    """The requests inside a JSON text; any other value unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "[") and "action_request" in value:
        return canonical.parse(value)
    return value


def _says_more(request: Json) -> bool:
    parts = (request, _REQUEST), (request["action_request"], _ACTION), (request["config"], _FLAGS)
    return any(has_other_keys(part, known) for part, known in parts)


def _is_meant(request: Json) -> bool:
    if not isinstance(request, dict):
        return False
    config = request.get("config")
    return "action_request" in request or (isinstance(config, dict) and any(flag in config for flag in _FLAGS))


def _action(key: str, request: Fields, remarks: list[Problem]) -> Action:
    asked = request.inside("action_request")
    args = asked.mapping("args")
    return Action(
        key=key,
        name=asked.text("action"),
        args=args,
        args_text=canonical.text(args),
        description=request.optional_text("description"),
        allowed=_allowed(request.inside("config"), remarks),
    )


def _allowed(config: Fields, remarks: list[Problem]) -> tuple[Verb, ...]:
    """The verbs whose flag is true. A missing flag allows nothing; a config without any flag is invalid."""
    missing = [flag for flag in _FLAGS if config.get(flag) is None]
    for flag in missing:
        if len(missing) == len(_FLAGS):
            config.fault(flag, "is missing")
        else:
            remarks.append(Problem(canonical.join(config.path, flag), "is missing and taken as false"))
    return tuple(verb for flag, verb in _FLAGS.items() if flag not in missing and config.flag(flag))


def _response(request: Json, action: Action, verdict: Verdict) -> Json:
    match verdict.verb:
        case Verb.APPROVE:
            return {"type": "accept", "args": request}
        case Verb.EDIT:
            name = action.name if verdict.name is None else verdict.name
            return {"type": "edit", "args": {**request, "action": name, "args": verdict.args}}
        case Verb.RESPOND:
            return {"type": "response", "args": verdict.message}
        case _:
            return {"type": "ignore", "args": None}


def _verdict(key: str, response: Fields, action: Action | None) -> Verdict | None:
    verb = response.choice("type", _TYPES)
    if action is None:  # one response too many: the rules report it as an unknown key
        return Verdict(key, verb or Verb.IGNORE)
    match verb:
        case Verb.APPROVE:
            return _accepted(response, action)
        case Verb.EDIT:
            edited = response.inside("args")
            name = edited.optional_text("action")  # the default is the requested action
            return Verdict(key, verb, args=edited.mapping("args"), name=None if name == action.name else name)
        case Verb.RESPOND:
            return Verdict(key, verb, message=response.text("args"))
        case Verb.IGNORE:
            if response.get("args") is not None:
                response.fault("args", "must be null when you ignore")
            return Verdict(key, verb)
    return None


def _accepted(response: Fields, action: Action) -> Verdict:
    """Stock clients send null or the request itself; anything else would be a hidden edit."""
    if response.get("args") is not None:
        echoed = response.inside("args")
        if echoed.text("action") != action.name or not canonical.same(echoed.mapping("args"), action.args):
            response.fault("args", "must equal the request; to change it, use edit")
    return Verdict(action.key, Verb.APPROVE)
