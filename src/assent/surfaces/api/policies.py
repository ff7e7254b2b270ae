"""REST: policies, replays of past calls, and standing approvals."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from assent.identity.passkeys import Passkeys
from assent.kernel.canonical import Json
from assent.review.policies import LONGEST_APPROVAL, Policies, Replay
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


class ReplayView(BaseModel):
    looked_at: int
    differences: list[DifferenceView]

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
            )
            for item_id, difference in replay.differences
        ]
        return cls(looked_at=replay.looked_at, differences=differences)


class StandingIn(Body):
    item_id: Annotated[str, Field(max_length=100)]
    revision: int = Field(description="the revision that you were shown, with its `hash`")
    hash: str
    lifetime_seconds: float = Field(gt=0, le=LONGEST_APPROVAL.total_seconds())
    uses: int | None = Field(None, ge=1, le=1_000_000)
    condition: Annotated[str, Field(max_length=2000)] | None = Field(None, description="CEL over `args`")
    same_args: bool = Field(True, description="only for exactly the arguments of that item")


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
            caller,
            body.item_id,
            revision=body.revision,
            hash=body.hash,
            lifetime=timedelta(seconds=body.lifetime_seconds),
            uses=body.uses,
            condition=body.condition,
            same_args=body.same_args,
            key=key,
        )

    @api.get("/standing-approvals/{approval_id}")
    async def get_standing(caller: Caller, approval_id: str) -> View:
        return await policies.standing_approval(caller, approval_id)

    @api.delete("/standing-approvals/{approval_id}")
    async def revoke_standing(caller: Caller, approval_id: str) -> View:
        return await policies.revoke(caller, approval_id)

    return api
