"""The rules for every decision before a dialect encodes it for the agent.

Exactly one verdict per action, only verbs that the action allows, exactly the fields that the verb accepts (a text that
would get lost is refused, not dropped), JSON throughout, and edited arguments that fit their schema. The same rules
apply to a decision in the inbox and to an answer from outside; only the field names differ, which a `Layout` defines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from assent.errors import InvalidDecision, Problem
from assent.kernel import canonical
from assent.review.model.questions import Action, Question, Verb, Verdict


@dataclass(frozen=True, slots=True)
class Rule:
    """The required and optional fields of a verb; `either` requires exactly one of two."""

    needs: frozenset[str] = frozenset()
    takes: frozenset[str] = frozenset()
    either: frozenset[str] = frozenset()
    any_json: bool = False  # args need not be an object


_ARGS, _MESSAGE, _NAME = frozenset({"args"}), frozenset({"message"}), frozenset({"name"})

RULES: Mapping[Verb, Rule] = {
    Verb.APPROVE: Rule(),
    Verb.EDIT: Rule(needs=_ARGS, takes=_NAME),
    Verb.REJECT: Rule(takes=_MESSAGE),
    Verb.RESPOND: Rule(needs=_MESSAGE),
    Verb.IGNORE: Rule(),
    Verb.ACCEPT: Rule(needs=_ARGS),
    Verb.DECLINE: Rule(),
    Verb.CANCEL: Rule(),
}
EDIT_SAME_TOOL = Rule(needs=_ARGS)
REASON_NEEDED = Rule(needs=_MESSAGE)
TEXT_OR_JSON = Rule(either=_MESSAGE | _ARGS, any_json=True)
ANY_VALUE = Rule(needs=_ARGS, any_json=True)
MAYBE_ARGS = Rule(takes=_ARGS)
NOTHING = Rule()


def _entry(index: int) -> str:
    return f"actions[{index}]"


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths of a verdict's parts in the caller's payload: a decision, or a dialect's own format."""

    whole: str = "actions"
    entry: Callable[[int], str] = _entry
    names: Mapping[str, str] = field(default_factory=dict)

    def spot(self, index: int, part: str) -> str:
        name, entry = self.names.get(part, part), self.entry(index)
        return f"{entry}.{name}" if entry and name else entry or name


DECISION = Layout()


@dataclass(frozen=True, slots=True)
class Objection:
    """A dialect's own objection to a verdict that satisfies the rules, in a part of it or a field of that part."""

    part: str
    message: str
    field: str = ""


def pair(
    question: Question,
    verdicts: Sequence[Verdict],
    rules: Mapping[Verb, Rule] = RULES,
    layout: Layout = DECISION,
    extra: Callable[[Action, Verdict], Iterator[Objection]] | None = None,
) -> list[tuple[Action, Verdict]]:
    """Every action with its verdict, in the order of the question, or `InvalidDecision`."""
    problems: list[Problem] = []
    actions = {action.key: action for action in question.actions}
    chosen: dict[str, Verdict] = {}
    for index, verdict in enumerate(verdicts):
        if verdict.key not in actions:
            problems.append(Problem(layout.spot(index, "key"), f"{verdict.key!r} is not an action of this question"))
        elif verdict.key in chosen:
            problems.append(Problem(layout.spot(index, "key"), f"{verdict.key!r} is decided twice"))
        else:
            action = actions[verdict.key]
            chosen[verdict.key] = verdict
            faults = [*_faults(action, verdict, rules, partial(layout.spot, index))]
            if not faults and extra is not None:
                faults = [_placed(objection, partial(layout.spot, index)) for objection in extra(action, verdict)]
            problems.extend(faults)
    problems.extend(Problem(layout.whole, f"a decision for {key!r} is missing") for key in actions if key not in chosen)
    if problems:
        raise InvalidDecision(problems=problems)
    return [(action, chosen[key]) for key, action in actions.items()]


def uniform(question: Question, verb: Verb, message: str | None = None) -> tuple[Verdict, ...] | None:
    """The same verdict on every action, or None if one of them does not allow it."""
    if not question.actions or not all(verb in action.allowed for action in question.actions):
        return None
    return tuple(Verdict(action.key, verb, message=message) for action in question.actions)


def message_of(verdict: Verdict) -> str | None:
    """The message, unless it is blank."""
    return verdict.message if verdict.message and verdict.message.strip() else None


def stringified(question: Question, verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """Edits as the first Agent Inbox sent them: every changed argument becomes a text."""
    actions = {action.key: action for action in question.actions}
    return tuple(_stringify(actions.get(verdict.key), verdict) for verdict in verdicts)


def _stringify(action: Action | None, verdict: Verdict) -> Verdict:
    if action is None or verdict.verb != Verb.EDIT or not isinstance(verdict.args, dict):
        return verdict
    before = action.args if isinstance(action.args, dict) else {}
    args = {
        name: value if name in before and canonical.same(before[name], value) else _as_text(value)
        for name, value in verdict.args.items()
    }
    return Verdict(verdict.key, verdict.verb, args, verdict.name, verdict.message)


def _as_text(value: canonical.Json) -> str:
    return value if isinstance(value, str) else canonical.text(value)


def _given(action: Action, verdict: Verdict) -> frozenset[str]:
    parts = {
        "args": verdict.args is not None,
        "name": verdict.name is not None and verdict.name != action.name,
        "message": verdict.message is not None and message_of(verdict) is not None,
    }
    return frozenset(part for part, there in parts.items() if there)


def _placed(objection: Objection, spot: Callable[[str], str]) -> Problem:
    path = spot(objection.part)
    return Problem(canonical.join(path, objection.field) if objection.field else path, objection.message)


def _faults(
    action: Action, verdict: Verdict, rules: Mapping[Verb, Rule], spot: Callable[[str], str]
) -> Iterator[Problem]:
    if verdict.verb not in action.allowed:
        allowed = ", ".join(action.allowed) or "nothing"
        yield Problem(spot("verb"), f"{verdict.verb} is not allowed here, only {allowed}")
        return
    rule, given = rules[verdict.verb], _given(action, verdict)
    for part in sorted(rule.needs - given):
        yield Problem(spot(part), f"is required to {verdict.verb}")
    for part in sorted(given - rule.needs - rule.takes - rule.either):
        yield Problem(spot(part), f"is not allowed with {verdict.verb}")
    if rule.either and len(rule.either & given) != 1:
        yield Problem(spot("message"), f"exactly one of {', '.join(sorted(rule.either))} is required")
    if "name" in given and not str(verdict.name).strip():
        yield Problem(spot("name"), "must not be empty")
    if "args" in given:
        schema = None if "name" in given else action.schema  # the schema belongs to the original tool
        yield from _args_faults(verdict.args, schema, spot("args"), any_json=rule.any_json)


def _args_faults(args: canonical.Json, schema: canonical.Json, path: str, *, any_json: bool) -> Iterator[Problem]:
    if not any_json and not isinstance(args, dict):
        yield Problem(path, "must be an object")
        return
    try:
        canonical.text(args)
    except canonical.NotJson as error:
        yield Problem(canonical.below(path, error.path), error.reason)
        return
    yield from unstorable(args, path)
    if schema is not None:
        from assent.review.model.schemas import validation as schemas  # slow to import, and many agents have no schema

        yield from schemas.problems(schema, args, path)


def unstorable(value: canonical.Json, path: str = "") -> Iterator[Problem]:
    """Valid JSON numbers that a LangGraph checkpoint cannot store: the run would fail on them."""
    if isinstance(value, dict):
        for name, child in value.items():
            yield from unstorable(child, canonical.join(path, name))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from unstorable(child, canonical.join(path, index))
    elif isinstance(value, int) and not -(2**63) <= value < 2**64:
        yield Problem(path, "is an integer beyond 64 bits, which LangGraph cannot store")
