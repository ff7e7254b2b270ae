"""REST: policies, replays of past calls, and standing approvals."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from assent.identity.passkeys import Passkeys
from assent.kernel.canonical import Json
from assent.review.model.policies import StandingApproval
from assent.review.model.policy_text import standing_lines
from assent.review.model.rules.limits import Bound
from assent.review.policy.policies import Policies, Replay
from assent.review.policy.standing import (
    LONGEST_APPROVAL,
    LONGEST_REPLAY,
    ArgumentLimit,
    Match,
    OwnValue,
    Proposal,
    StandingTerms,
)
from assent.review.rows.policies import Version
from assent.surfaces.api.schemas import Body, Cursor, Key, Limit, PageOf
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.routing import router

View = dict[str, Any]


class PolicyIn(Body):
    policy: Json = Field(description="the policy as a JSON document, or as a TOML text")


class PolicyPut(PolicyIn):
    after: int | None = Field(None, ge=0, description="the version it was made from; 409 if a newer one exists")


class PolicyView(BaseModel):
    version: int = Field(description="0 if no policy is set: then every call needs a person")
    policy: Json
    hash: str
    source: str
    actor: str
    created_at: str | None
    warnings: list[str] = Field([], description="for the policy in force: calls that nobody could approve, and why")

    @classmethod
    def of(cls, version: Version, warnings: Sequence[object] = ()) -> PolicyView:
        at = version.created_at.isoformat() if version.created_at else None
        return cls(
            version=version.number,
            policy=version.policy,
            hash=version.hash,
            source=version.source,
            actor=version.actor,
            created_at=at,
            warnings=list(map(str, warnings)),
        )


class DifferenceView(BaseModel):
    item_id: str
    tool: str
    before: str
    after: str
    rule: str
    problems: list[str]
    loosens: bool = Field(description="the call would need less approval than before")


class ReplayView(BaseModel):
    looked_at: int
    differences: list[DifferenceView]
    loosens: list[str] = Field(description="the ways in which it is looser than the policy in force")

    @classmethod
    def of(cls, replay: Replay) -> ReplayView:
        differences = [
            DifferenceView(
                item_id=item_id,
                tool=difference.call.tool,
                before=difference.before,
                after=difference.after.effect,
                rule=difference.after.rule.name,
                problems=[f"{problem.path}: {problem.message}" for problem in difference.after.problems],
                loosens=difference.loosens,
            )
            for item_id, difference in replay.differences
        ]
        return cls(looked_at=replay.looked_at, differences=differences, loosens=list(map(str, replay.loosened)))


class LimitIn(Body):
    argument: Annotated[str, Field(max_length=200)]
    bound: Bound = Bound.SAME
    value: Json = Field(None, description="if it is left out, the value of the item's own call")


class StandingIn(Body):
    item_id: Annotated[str, Field(max_length=100)]
    revision: int = Field(description="the revision that you were shown, with its `hash`")
    hash: str
    lifetime_seconds: float = Field(gt=0, le=LONGEST_APPROVAL.total_seconds())
    uses: int | None = Field(None, ge=1, le=1_000_000)
    condition: Annotated[str, Field(max_length=2000)] | None = Field(None, description="CEL over `args`")
    same_args: bool = Field(True, description="only for exactly the arguments of that item")
    limits: Annotated[list[LimitIn], Field(max_length=100)] = Field([], description="with `same_args: false`")
    same_agent: bool = Field(False, description="only for the agent that asked")
    action: Annotated[str, Field(max_length=200)] | None = Field(None, description="the key of one call of the item")

    @property
    def terms(self) -> StandingTerms:
        return StandingTerms(
            timedelta(seconds=self.lifetime_seconds),
            uses=self.uses,
            same_args=self.same_args,
            limits=tuple(_limit(limit) for limit in self.limits),
            condition=self.condition,
            same_agent=self.same_agent,
            action=self.action,
        )


class ProposalIn(StandingIn):
    days: int = Field(30, ge=1, le=LONGEST_REPLAY.days, description="how far the replay looks back")


class MatchView(BaseModel):
    item_id: str
    title: str
    tool: str
    created_at: str
    status: str
    resolution: str | None
    decided_by: str | None
    would_have_run: bool
    sample: bool
    stopped_by: str | None = Field(description="the rule in force that would have asked nevertheless")


class ScopeView(BaseModel):
    tool: str
    graph: str | None
    agent: str | None
    condition: str | None
    same_args: bool
    uses_left: int | None
    expires_at: str


class ProposalView(BaseModel):
    """Nothing is given yet."""

    approvals: list[ScopeView]
    diff: str = Field(description="the additions to what runs without a person, as text")
    looked_at: int
    would_have_run: int
    outcomes: dict[str, int] = Field(description="how people decided about the calls that would have run")
    matches: list[MatchView]

    @classmethod
    def of(cls, proposal: Proposal) -> ProposalView:
        return cls(
            approvals=[ScopeView(**_scope(approval)) for approval in proposal.approvals],
            diff="\n\n".join(_added(approval) for approval in proposal.approvals),
            looked_at=proposal.looked_at,
            would_have_run=len(proposal.would_have_run),
            outcomes=proposal.outcomes,
            matches=[_match(match) for match in proposal.matches],
        )


def _limit(limit: LimitIn) -> ArgumentLimit:
    named = "value" in limit.model_fields_set
    return ArgumentLimit(limit.argument, limit.bound, limit.value if named else OwnValue())


def _scope(approval: StandingApproval) -> View:
    names = ("tool", "graph", "agent", "condition", "uses_left")
    facts = {name: getattr(approval, name) for name in names}
    return {**facts, "same_args": approval.args_hash is not None, "expires_at": approval.expires_at.isoformat()}


def _added(approval: StandingApproval) -> str:
    return "\n".join(f"+ {line}" for line in standing_lines(approval))


def _match(match: Match) -> MatchView:
    item = match.item
    return MatchView(
        item_id=item.id,
        title=item.title,
        tool=match.tool,
        created_at=item.created_at.isoformat(),
        status=item.status,
        resolution=item.resolution,
        decided_by=item.decided_by,
        would_have_run=match.stopped_by is None,
        sample=item.sample,
        stopped_by=match.stopped_by,
    )


def routes(policies: Policies, passkeys: Passkeys) -> APIRouter:
    api = router("/api", "policies")

    @api.get("/policies")
    async def policy_in_force(caller: Caller) -> PolicyView:
        return PolicyView.of(await policies.in_force(caller), await policies.missing_passkeys(caller))

    @api.put("/policies")
    async def put_policy(caller: Caller, body: PolicyPut) -> PolicyView:
        version = await policies.put(caller, body.policy, after=body.after)
        return PolicyView.of(version, await policies.missing_passkeys(caller))

    @api.get("/policies/versions")
    async def policy_versions(caller: Caller, limit: Limit = 50, cursor: Cursor = None) -> PageOf[PolicyView]:
        page = await policies.versions(caller, limit=limit, cursor=cursor)
        return PageOf(items=[PolicyView.of(version) for version in page.items], next=page.next)

    @api.post("/policies/test")
    async def test_policy(caller: Caller, body: PolicyIn) -> ReplayView:
        return ReplayView.of(await policies.test(caller, body.policy))

    @api.get("/standing-approvals")
    async def list_standing(caller: Caller, limit: Limit = 50, cursor: Cursor = None) -> PageOf[View]:
        page = await policies.standing(caller, limit=limit, cursor=cursor)
        return PageOf(items=page.items, next=page.next)

    @api.post("/standing-approvals", status_code=201)
    async def allow_always(caller: Caller, body: StandingIn, key: Key = None) -> list[View]:
        return await policies.allow_always(
            caller, body.item_id, revision=body.revision, hash=body.hash, terms=body.terms, key=key
        )

    @api.post("/standing-approvals/proposal")
    async def propose_standing(caller: Caller, body: ProposalIn) -> ProposalView:
        """The approvals that the same body would give, and a replay over past calls. Nothing is given."""
        proposal = await policies.propose_standing(
            caller,
            body.item_id,
            revision=body.revision,
            hash=body.hash,
            terms=body.terms,
            since=timedelta(days=body.days),
        )
        return ProposalView.of(proposal)

    @api.get("/standing-approvals/{approval_id}")
    async def get_standing(caller: Caller, approval_id: str) -> View:
        return await policies.standing_approval(caller, approval_id)

    @api.delete("/standing-approvals/{approval_id}")
    async def revoke_standing(caller: Caller, approval_id: str) -> View:
        return await policies.revoke(caller, approval_id)

    return api
