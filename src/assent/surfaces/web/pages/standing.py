"""*Always allow this*: the scope of a standing approval, then the past calls that it covers, then the approval. Each
step is a plain form."""

from __future__ import annotations

import math
from datetime import timedelta
from uuid import UUID

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from starlette.datastructures import FormData

from assent.errors import AssentError, Forbidden, Invalid
from assent.identity.model.access import Principal, Scope
from assent.review.model.policy_text import standing_lines
from assent.review.model.rules.limits import Bound
from assent.review.policy.policies import Policies
from assent.review.policy.standing import ArgumentLimit, OwnValue, Proposal, StandingTerms
from assent.surfaces.http.authentication import Caller
from assent.surfaces.web import titles
from assent.surfaces.web.errors import PageRoute, mendable
from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.pages.desk import Desk
from assent.surfaces.web.pages.inbox import new_key
from assent.surfaces.web.text.words import resolution_sign
from assent.surfaces.web.views import decisions
from assent.surfaces.web.views.shell import Shell

LIFETIMES = {"1d": "1 day", "7d": "7 days", "30d": "30 days", "90d": "90 days"}
DAYS = 30
MOST_SHOWN = 50


def routes(policies: Policies, desk: Desk, shell: Shell) -> APIRouter:
    web = APIRouter(prefix="/inbox", include_in_schema=False, route_class=PageRoute)
    pages = _Pages(policies, desk, shell)

    @web.get("/{item_id:uuid}/standing")
    async def scope(caller: Caller, item_id: UUID) -> Response:
        return await pages.show(caller, str(item_id), FormData())

    @web.post("/{item_id:uuid}/standing/preview")
    async def preview(request: Request, caller: Caller, item_id: UUID) -> Response:
        posted = await request.form()
        try:
            proposal = await pages.propose(caller, str(item_id), posted)
        except AssentError as error:
            return await pages.show(caller, str(item_id), posted, problem=_mendable(error))
        return await pages.show(caller, str(item_id), posted, proposal=proposal)

    @web.post("/{item_id:uuid}/standing")
    async def give(request: Request, caller: Caller, item_id: UUID) -> Response:
        posted = await request.form()
        try:
            await pages.give(caller, str(item_id), posted)
        except AssentError as error:
            return await pages.show(caller, str(item_id), posted, problem=_mendable(error))
        return RedirectResponse("/inbox/policies?done=allowed#standing", 303)

    return web


class _Pages:
    def __init__(self, policies: Policies, desk: Desk, shell: Shell) -> None:
        self._policies = policies
        self._desk = desk
        self._shell = shell

    async def propose(self, caller: Principal, item_id: str, posted: FormData) -> Proposal:
        revision, hash = decisions.number(posted), str(posted.get("hash", ""))
        since = timedelta(days=DAYS)
        return await self._policies.propose_standing(
            caller, item_id, revision=revision, hash=hash, terms=_terms(posted), since=since
        )

    async def give(self, caller: Principal, item_id: str, posted: FormData) -> None:
        revision, hash = decisions.number(posted), str(posted.get("hash", ""))
        key = str(posted.get("key") or "")[:200] or None
        await self._policies.allow_always(caller, item_id, revision=revision, hash=hash, terms=_terms(posted), key=key)

    async def show(
        self,
        caller: Principal,
        item_id: str,
        posted: FormData,
        *,
        proposal: Proposal | None = None,
        problem: AssentError | None = None,
    ) -> Response:
        caller.require(Scope.POLICY_WRITE)
        page = await self._desk.page(caller, item_id)
        lines = [standing_lines(approval) for approval in proposal.approvals] if proposal else []
        return await self._shell.show(
            caller,
            "standing.html",
            here="inbox",
            status=problem.status if problem else 200,
            item=page.item,
            heading=titles.heading(page.item),
            names=page.names,
            by_agent=str(page.item["requester"]).startswith("agent:"),
            typed={name: str(posted.get(name)) for name in posted},
            posted=bool(posted),
            lifetimes=LIFETIMES,
            days=DAYS,
            proposal=proposal,
            shown=proposal.matches[:MOST_SHOWN] if proposal else [],
            lines=lines,
            outcome=resolution_sign,
            problem=problem,
            key=new_key(),
        )


def _terms(posted: FormData) -> StandingTerms:
    same = posted.get("arguments") != "some"
    return StandingTerms(
        timedelta(days=int(_lifetime(posted).removesuffix("d"))),
        uses=_uses(posted),
        same_args=same,
        limits=() if same else tuple(_limits(posted)),
        same_agent=bool(posted.get("agent")),
        action=str(posted.get("action") or "") or None,
    )


def _lifetime(posted: FormData) -> str:
    lifetime = str(posted.get("lifetime") or "7d")
    if lifetime not in LIFETIMES:
        raise Invalid(_("choose how long the approval lasts"))
    return lifetime


def _uses(posted: FormData) -> int | None:
    text = str(posted.get("uses") or "").strip()
    if not text:
        return None
    if not text.isdecimal() or len(text) > 6:
        raise Invalid(_("the number of uses must be a number"))
    return int(text)


def _limits(posted: FormData) -> list[ArgumentLimit]:
    """`limit.NAME` is `any`, `same`, `at_most` or `at_least`; `value.NAME` is the number beside it."""
    limits = []
    for name in posted:
        argument = name.removeprefix("limit.")
        bound = next((bound for bound in Bound if bound == posted.get(name)), None)
        if argument != name and bound is not None:
            value = OwnValue() if bound is Bound.SAME else _number(str(posted.get(f"value.{argument}") or ""), argument)
            limits.append(ArgumentLimit(argument, bound, value))
    return limits


def _number(text: str, argument: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise Invalid(f"{argument}: enter a number")
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _mendable(error: AssentError) -> AssentError:
    if isinstance(error, Forbidden):
        raise error
    return mendable(error)
