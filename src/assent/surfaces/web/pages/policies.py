"""The policies page: the policy in force, a test against history, and standing approvals."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Response
from fastapi.responses import RedirectResponse

from assent.errors import AssentError, Conflict
from assent.identity.model.access import Principal, Scope
from assent.identity.passkeys import Passkeys
from assent.kernel.store.paging import LARGEST_PAGE
from assent.kernel.store.ports import Store
from assent.review.model.policies import ASK_ALL, to_json
from assent.review.model.policy_text import to_toml
from assent.review.policy.policies import Policies, Replay
from assent.review.rows.policies import Version
from assent.review.samples import Samples
from assent.surfaces.http.authentication import Caller
from assent.surfaces.web.errors import PageRoute, mendable
from assent.surfaces.web.views import people, policy_views
from assent.surfaces.web.views.shell import Shell

MOST_SHOWN = 200
LONGEST = 500_000
_VERSIONS = 20
_PATH = "/inbox/policies"

Text = Annotated[str, Form(max_length=LONGEST)]
Number = Annotated[int, Form(ge=0)]
Cursor = Annotated[str | None, Query(max_length=1000)]


def routes(policies: Policies, passkeys: Passkeys, samples: Samples, store: Store, shell: Shell) -> APIRouter:
    web = APIRouter(prefix=_PATH, include_in_schema=False, route_class=PageRoute)
    desk = _Desk(policies, passkeys, samples, store, shell)

    @web.get("")
    async def policies_page(
        caller: Caller, versions: Cursor = None, standing: Cursor = None, done: Annotated[str, Query()] = ""
    ) -> Response:
        return await desk.show(caller, versions=versions, standing=standing, done=done)

    @web.post("")
    async def put(caller: Caller, policy: Text = "", version: Number = 0) -> Response:
        try:
            await policies.put(caller, policy, after=version)
        except Conflict as error:
            return await desk.show(caller, typed=policy, made_from=version, problem=error)
        except AssentError as error:
            return await desk.show(caller, typed=policy, made_from=version, problem=_mendable(error))
        return RedirectResponse(f"{_PATH}?done=put", 303)

    @web.post("/test")
    async def test(caller: Caller, policy: Text = "", version: Number = 0) -> Response:
        try:
            replay = await policies.test(caller, policy)
        except AssentError as error:
            return await desk.show(caller, typed=policy, made_from=version, problem=_mendable(error))
        return await desk.show(caller, typed=policy, made_from=version, replay=replay)

    @web.post("/standing/{approval_id}/revocation")
    async def revoke(caller: Caller, approval_id: str) -> Response:
        await policies.revoke(caller, approval_id)
        return RedirectResponse(f"{_PATH}?done=revoked#standing", 303)

    return web


class _Desk:
    def __init__(self, policies: Policies, passkeys: Passkeys, samples: Samples, store: Store, shell: Shell) -> None:
        self._policies = policies
        self._samples = samples
        self._passkeys = passkeys
        self._store = store
        self._shell = shell

    async def show(
        self,
        caller: Principal,
        *,
        versions: str | None = None,
        standing: str | None = None,
        done: str = "",
        typed: str | None = None,
        made_from: int | None = None,
        problem: AssentError | None = None,
        replay: Replay | None = None,
    ) -> Response:
        """`typed` is the person's text, based on the version `made_from`."""
        current = await self._policies.in_force(caller)
        history = await self._policies.versions(caller, limit=_VERSIONS, cursor=versions)
        approvals = await self._policies.standing(caller, cursor=standing)
        before = await self._before(caller, history.next)
        written = [version.actor for version in (current, *history.items)] + [row["actor"] for row in approvals.items]
        written += [f"agent:{row['agent']}" for row in approvals.items if row["agent"]]
        conflict = isinstance(problem, Conflict)
        facts: dict[str, Any] = {
            "current": current,
            "rules": policy_views.rules(current.parsed()),
            "missing": await self._policies.missing_passkeys(caller),
            "names": await people.names(self._store, caller, written),
            "history": policy_views.with_changes(history.items, before),
            "versions": {"at": versions, "next": history.next},
            "standing": approvals,
            "standing_at": standing,
            "text": _toml(current) if typed is None else typed.replace("\r\n", "\n"),
            "made_from": current.number if made_from is None or conflict else made_from,
            "meanwhile": await self._since(caller, made_from, current) if conflict else None,
            "faults": policy_views.faults(typed or "", problem.extra.get("errors", ())) if problem else [],
        }
        return await self._shell.show(
            caller,
            "policies.html",
            here="policies",
            status=problem.status if problem else 200,
            may_write=caller.may(Scope.POLICY_WRITE),
            may_remove=caller.may(Scope.ADMIN),
            samples=await self._samples.count(caller) if replay else 0,
            typed=typed is not None,
            problem=problem,
            replay=replay,
            shown=replay.differences[:MOST_SHOWN] if replay else [],
            views=policy_views,
            done=done,
            **facts,
        )

    async def _before(self, caller: Principal, cursor: str | None) -> Version | None:
        """The version before the last one of a page, for its diff."""
        if cursor is None:
            return None
        page = await self._policies.versions(caller, limit=1, cursor=cursor)
        return page.items[0] if page.items else None

    async def _since(self, caller: Principal, number: int | None, current: Version) -> list[tuple[str, str]]:
        """The changes since the version that the person started from."""
        nothing = Version(0, to_json(ASK_ALL), "", "none", "system")  # before the first version
        versions = (await self._policies.versions(caller, limit=LARGEST_PAGE)).items
        base = next((version for version in (*versions, nothing) if version.number == number), None)
        return policy_views.changes(base, current) if base else []


def _toml(version: Version) -> str:
    assert isinstance(version.policy, dict)
    return to_toml(version.policy)


def _mendable(error: AssentError) -> AssentError:
    if error.status == 403:
        raise error
    return mendable(error)
