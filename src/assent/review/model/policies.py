"""Policies: rules as data that decide about the tool calls of an agent.

The first rule that matches a call decides: run freely, ask a person, never, or ask for advice. An error never lets a
call run: a condition that fails does not match if the rule would allow the call, and does match if the rule would stop
it. A policy is parsed from TOML or JSON, with all problems reported at once, and written in one canonical JSON form
that is stored, hashed and kept with every item created under it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, PlainSerializer, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from assent.errors import InvalidPolicy, Problem
from assent.identity.model.access import Role
from assent.kernel import canonical, durations
from assent.kernel.canonical import Json
from assent.review.model import conditions, titles
from assent.review.model.conditions import ConditionFailed, InvalidCondition, Variables
from assent.review.model.questions import Verb

PENDING_TTL = timedelta(days=7)
EXECUTION_TTL = timedelta(minutes=15)
LONGEST_EXECUTION_TTL = timedelta(days=1)
MAX_RULES = 500


class Effect(StrEnum):
    """`advise` also asks, but every caller who may start runs may answer: the item is listed and audited, not gated."""

    ALLOW = "allow"
    ASK = "ask"
    NEVER = "never"
    ADVISE = "advise"


STRICTNESS = {Effect.ALLOW: 0, Effect.ADVISE: 1, Effect.ASK: 2, Effect.NEVER: 3}


class Risk(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class AfterDeadline(StrEnum):
    """No value approves: a deadline never approves anything."""

    EXPIRE = "expire"
    ESCALATE = "escalate"


class ByMcp(StrEnum):
    """The highest risk that a person's key may decide through the inbox's MCP server, whose callers are programs."""

    NEVER = "never"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    def allows(self, risk: Risk | None) -> bool:
        """An item without a rating counts as medium."""
        levels = [level.value for level in ByMcp]
        return levels.index((risk or Risk.MEDIUM).value) <= levels.index(self.value)


class Confirm(StrEnum):
    """The fresh proof of presence that every approval needs."""

    PASSKEY = "passkey"


def _check_glob(pattern: str) -> str:
    if "[" in re.sub(r"\[!?[^\]]+\]", "", pattern):
        raise ValueError("has a [ without a closing ]")
    return pattern


def _check_condition(text: str) -> str:
    conditions.compile(text)
    return text


def _read_duration(value: object) -> timedelta:
    if not isinstance(value, str):
        raise ValueError('must be a text such as "15m", "2h" or "7d"')
    return durations.parse(value)


def _check_secret_path(path: str) -> str:
    if not all(step and step == step.strip() for step in path.split(".")):
        raise ValueError("must be a path into the arguments, such as password or card.number")
    return path


def _check_execution_ttl(duration: timedelta) -> timedelta:
    if duration > LONGEST_EXECUTION_TTL:
        raise ValueError(f"must be at most {durations.text(LONGEST_EXECUTION_TTL)}: approvals are short-lived")
    return duration


_Name = Annotated[str, Field(min_length=1, max_length=200)]
_Glob = Annotated[_Name, AfterValidator(_check_glob)]
_When = Annotated[str, AfterValidator(_check_condition)]
_Title = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(titles.check)]
_SecretPath = Annotated[_Name, AfterValidator(_check_secret_path)]
_Duration = Annotated[timedelta, BeforeValidator(_read_duration), PlainSerializer(durations.text)]


@dataclass(frozen=True, slots=True)
class Deciders:
    """Any of these may decide; people by id or name. If empty, everyone with the right to decide."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    roles: tuple[Role, ...] = ()
    people: tuple[_Name, ...] = ()
    groups: tuple[_Name, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.roles or self.people or self.groups)

    def __or__(self, others: Deciders) -> Deciders:
        pairs = (self.roles, others.roles), (self.people, others.people), (self.groups, others.groups)
        return Deciders(*(tuple(dict.fromkeys((*own, *more))) for own, more in pairs))  # type: ignore[arg-type]

    def include(self, person: Decider) -> bool:
        named = person.id in self.people or person.name in self.people
        return named or person.role in self.roles or not person.groups.isdisjoint(self.groups)


@dataclass(frozen=True, slots=True)
class Schedule:
    """The deadlines of an undecided item, counted from its creation. None: disabled."""

    remind: timedelta | None
    escalate: timedelta | None
    expire: timedelta | None


@dataclass(frozen=True, slots=True)
class Rule:
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    name: _Name
    then: Effect
    tool: _Glob = "*"
    graph: _Glob = "*"
    agent: _Glob = "*"
    tenant: _Glob = "*"
    when: _When | None = None
    by: Deciders = Deciders()
    approvals: Annotated[int, Field(ge=1, le=10)] = 1
    separate_duties: bool = False
    risk: Risk | None = None
    deadline: _Duration | None = None
    remind_after: _Duration | None = None
    after_deadline: AfterDeadline = AfterDeadline.EXPIRE
    escalate_to: Deciders = Deciders()
    escalation_period: _Duration | None = None
    verbs: Annotated[tuple[Verb, ...], Field(min_length=1)] | None = None
    pending_ttl: _Duration | None = None
    execution_ttl: Annotated[_Duration, AfterValidator(_check_execution_ttl)] = EXECUTION_TTL
    mask: tuple[_SecretPath, ...] = ()
    confirm: Confirm | None = None
    unmask: tuple[_SecretPath, ...] = ()
    mcp: ByMcp = ByMcp.LOW
    title: _Title | None = None

    def __post_init__(self) -> None:
        problems = "; ".join(self._contradictions())
        if problems:
            raise ValueError(problems)

    @property
    def schedule(self) -> Schedule:
        """An item of `ask` always ends: at its deadline, or after a week. An advisory one may wait forever."""
        wait = self.deadline or self.pending_ttl or (PENDING_TTL if self.then is Effect.ASK else None)
        if self.deadline and self.after_deadline is AfterDeadline.ESCALATE:
            return Schedule(self.remind_after, self.deadline, self.deadline + (self.escalation_period or self.deadline))
        return Schedule(self.remind_after, None, wait)

    @property
    def barrier(self) -> str | None:
        """The reason why a standing approval cannot satisfy this rule; None if it can."""
        reasons = {
            "forbids the call": self.then is Effect.NEVER,
            "asks for a passkey each time": self.confirm,
            "has named deciders": self.by,
            f"asks {self.approvals} people": self.approvals > 1,
            "separates duties": self.separate_duties,
            "offers no approval": self.verbs is not None and Verb.APPROVE not in self.verbs,
        }
        return next((reason for reason, holds in reasons.items() if holds), None)

    def fits(self, call: Call) -> bool:
        """Whether the names match; the condition is evaluated separately."""
        pairs = (call.tool, self.tool), (call.graph, self.graph), (call.tenant, self.tenant)
        named = fnmatchcase(call.agent, self.agent) or fnmatchcase(call.agent_id, self.agent)
        return named and all(fnmatchcase(name, pattern) for name, pattern in pairs)

    def names(self, tool: str) -> bool:
        return fnmatchcase(tool, self.tool)

    def _contradictions(self) -> Iterable[str]:
        escalates = self.after_deadline is AfterDeadline.ESCALATE
        if escalates and not (self.deadline and self.escalate_to):
            yield "after_deadline = escalate needs a deadline and escalate_to"
        if not escalates and (self.escalate_to or self.escalation_period):
            yield "escalate_to and escalation_period need after_deadline = escalate"
        if self.confirm and self.then is not Effect.ASK:
            yield "confirm needs then = ask: only ask needs an approval"
        if self.deadline and self.pending_ttl:
            yield "deadline and pending_ttl exclude each other"
        if self.remind_after and self.remind_after >= (self.schedule.expire or PENDING_TTL):
            yield "remind_after must be before the end"


def _check_default(rule: Rule) -> Rule:
    if rule.when or not rule.tool == rule.graph == rule.agent == rule.tenant == "*":
        raise ValueError("applies to all remaining calls, so it cannot have tool, graph, agent, tenant or when")
    return rule


def _default(effect: Effect) -> Rule:
    return Rule("default", effect)


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules in order, and the default for all remaining calls."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    rules: Annotated[tuple[Rule, ...], Field(max_length=MAX_RULES)] = ()
    default: Annotated[Rule, AfterValidator(_check_default)] = field(default_factory=lambda: _default(Effect.ASK))


ASK_ALL = Policy()
ADVISE_ALL = Policy(default=_default(Effect.ADVISE))


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that an agent wants to make. Rules match the agent by name or id."""

    tool: str
    args: Json
    graph: str
    agent: str
    tenant: str
    agent_id: str = ""
    question: bool = False
    """It is only a question: no answer lets the agent act."""

    def variables(self) -> Variables:
        return conditions.variables(self.args, tool=self.tool, graph=self.graph, agent=self.agent, tenant=self.tenant)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The deciding rule, and the problems on the way to it."""

    rule: Rule
    problems: tuple[Problem, ...] = ()
    released: bool = False
    """The default gates only calls that let an agent act, and this one does not: callers of the thread may answer."""

    @property
    def effect(self) -> Effect:
        return self.rule.then


def judge(policy: Policy, call: Call) -> Judgement:
    variables = call.variables()
    problems: list[Problem] = []
    for index, rule in enumerate(policy.rules):
        if rule.fits(call) and _applies(rule, variables, canonical.where(["rules", index, "when"]), problems):
            return Judgement(rule, tuple(problems))
    if call.question and policy.default.then is Effect.ASK:
        return Judgement(_released(policy.default), tuple(problems), released=True)
    return Judgement(policy.default, tuple(problems))


def _released(rule: Rule) -> Rule:
    """The default for a question that approves nothing. Deciders and their number apply to approvals only."""
    return replace(rule, then=Effect.ADVISE, by=Deciders(), approvals=1, separate_duties=False, confirm=None)


def concerning(policy: Policy, *, tool: str, graph: str | None, tenant: str) -> list[Rule]:
    """The rules that could decide about calls of this tool, for any caller and any arguments; in any graph if `graph`
    is None."""
    rules: list[Rule] = []
    for rule in policy.rules:
        pairs = (tool, rule.tool), (tenant, rule.tenant), *(() if graph is None else ((graph, rule.graph),))
        if all(fnmatchcase(name, pattern) for name, pattern in pairs):
            rules.append(rule)
            if rule.when is None and rule.agent == "*" and (graph is not None or rule.graph == "*"):
                return rules
    return [*rules, policy.default]


def _applies(rule: Rule, given: Variables, path: str, problems: list[Problem]) -> bool:
    """Fails closed: a condition without a result never allows a call, and never skips a rule that would stop it."""
    try:
        return _holds(rule.when, given)
    except (InvalidCondition, ConditionFailed) as error:
        problems.append(Problem(path, str(error)))
        return rule.then in (Effect.ASK, Effect.NEVER)


def _holds(when: str | None, given: Variables) -> bool:
    return when is None or conditions.compile(when).holds(given)


@dataclass(frozen=True, slots=True)
class Decider:
    """A person with the right to decide, to be checked against a rule."""

    id: str
    name: str
    role: Role
    groups: frozenset[str] = frozenset()

    @property
    def actor(self) -> str:
        return f"reviewer:{self.id}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why a person may not decide: the error code, the text, and the rule."""

    code: str
    reason: str
    rule: str


def may_decide(
    rule: Rule,
    person: Decider,
    *,
    started_by: str,
    edited_by: Collection[str] = (),
    contributors: Collection[str] = (),
    escalated: bool = False,
) -> Refusal | None:
    """None if this person may decide under the rule. `started_by`, `edited_by` and `contributors` are actors
    (`reviewer:<id>`); they matter only with separate duties. Once an item is escalated, the people of `escalate_to` may
    decide as well."""
    included = not rule.by or rule.by.include(person) or (escalated and rule.escalate_to.include(person))
    if not included:
        return Refusal("not_allowed", f"the rule {rule.name!r} does not list you as a decider", rule.name)
    if rule.separate_duties and person.actor == started_by:
        reason = f"the rule {rule.name!r} needs another person than the one who started the run"
        return Refusal("self_approval", reason, rule.name)
    if rule.separate_duties and person.actor in edited_by:
        return Refusal("self_approval", f"the rule {rule.name!r} needs another person than the editor", rule.name)
    if rule.separate_duties and person.actor in contributors:
        reason = f"the rule {rule.name!r} needs a person who did not contribute to this turn of the thread"
        return Refusal("self_approval", reason, rule.name)
    return None


@dataclass(frozen=True, slots=True)
class StandingApproval:
    """*Always allow this*: a person's approval of future calls, until it expires, is used up or revoked.

    The tool must match exactly, and the agent by its id; `args_hash` is `canonical.digest` of the only approved
    arguments, if set.
    """

    id: str
    tool: str
    expires_at: datetime
    graph: str | None = None
    agent: str | None = None
    condition: str | None = None
    args_hash: str | None = None
    uses_left: int | None = None
    revoked_at: datetime | None = None

    def usable(self, now: datetime) -> bool:
        return self.revoked_at is None and now < self.expires_at and (self.uses_left is None or self.uses_left > 0)


def covers(standing: StandingApproval, call: Call, now: datetime) -> bool:
    """Whether the standing approval covers this call. If in doubt, it does not."""
    named = standing.tool == call.tool and standing.graph in (None, call.graph)
    named = named and standing.agent in (None, call.agent_id)
    if not (named and standing.usable(now)):
        return False
    try:
        same = standing.args_hash is None or standing.args_hash == canonical.digest(call.args)
        return same and _holds(standing.condition, call.variables())
    except (canonical.NotJson, InvalidCondition, ConditionFailed):
        return False


@dataclass(frozen=True, slots=True)
class Difference:
    """A past call that another policy would have treated differently."""

    call: Call
    before: Effect
    after: Judgement

    @property
    def loosens(self) -> bool:
        return STRICTNESS[self.after.effect] < STRICTNESS[self.before]


def replay(policy: Policy, past: Iterable[tuple[Call, Effect]]) -> list[Difference]:
    judged = ((call, before, judge(policy, call)) for call, before in past)
    return [Difference(call, before, after) for call, before, after in judged if after.effect is not before]


def parse(source: str) -> Policy:
    """Parses a policy in TOML."""
    try:
        return from_json(tomllib.loads(source))
    except tomllib.TOMLDecodeError as error:
        raise InvalidPolicy(problems=[Problem("", f"not TOML: {error}")]) from None


def from_json(document: Json) -> Policy:
    """The policy that someone wrote, or `InvalidPolicy` naming rule and field."""
    try:
        return stored(document)
    except canonical.NotJson as error:
        raise InvalidPolicy(problems=[Problem(error.path, error.reason)]) from None
    except ValidationError as error:
        raise InvalidPolicy(problems=map(_problem, error.errors(include_url=False))) from None


def stored(document: Json) -> Policy:
    """The policy in a row of ours. If it cannot be read, that is a fault of the database and not of the caller, so it
    does not become an `InvalidPolicy`."""
    return _adapter().validate_json(canonical.text(_spelled_out(document)), strict=True)


def _spelled_out(document: Json) -> Json:
    """Expands the short form `default = "ask"`."""
    default = document.get("default") if isinstance(document, dict) else None
    return document | {"default": {"name": "default", "then": default}} if isinstance(default, str) else document


def to_json(policy: Policy) -> dict[str, Json]:
    """Writes every field, including defaults: a later change of a default does not change stored policies."""
    written: dict[str, Json] = _adapter().dump_python(policy, mode="json")
    return written


def digest(policy: Policy) -> str:
    return canonical.digest(to_json(policy))


@cache
def _adapter() -> TypeAdapter[Policy]:
    return TypeAdapter(Policy)


def _problem(error: ErrorDetails) -> Problem:
    raised: Any = error.get("ctx", {}).get("error")
    message = _MESSAGES.get(error["type"], error["msg"].replace("Input should", "must"))
    return Problem(canonical.where(error["loc"]), str(raised) if isinstance(raised, Exception) else message)


_MESSAGES = {
    "dataclass_type": "must be a table",
    "missing": "is missing",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
    "tuple_type": "must be a list",
    "unexpected_keyword_argument": "is not a known field",
}
