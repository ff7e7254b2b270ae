"""The terms of an item: the rules for deciding it, from the policy in force when it was asked.

They are stored with the item, so that a later change of the policy does not affect waiting questions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from assent.identity.model.access import Agent
from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.review.model import policies, risks
from assent.review.model.items import Due
from assent.review.model.policies import (
    PENDING_TTL,
    Call,
    Confirm,
    Decider,
    Deciders,
    Effect,
    Policy,
    Refusal,
    Risk,
    Rule,
    may_decide,
)
from assent.review.model.questions import TOO_MANY, Action, ItemType, Question, Verb, Verdict
from assent.review.model.risks import Rating
from assent.review.model.secrets import Cover, Path, Text, cover_of, is_marked, leaves, marked_in

_STRICTNESS = (Effect.ALLOW, Effect.ADVISE, Effect.ASK, Effect.NEVER)
_LENIENT = frozenset({Effect.ALLOW, Effect.ADVISE})
_GOING_AHEAD = frozenset({Verb.APPROVE, Verb.EDIT, Verb.ACCEPT})


@dataclass(frozen=True, slots=True)
class Terms:
    """All rules that apply to any of the calls: each has to be satisfied. `escalated`: the people of `escalate_to` may
    decide as well. `since`: the start of its deadlines, if later than the question. `marks`: the secret paths of the
    tools' schemas, by tool. `question`: it approves nothing and no rule names it, so callers of the thread may answer
    it. `ratings`: the risk of each action; None in rows from before they were stored."""

    version: int
    rules: tuple[Rule, ...]
    problems: tuple[str, ...] = ()
    escalated: bool = False
    since: datetime | None = None
    marks: Mapping[str, frozenset[Path]] = field(default_factory=dict)
    question: bool = False
    ratings: tuple[Rating, ...] | None = None

    @property
    def effect(self) -> Effect:
        return max((rule.then for rule in self.rules), key=_STRICTNESS.index)

    @property
    def gated(self) -> bool:
        return self.effect in (Effect.ASK, Effect.NEVER)

    def advised(self) -> Terms:
        """The terms of a question on another deployment: no gate enforces them there, so an answer is not awaited for
        a limited time only. A rule that needs a passkey stays."""
        rules = (
            replace(rule, then=Effect.ADVISE) if rule.then is Effect.ASK and not rule.confirm else rule
            for rule in self.rules
        )
        return replace(self, rules=tuple(dict.fromkeys(rules)))

    @property
    def approvals(self) -> int:
        return max(rule.approvals for rule in self.rules)

    @property
    def separate_duties(self) -> bool:
        return any(rule.separate_duties for rule in self.rules)

    @property
    def risk(self) -> Risk | None:
        rated = (rating.risk for rating in self.ratings or ())
        return risks.highest((*(rule.risk for rule in self.rules), *rated))

    @property
    def execution_ttl(self) -> timedelta:
        return min(rule.execution_ttl for rule in self.rules)

    def titles(self, action: Action) -> list[str]:
        """The templates of the rules that apply to calls of this tool."""
        return [rule.title for rule in self.rules if rule.title and rule.names(action.name)]

    def cover(self, action: Action) -> Cover:
        """The secret parts of its arguments: masked by any rule, or by default and not unmasked by all rules."""
        marks = self.marks.get(action.name, frozenset()) | marked_in(action.schema)
        return cover_under(self.rules, marks)

    @property
    def confirm(self) -> Confirm | None:
        """The proof of presence that each approval needs."""
        return next((rule.confirm for rule in self.rules if rule.confirm), None)

    @property
    def by_mcp(self) -> bool:
        """Whether every rule allows a decision through the MCP server, for the risk of the item."""
        return all(rule.mcp.allows(self.risk) for rule in self.rules)

    @property
    def escalate_to(self) -> Deciders:
        return next((rule.escalate_to for rule in self.rules if rule.escalate_to), Deciders())

    @property
    def deciders(self) -> Mapping[str, Deciders]:
        """The deciders of each rule, by the rule's name. All rules have to be satisfied."""
        named = (
            (rule.name, rule.by | rule.escalate_to if self.escalated else rule.by) for rule in self.rules if rule.by
        )
        return dict(named)

    def refusal(self, person: Decider, *, started_by: str, **others: Collection[str]) -> Refusal | None:
        """The reason why this person may not decide; None if every rule allows it."""
        refusals = (
            may_decide(rule, person, started_by=started_by, escalated=self.escalated, **others) for rule in self.rules
        )
        return next((refusal for refusal in refusals if refusal is not None), None)

    def allows(self, verb: Verb) -> bool:
        if self.effect is Effect.NEVER and verb in _GOING_AHEAD:
            return False
        return all(rule.verbs is None or verb in rule.verbs for rule in self.rules)

    def adds_to(self, before: Terms) -> bool:
        """Whether a new rule applies. The condition of a rule that already applied makes no difference."""
        return not _rules_without_conditions(self) <= _rules_without_conditions(before)

    def to_json(self) -> dict[str, Any]:
        rules = policies.to_json(Policy(self.rules))["rules"]
        facts = {"effect": self.effect, "approvals": self.approvals, "confirm": self.confirm}
        facts |= {"problems": list(self.problems)}
        since = {"since": self.since.isoformat()} if self.since else {}
        marks = {tool: sorted(map(list, paths)) for tool, paths in self.marks.items()}
        terms = {"version": self.version, "rules": rules, **facts, "escalated": self.escalated, **since}
        if self.ratings is not None:
            terms["risks"] = [rating.to_json() for rating in self.ratings]
        return {**terms, **({"marks": marks} if marks else {}), **({"question": True} if self.question else {})}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Terms:
        met = [{**rule, "when": None} for rule in stored["rules"]]  # it did; whether it still would is no question now
        rules = policies.stored({"rules": met}).rules
        since = datetime.fromisoformat(stored["since"]) if "since" in stored else None
        marks = {tool: frozenset(map(tuple, paths)) for tool, paths in stored.get("marks", {}).items()}
        problems, question = tuple(stored["problems"]), stored.get("question", False)
        ratings = risks.from_json(stored["risks"]) if "risks" in stored else None
        return cls(stored["version"], rules, problems, stored["escalated"], since, marks, question, ratings)

    def schedule(self, asked_at: datetime, expires_at: datetime | None) -> list[tuple[datetime, Due]]:
        """The deadlines in order. `expires_at` is the requester's own, if any: it can only be earlier than the
        policy's."""
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
    """The next deadline. A missed expiry stays due."""
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
    approves: bool = True,
) -> Terms:
    """The terms for each of the actions. `gated`: the gate itself asks, or will. `approves`: an answer can let the
    agent act; the default `ask` covers these, and leaves other questions to callers of the thread."""
    asks = gated or TOO_MANY in question.problems  # the rules for these are unknown, so they are gated
    about = partial(Call, graph=graph or "", agent=agent.name, tenant=tenant, agent_id=agent.id)
    calls = [about(action.name, action.args, question=not (asks or approves)) for action in question.actions]
    judgements = [policies.judge(policy, call) for call in calls]
    rules = tuple(dict.fromkeys(_asking(judgement.rule) if asks else judgement.rule for judgement in judgements))
    problems = (f"{problem.path}: {problem.message}" for judgement in judgements for problem in judgement.problems)
    return Terms(
        version,
        rules,
        tuple(dict.fromkeys(problems)),
        question=any(judgement.released for judgement in judgements),
        ratings=risks.rated(question, [judgement.rule for judgement in judgements]),
    )


def _rules_without_conditions(terms: Terms) -> set[Rule]:
    return {replace(rule, when=None) for rule in terms.rules}


def stricter(before: Terms, now: Terms) -> Terms:
    """The terms after a change of the question: at least as strict as the old and the new ones."""
    rules = tuple(dict.fromkeys((*now.rules, *before.rules)))
    return replace(
        now,
        rules=rules,
        escalated=before.escalated,
        since=before.since,
        marks={**before.marks, **now.marks},
        question=before.question or now.question,
        ratings=risks.merged(before.ratings or (), now.ratings or ()),
    )


def ratings_of(question: Question, terms: Terms) -> dict[str, Rating]:
    """The rating of each action that has one, by its key."""
    ratings = risks.rated_by_name(question, terms.rules) if terms.ratings is None else terms.ratings
    return {rating.action: rating for rating in ratings}


def within(question: Question, terms: Terms) -> Question:
    """The question with only the verbs that the terms allow: a forbidden call can only be rejected."""
    return replace(question, actions=tuple(_within(action, terms) for action in question.actions))


def cover_under(rules: Sequence[Rule], marks: frozenset[Path]) -> Cover:
    """The cover of arguments whose schema marks these paths, under all of these rules."""
    masks = {path for rule in rules for path in rule.mask}
    unmasks = set.intersection(*(set(rule.unmask) for rule in rules)) if rules else set[str]()
    return replace(cover_of(None, masks, unmasks), marked=marks)


def secrets_in(question: Question, terms: Terms) -> set[str]:
    """The secrets in its arguments, as texts."""
    return {secret for action in question.actions for secret in terms.cover(action).texts(action.args)}


def secrets_said(verdict: Verdict, action: Action, terms: Terms) -> set[str]:
    """The secrets in a verdict: all of it, if the action's schema marks the answer as secret."""
    if is_secret_answer(verdict, action):
        return {*leaves(verdict.args), *leaves(verdict.message)}
    return terms.cover(action).texts(verdict.args)


def is_secret_answer(verdict: Verdict, action: Action) -> bool:
    """Whether the answer as a whole is a secret."""
    return verdict.verb is Verb.RESPOND and is_marked(action.schema)


def shown(question: Question, terms: Terms) -> Question:
    """The question with its secrets masked, in the arguments and in the agent's texts."""
    words = Text(secrets_in(question, terms))
    actions = tuple(_shown(question, action, terms.cover(action), words) for action in question.actions)
    text = question.description and words.without(question.description)
    return replace(question, title=words.without(question.title), description=text, actions=actions)


def shown_args(question: Question, action: Action, cover: Cover, words: Text) -> Json:
    """The arguments with their secrets masked. The arguments of a question are the agent's text, so repeated secrets
    are removed as well; in a call that would hide parts that are not secret."""
    masked = cover.masked(action.args)
    return words.inside(masked) if question.type is ItemType.QUESTION else masked


def _shown(question: Question, action: Action, cover: Cover, words: Text) -> Action:
    args = shown_args(question, action, cover, words)
    text = action.description and words.without(action.description)
    return replace(action, args=args, args_text=canonical.text(args), description=text)


def _within(action: Action, terms: Terms) -> Action:
    return replace(action, allowed=tuple(verb for verb in action.allowed if terms.allows(verb)))


def _asking(rule: Rule) -> Rule:
    return replace(rule, then=Effect.ASK) if rule.then in _LENIENT else rule
