"""The agents page: whom agents work for, where their reviews go, their approval settings and their open items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Query, Response
from fastapi.responses import RedirectResponse

from assent.errors import AssentError
from assent.identity.agents import AgentChange, Agents
from assent.identity.model.access import Principal, Scope
from assent.identity.model.agents import Source
from assent.review.inbox import Inbox
from assent.review.model.policies import Effect
from assent.review.model.routing import Route
from assent.review.policy.agent_rules import AgentPolicies
from assent.review.workspace_reviews import WorkspaceReviews
from assent.surfaces.http.authentication import Caller
from assent.surfaces.web.errors import PageRoute, mendable
from assent.surfaces.web.text.words import Sign
from assent.surfaces.web.views.policy_views import EFFECTS, RuleView
from assent.surfaces.web.views.shell import Shell

PAGE = 50
MOST_ITEMS = 20
PATH = "/inbox/agents"
ROUTES = {
    Route.SYSTEM: Sign("people", "Operators"),
    Route.UNROUTED: Sign("alert", "Unrouted", "bad"),
}
SOURCES = {Source.USER: "User", Source.SYSTEM: "System"}

Text = Annotated[str, Form(max_length=500)]
Number = Annotated[int, Form(ge=0, le=10_000_000)]
Cursor = Annotated[str | None, Query(max_length=1000)]
Done = Annotated[str, Query(max_length=20)]


@dataclass(frozen=True, slots=True)
class Typed:
    name: str = ""
    parent: str = ""
    human: str = ""
    source: Source = Source.USER

    def wanted(self) -> AgentChange:
        return AgentChange(parent=self.parent.strip() or None, human=self.human.strip() or None, source=self.source)


def _typed(
    name: Text = "", parent: Text = "", human: Text = "", source: Annotated[Source, Form()] = Source.USER
) -> Typed:
    return Typed(name, parent, human, source)


Sent = Annotated[Typed, Depends(_typed)]


def routes(desk: AgentsDesk) -> APIRouter:
    web = APIRouter(prefix=PATH, include_in_schema=False, route_class=PageRoute)

    @web.get("")
    async def agents_page(caller: Caller, cursor: Cursor = None, done: Done = "") -> Response:
        return await desk.show_all(caller, cursor=cursor, done=done)

    @web.post("")
    async def add(caller: Caller, typed: Sent) -> Response:
        try:
            agent = await desk.agents.create(caller, typed.name, typed.wanted())
        except AssentError as error:
            return await desk.show_all(caller, typed=typed, problem=_mendable(error))
        return RedirectResponse(f"{PATH}/{agent.id}?done=added", 303)

    @web.get("/{agent_id}")
    async def agent_page(caller: Caller, agent_id: str, done: Done = "") -> Response:
        return await desk.show(caller, agent_id, done=done)

    @web.post("/{agent_id}")
    async def change(caller: Caller, agent_id: str, typed: Sent) -> Response:
        try:
            await desk.agents.change(caller, agent_id, typed.wanted())
        except AssentError as error:
            return await desk.show(caller, agent_id, typed=typed, problem=_mendable(error))
        return RedirectResponse(f"{PATH}/{agent_id}?done=changed", 303)

    @web.post("/{agent_id}/removal")
    async def remove(caller: Caller, agent_id: str) -> Response:
        try:
            await desk.agents.remove(caller, agent_id)
        except AssentError as error:
            return await desk.show(caller, agent_id, problem=_mendable(error))
        return RedirectResponse(f"{PATH}?done=removed", 303)

    _settings(web, desk)
    return web


def _settings(web: APIRouter, desk: AgentsDesk) -> None:
    """The approval settings: each change puts a new version of the policy in force."""

    @web.post("/{agent_id}/rules")
    async def set_rule(
        caller: Caller, agent_id: str, then: Annotated[Effect, Form()], tool: Text = "*", version: Number = 0
    ) -> Response:
        try:
            await desk.policies.set(caller, agent_id, tool, then, after=version)
        except AssentError as error:
            return await desk.show(caller, agent_id, problem=_mendable(error))
        return RedirectResponse(f"{PATH}/{agent_id}?done=put#rules", 303)

    @web.post("/{agent_id}/rules/removal")
    async def unset_rule(caller: Caller, agent_id: str, number: Number = 0, version: Number = 0) -> Response:
        try:
            await desk.policies.unset(caller, agent_id, number, after=version)
        except AssentError as error:
            return await desk.show(caller, agent_id, problem=_mendable(error))
        return RedirectResponse(f"{PATH}/{agent_id}?done=put#rules", 303)


class AgentsDesk:
    def __init__(
        self, agents: Agents, policies: AgentPolicies, reviews: WorkspaceReviews, inbox: Inbox, shell: Shell
    ) -> None:
        self.agents = agents
        self.policies = policies
        self._reviews = reviews
        self._inbox = inbox
        self._shell = shell

    async def show_all(
        self,
        caller: Principal,
        *,
        cursor: str | None = None,
        done: str = "",
        typed: Typed | None = None,
        problem: AssentError | None = None,
    ) -> Response:
        page = await self.agents.list(caller, limit=PAGE, cursor=cursor)
        return await self._draw(
            caller,
            "agents.html",
            problem,
            page=page,
            cursor=cursor,
            routing=await self._reviews.routings(caller, [agent.id for agent in page.items]),
            typed=typed or Typed(),
            opened=typed is not None,
            done=done,
        )

    async def show(
        self,
        caller: Principal,
        agent_id: str,
        *,
        done: str = "",
        typed: Typed | None = None,
        problem: AssentError | None = None,
    ) -> Response:
        agent = await self.agents.get(caller, agent_id)
        settings = await self.policies.of(caller, agent.id)
        items = await self._inbox.list(
            caller, filter=f"is:pending agent:{agent.id} for:anyone", limit=MOST_ITEMS, arguments=True
        )
        routing = await self._reviews.routings(caller, [agent.id])
        return await self._draw(
            caller,
            "agent.html",
            problem,
            agent=agent,
            routing=routing[agent.id],
            settings=settings,
            rules=[(rule, RuleView(rule.number, rule.rule)) for rule in settings.rules],
            effects=EFFECTS,
            may_put=caller.may(Scope.POLICY_WRITE),
            items=items,
            typed=typed or Typed(agent.name, agent.parent or "", agent.human or "", agent.source),
            done=done,
        )

    async def _draw(self, caller: Principal, template: str, problem: AssentError | None, **facts: Any) -> Response:
        return await self._shell.show(
            caller,
            template,
            here="agents",
            status=problem.status if problem else 200,
            problem=problem,
            may_write=caller.may(Scope.ADMIN),
            signs=ROUTES,
            sources=SOURCES,
            **facts,
        )


def _mendable(error: AssentError) -> AssentError:
    if error.status in (403, 404):
        raise error
    return mendable(error)
