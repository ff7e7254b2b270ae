"""Standing approvals, *always allow this*: made from an item, narrowed to its agent and arguments, and tried out on
past calls before they are given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from assent.errors import Conflict, Invalid, NotFound
from assent.identity.model.access import Principal
from assent.identity.rows.agents import agent_of
from assent.kernel import canonical, events
from assent.kernel.canonical import Json
from assent.kernel.ids import new_id
from assent.kernel.store.transaction import Tx
from assent.review.decisions.consequences import Case, case_of
from assent.review.model import conditions, policies
from assent.review.model.items import Item
from assent.review.model.policies import Call, Policy, StandingApproval
from assent.review.model.questions import Action, ItemType
from assent.review.model.rules.limits import Bound, Limit, condition_of
from assent.review.model.search.filters import Filter
from assent.review.policy.past_calls import past_calls
from assent.review.rows import policies as rows
from assent.review.search import item_terms

LONGEST_APPROVAL = timedelta(days=90)
LONGEST_REPLAY = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class OwnValue:
    """Stands for the value of the item's own call."""


@dataclass(frozen=True, slots=True)
class ArgumentLimit:
    argument: str
    bound: Bound = Bound.SAME
    value: Json | OwnValue = OwnValue()


@dataclass(frozen=True, slots=True)
class StandingTerms:
    """The scope of a standing approval, relative to an item. `action` is the key of one of its calls; None means all.
    `limits` and `condition` matter only without `same_args`."""

    lifetime: timedelta
    uses: int | None = None
    same_args: bool = True
    limits: tuple[ArgumentLimit, ...] = ()
    condition: str | None = None
    same_agent: bool = False
    action: str | None = None

    def check(self) -> None:
        if not timedelta() < self.lifetime <= LONGEST_APPROVAL:
            raise Invalid(f"a standing approval lasts at most {LONGEST_APPROVAL.days} days")
        if self.uses is not None and self.uses < 1:
            raise Invalid("uses must be at least 1")
        if self.same_args and self.limits:
            raise Invalid("limits need same_args = false: exactly these arguments cannot be limited further")
        _check_condition(self.condition)


@dataclass(frozen=True, slots=True)
class Match:
    """A past call that the standing approval would have covered. `stopped_by` is the rule of the policy in force that
    asks a person nevertheless; None if the call would have run."""

    item: Item
    tool: str
    stopped_by: str | None


@dataclass(frozen=True, slots=True)
class Proposal:
    approvals: Sequence[StandingApproval]
    looked_at: int
    matches: Sequence[Match]

    @property
    def would_have_run(self) -> list[Match]:
        return [match for match in self.matches if match.stopped_by is None]

    @property
    def outcomes(self) -> dict[str, int]:
        """How the calls that would have run were decided: the resolution of the item, or its status without one."""
        items = (match.item for match in self.would_have_run)
        return dict(Counter(str(item.resolution or item.status.lower()) for item in items).most_common())


def propose(tx: Tx, caller: Principal, item: Item, terms: StandingTerms, since: timedelta) -> Proposal:
    """The standing approvals that `give` would make, and the past calls that they cover."""
    if not timedelta() < since <= LONGEST_REPLAY:
        raise Invalid(f"a replay looks back at most {LONGEST_REPLAY.days} days")
    drafts = _drafts(tx, item, terms)
    policy, looked_at, matches = rows.in_force(tx).parsed(), 0, list[Match]()
    for past in past_calls(tx, caller, Filter(newer=since)):
        looked_at += 1
        if not past.call.question and any(policies.covers(draft, past.call, tx.now()) for draft in drafts):
            matches.append(Match(past.item, past.call.tool, _stopping(policy, past.call)))
    return Proposal(drafts, looked_at, matches)


def give(tx: Tx, caller: Principal, item: Item, terms: StandingTerms) -> list[dict[str, Any]]:
    made = []
    for draft in _drafts(tx, item, terms):
        scope = {name: getattr(draft, name) for name in ("tool", "graph", "agent", "condition")}
        rows.insert_approval(
            tx,
            approval_id=draft.id,
            **scope,
            args_hash=draft.args_hash,
            item_id=item.id,
            actor=caller.actor,
            expires_at=draft.expires_at,
            uses_left=draft.uses_left,
        )
        limits = {"uses": draft.uses_left, "until": draft.expires_at.isoformat(), "same_args": terms.same_args}
        events.append(tx, caller, "approval.given", item.subject, {"approval": draft.id, **scope, **limits})
        made.append(approval_view(rows.approval(tx, draft.id)))
    return made


def revoke(tx: Tx, caller: Principal, approval_id: str) -> dict[str, Any]:
    row = require_approval(tx, approval_id)
    if rows.revoke_approval(tx, approval_id):
        subject = f"item:{row.item_id}" if row.item_id else "policy"
        events.append(tx, caller, "approval.revoked", subject, {"approval": approval_id})
    return approval_view(rows.approval(tx, approval_id))


def require_approval(tx: Tx, approval_id: str) -> Any:
    row = rows.approval(tx, approval_id)
    if row is None:
        raise NotFound(f"standing approval {approval_id!r} not found")
    return row


def approval_view(row: Any) -> dict[str, Any]:
    names = ("tool", "graph", "agent", "condition", "item_id", "actor", "uses", "uses_left")
    facts = {name: getattr(row, name) for name in names}
    times = {name: getattr(row, name) for name in ("created_at", "expires_at", "revoked_at")}
    texts = {name: None if at is None else at.isoformat() for name, at in times.items()}
    return {"id": row.approval_id, "same_args": row.args_hash is not None, **facts, **texts}


def _drafts(tx: Tx, item: Item, terms: StandingTerms) -> list[StandingApproval]:
    case = case_of(tx, item)
    _require_standing(tx, case)
    if case.question.type is not ItemType.TOOL or not item.called_here:
        raise Invalid("only tool calls of this server's graphs can have a standing approval")
    agent = agent_of(tx, item.requester).id
    if terms.same_agent and not agent:
        raise Invalid("no agent asked this, so a standing approval cannot be limited to it")
    plain = StandingApproval("", "", tx.now() + terms.lifetime, item.graph_id, uses_left=terms.uses)
    whose = replace(plain, agent=agent if terms.same_agent else None)
    return [replace(whose, id=new_id(), **_narrowed(case, action, terms)) for action in _chosen(case, terms)]


def _chosen(case: Case, terms: StandingTerms) -> Sequence[Action]:
    actions = case.question.actions
    if terms.action is not None:
        actions = tuple(action for action in actions if action.key == terms.action)
        if not actions:
            raise Invalid(f"the item has no action {terms.action!r}")
    if terms.limits and len(actions) > 1:
        raise Invalid("limits apply to one call", hint="name it with action")
    return actions


def _narrowed(case: Case, action: Action, terms: StandingTerms) -> dict[str, Any]:
    if terms.same_args:
        return {"tool": action.name, "condition": terms.condition, "args_hash": canonical.digest(action.args)}
    condition = condition_of((_limit(case, action, limit) for limit in terms.limits), terms.condition)
    _check_condition(condition)
    return {"tool": action.name, "condition": condition}


def _limit(case: Case, action: Action, limit: ArgumentLimit) -> Limit:
    """A condition is readable by everyone, so it cannot contain a secret."""
    args = action.args if isinstance(action.args, dict) else {}
    if limit.argument not in args:
        raise Invalid(f"the call has no argument {limit.argument!r}")
    if case.covers[action.key].holds({limit.argument: args[limit.argument]}):
        raise Invalid(f"{limit.argument} is a secret, so it cannot be limited", hint="allow exactly these arguments")
    value = args[limit.argument] if isinstance(limit.value, OwnValue) else limit.value
    return Limit(limit.argument, limit.bound, value)


def _check_condition(condition: str | None) -> None:
    try:
        if condition is not None:
            conditions.compile(condition)
    except conditions.InvalidCondition as error:
        raise Invalid(f"condition: {error}") from None


def _stopping(policy: Policy, call: Call) -> str | None:
    judgement = policies.judge(policy, call)
    stands = judgement.rule.barrier is None and not judgement.problems
    return None if stands else judgement.rule.name


def _require_standing(tx: Tx, case: Case) -> None:
    """Refuses a standing approval that would never apply: some rules need a decision each time."""
    item = case.item
    now = item_terms.judged(tx, case.question, graph_id=item.graph_id, requester=item.requester, gated=item.gated)
    for rule in (*case.terms.rules, *now.rules):
        if rule.barrier is not None:
            raise Conflict(
                f"the rule {rule.name!r} {rule.barrier}, so a standing approval is not possible",
                hint="change the rule, or let each call be decided",
                rule=rule.name,
            )
