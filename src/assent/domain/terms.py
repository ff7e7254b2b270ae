"""The terms of an item: what the policy in force when it was asked says about deciding it.

They are stored with the item, so that a policy changed meanwhile does not change what a question already waits for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from assent.domain import canonical, policies
from assent.domain.items import Due
from assent.domain.policies import (
    PENDING_TTL,
    Agent,
    Call,
    Decider,
    Deciders,
    Effect,
    Policy,
    Refusal,
    Risk,
    Rule,
    may_decide,
)
from assent.domain.questions import TOO_MANY, Action, Question, Verb
from assent.domain.secrets import covered, masked, secret_paths

_FREE = ("clarification",)
"""Answering what an agent does not know is not a decision."""

_STRICTNESS = (Effect.ALLOW, Effect.ADVISE, Effect.ASK, Effect.NEVER)
_LENIENT = frozenset({Effect.ALLOW, Effect.ADVISE})
_GOING_AHEAD = frozenset({Verb.APPROVE, Verb.EDIT, Verb.ACCEPT})


@dataclass(frozen=True, slots=True)
class Terms:
    """All rules that speak of any of the calls asked about: each of them has to be kept, whatever the others allow.
    `escalated`: those whom a rule names for later may decide as well by now. `since`: from when on its deadlines count,
    where that is later than the question itself."""

    version: int
    rules: tuple[Rule, ...]
    problems: tuple[str, ...] = ()
    escalated: bool = False
    since: datetime | None = None

    @property
    def effect(self) -> Effect:
        return max((rule.then for rule in self.rules), key=_STRICTNESS.index)

    @property
    def gated(self) -> bool:
        return self.effect in (Effect.ASK, Effect.NEVER)

    @property
    def approvals(self) -> int:
        return max(rule.approvals for rule in self.rules)

    @property
    def separate_duties(self) -> bool:
        return any(rule.separate_duties for rule in self.rules)

    @property
    def risk(self) -> Risk | None:
        return max((rule.risk for rule in self.rules if rule.risk), key=list(Risk).index, default=None)

    @property
    def execution_ttl(self) -> timedelta:
        return min(rule.execution_ttl for rule in self.rules)

    @property
    def mask(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(path for rule in self.rules for path in rule.mask))

    @property
    def escalate_to(self) -> Deciders:
        return next((rule.escalate_to for rule in self.rules if rule.escalate_to), Deciders())

    def refusal(self, person: Decider, *, started_by: str, edited_by: str | None) -> Refusal | None:
        """Why this person may not decide; None if every rule lets them."""
        asked = (
            may_decide(rule, person, started_by=started_by, edited_by=edited_by, escalated=self.escalated)
            for rule in self.rules
        )
        return next((refusal for refusal in asked if refusal is not None), None)

    def allows(self, verb: Verb) -> bool:
        if self.effect is Effect.NEVER and verb in _GOING_AHEAD:
            return False
        return all(rule.verbs is None or verb in rule.verbs for rule in self.rules)

    def adds_to(self, before: Terms) -> bool:
        """Whether a rule speaks of it that did not before. That its condition is met is no difference."""
        return not _met(self) <= _met(before)

    def to_json(self) -> dict[str, Any]:
        rules = policies.to_json(Policy(self.rules))["rules"]
        facts = {"effect": self.effect, "approvals": self.approvals, "problems": list(self.problems)}
        since = {"since": self.since.isoformat()} if self.since else {}
        return {"version": self.version, "rules": rules, **facts, "escalated": self.escalated, **since}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Terms:
        met = [{**rule, "when": None} for rule in stored["rules"]]  # it did; whether it still would is no question now
        rules = policies.from_json({"rules": met}).rules
        since = datetime.fromisoformat(stored["since"]) if "since" in stored else None
        return cls(stored["version"], rules, tuple(stored["problems"]), stored["escalated"], since)

    def schedule(self, asked_at: datetime, expires_at: datetime | None) -> list[tuple[datetime, Due]]:
        """What time does about it, and when, in order. `expires_at` is what the asker wished for, if anything: it can
        only be earlier than what the policy says."""
        asked_at = self.since or asked_at
        plans = [rule.schedule for rule in self.rules]
        ends = [asked_at + plan.expire for plan in plans if plan.expire is not None]
        ends += [asked_at + PENDING_TTL] if self.gated and not ends else []
        expire = min((at for at in (*ends, expires_at) if at is not None), default=None)
        reminds = [(asked_at + plan.remind, Due.REMIND) for plan in plans if plan.remind is not None]
        escalates = [(asked_at + plan.escalate, Due.ESCALATE) for plan in plans if plan.escalate is not None]
        planned = [*sorted(reminds)[:1], *sorted(escalates)[:1], *([(expire, Due.EXPIRE)] if expire else [])]
        return sorted((at, due) for at, due in planned if expire is None or at <= expire)


def next_due(plan: Sequence[tuple[datetime, Due]], after: datetime) -> tuple[datetime | None, Due | None]:
    """What time has to do next. The end stays to be done also where it has been missed."""
    return next(((at, due) for at, due in plan if at > after or due is Due.EXPIRE), (None, None))


def terms_of(
    policy: Policy,
    version: int,
    question: Question,
    *,
    graph: str | None,
    agent: Agent,
    tenant: str,
    gated: bool = False,
) -> Terms:
    """What the policy says about each of the actions. `gated`: the gate itself asks, or will."""
    if question.dialect in _FREE:
        return Terms(version, (policies.ADVISE_ALL.default,))
    calls = [Call(action.name, action.args, graph or "", agent.name, tenant, agent.id) for action in question.actions]
    found = [policies.judge(policy, call) for call in calls]
    asks = gated or TOO_MANY in question.problems  # which rules speak of these is not known: nobody goes past them
    rules = tuple(dict.fromkeys(_asking(one.rule) if asks else one.rule for one in found))
    problems = (f"{problem.path}: {problem.message}" for one in found for problem in one.problems)
    return Terms(version, rules, tuple(dict.fromkeys(problems)))


def _met(terms: Terms) -> set[Rule]:
    return {replace(rule, when=None) for rule in terms.rules}


def stricter(before: Terms, now: Terms) -> Terms:
    """What holds once the question was changed: what is asked now must not be easier to get than either alone."""
    rules = tuple(dict.fromkeys((*now.rules, *before.rules)))
    return replace(now, rules=rules, escalated=before.escalated, since=before.since)


def within(question: Question, terms: Terms) -> Question:
    """The question with no other verbs than the terms allow: what must never run can only be turned down."""
    return replace(question, actions=tuple(_within(action, terms) for action in question.actions))


def shown(question: Question, terms: Terms) -> Question:
    """The question with its secrets masked, in the arguments and in the agent's words about them."""
    actions = tuple(_shown(action, terms) for action in question.actions)
    said = question.description
    for action in question.actions:
        said = covered(said, action.args, secret_paths(action.schema, terms.mask))
    return replace(question, description=said, actions=actions)


def _shown(action: Action, terms: Terms) -> Action:
    paths = secret_paths(action.schema, terms.mask)
    if not paths:
        return action
    args, said = masked(action.args, paths), covered(action.description, action.args, paths)
    return replace(action, args=args, args_text=canonical.text(args), description=said)


def _within(action: Action, terms: Terms) -> Action:
    return replace(action, allowed=tuple(verb for verb in action.allowed if terms.allows(verb)))


def _asking(rule: Rule) -> Rule:
    return replace(rule, then=Effect.ASK) if rule.then in _LENIENT else rule
