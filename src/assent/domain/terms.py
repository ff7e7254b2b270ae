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
from assent.domain.policies import PENDING_TTL, Call, Effect, Judgement, Policy, Rule
from assent.domain.questions import Action, Question, Verb
from assent.domain.secrets import covered, masked, secret_paths

_FREE = ("clarification",)
"""Answering what an agent does not know is not a decision."""

_STRICTNESS = (Effect.ALLOW, Effect.ADVISE, Effect.ASK, Effect.NEVER)
_LENIENT = frozenset({Effect.ALLOW, Effect.ADVISE})
_GOING_AHEAD = frozenset({Verb.APPROVE, Verb.EDIT, Verb.ACCEPT})


@dataclass(frozen=True, slots=True)
class Terms:
    """`escalated`: those whom the rule names for later may decide as well by now."""

    version: int
    rule: Rule
    problems: tuple[str, ...] = ()
    escalated: bool = False

    @property
    def effect(self) -> Effect:
        return self.rule.then

    @property
    def gated(self) -> bool:
        return self.effect in (Effect.ASK, Effect.NEVER)

    def to_json(self) -> dict[str, Any]:
        [rule] = policies.to_json(Policy((self.rule,)))["rules"]
        return {"version": self.version, "rule": rule, "problems": list(self.problems), "escalated": self.escalated}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Terms:
        met = {**stored["rule"], "when": None}  # it did; whether it still would is no question any more
        [rule] = policies.from_json({"rules": [met]}).rules
        return cls(stored["version"], rule, tuple(stored["problems"]), stored["escalated"])

    def schedule(self, asked_at: datetime, expires_at: datetime | None) -> list[tuple[datetime, Due]]:
        """What time does about it, and when, in order. `expires_at` is what the asker wished for, if anything."""
        plan = self.rule.schedule
        expire = expires_at or _after(asked_at, plan.expire or (PENDING_TTL if self.gated else None))
        steps = (_after(asked_at, plan.remind), Due.REMIND), (_after(asked_at, plan.escalate), Due.ESCALATE)
        planned = [(at, due) for at, due in (*steps, (expire, Due.EXPIRE)) if at is not None]
        return sorted((at, due) for at, due in planned if expire is None or at <= expire)


def next_due(plan: Sequence[tuple[datetime, Due]], after: datetime) -> tuple[datetime | None, Due | None]:
    """What time has to do next. The end stays to be done also where it has been missed."""
    return next(((at, due) for at, due in plan if at > after or due is Due.EXPIRE), (None, None))


def terms_of(
    policy: Policy, version: int, question: Question, *, graph: str | None, agent: str, tenant: str, gated: bool = False
) -> Terms:
    """The strictest of what the policy says about each action. `gated`: the gate itself asks, or will."""
    if question.dialect in _FREE:
        return Terms(version, policies.ADVISE_ALL.default)
    calls = [Call(action.name, action.args, graph or "", agent, tenant) for action in question.actions]
    found = max((policies.judge(policy, call) for call in calls), key=_weight)
    rule = replace(found.rule, then=Effect.ASK) if gated and found.effect in _LENIENT else found.rule
    return Terms(version, rule, tuple(f"{problem.path}: {problem.message}" for problem in found.problems))


def stricter(before: Terms, now: Terms) -> Terms:
    """What holds once the question was changed: what is asked now must not be easier to get than either alone."""
    kept = max(before, now, key=lambda terms: _strictness(terms.rule))
    return replace(kept, escalated=before.escalated)


def within(question: Question, terms: Terms) -> Question:
    """The question with no other verbs than the terms allow: what must never run can only be turned down."""
    return replace(question, actions=tuple(_within(action, terms) for action in question.actions))


def shown(question: Question, terms: Terms) -> Question:
    """The question with its secrets masked, in the arguments and in the agent's words about them."""
    actions = tuple(_shown(action, terms) for action in question.actions)
    said = question.description
    for action in question.actions:
        said = covered(said, action.args, secret_paths(action.schema, terms.rule.mask))
    return replace(question, description=said, actions=actions)


def _shown(action: Action, terms: Terms) -> Action:
    paths = secret_paths(action.schema, terms.rule.mask)
    if not paths:
        return action
    args, said = masked(action.args, paths), covered(action.description, action.args, paths)
    return replace(action, args=args, args_text=canonical.text(args), description=said)


def _within(action: Action, terms: Terms) -> Action:
    return replace(action, allowed=tuple(verb for verb in action.allowed if _allowed(verb, terms)))


def _allowed(verb: Verb, terms: Terms) -> bool:
    if terms.effect is Effect.NEVER and verb in _GOING_AHEAD:
        return False
    return terms.rule.verbs is None or verb in terms.rule.verbs


def _weight(judgement: Judgement) -> tuple[int, int]:
    return _strictness(judgement.rule)


def _strictness(rule: Rule) -> tuple[int, int]:
    return _STRICTNESS.index(rule.then), rule.approvals


def _after(asked_at: datetime, wait: timedelta | None) -> datetime | None:
    return None if wait is None else asked_at + wait
