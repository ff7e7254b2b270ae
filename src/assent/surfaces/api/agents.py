"""REST: the registry of agents of the caller's tenant."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from assent.identity.agents import KEEP, AgentChange, Agents
from assent.identity.model.agents import AgentFilter, RegisteredAgent, Source
from assent.surfaces.api.schemas import Body, Cursor, Limit, PageOf
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.routing import router

Name = Annotated[str, Field(min_length=1, max_length=200)]
Part = Annotated[str | None, Field(max_length=200, description="a part of the name")]


class AgentFields(Body):
    parent: Name | None = Field(None, description="the agent that it works for, by name or id")
    human: Name | None = Field(None, description="the person who reviews its work, by name")
    source: Source | None = None


class AgentIn(AgentFields):
    name: Name

    def wanted(self) -> AgentChange:
        return AgentChange(parent=self.parent, human=self.human, source=self.source)


class AgentChangeIn(AgentFields):
    """Fields that are left out stay unchanged; null removes the parent or the person."""

    name: Name | None = None

    def wanted(self) -> AgentChange:
        given = self.model_fields_set
        parent, human = (getattr(self, name) if name in given else KEEP for name in ("parent", "human"))
        return AgentChange(self.name, parent, human, self.source)


class AgentView(BaseModel):
    id: str = Field(description="the id of its principal: `agent:<id>` in the timeline")
    name: str
    parent: str | None
    parent_id: str | None = Field(description="still there if the parent was removed")
    human: str | None
    human_id: str | None
    source: Source
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, agent: RegisteredAgent) -> AgentView:
        return cls(**{name: getattr(agent, name) for name in cls.model_fields})


def routes(agents: Agents) -> APIRouter:
    api = router("/api/agents", "agents")

    @api.post("", status_code=201)
    async def create_agent(caller: Caller, body: AgentIn) -> AgentView:
        return AgentView.of(await agents.create(caller, body.name, body.wanted()))

    @api.get("")
    async def list_agents(
        caller: Caller,
        text: Part = None,
        parent: Name | None = None,
        human: Name | None = None,
        source: Source | None = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> PageOf[AgentView]:
        page = await agents.list(caller, AgentFilter(text, parent, human, source), limit=limit, cursor=cursor)
        return PageOf(items=[AgentView.of(agent) for agent in page.items], next=page.next)

    @api.get("/{agent}")
    async def get_agent(caller: Caller, agent: str) -> AgentView:
        return AgentView.of(await agents.get(caller, agent))

    @api.patch("/{agent}")
    async def change_agent(caller: Caller, agent: str, body: AgentChangeIn) -> AgentView:
        return AgentView.of(await agents.change(caller, agent, body.wanted()))

    @api.delete("/{agent}")
    async def remove_agent(caller: Caller, agent: str) -> AgentView:
        return AgentView.of(await agents.remove(caller, agent))

    return api
