"""REST: the caller's own inboxes, which are saved views of the inbox."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Request
from pydantic import BaseModel, Field

from assent.review.inboxes import LONGEST_NAME, Inboxes, Wanted
from assent.surfaces.api.schemas import Body
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.origins import address_of
from assent.surfaces.http.routing import router

Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200)]
Short = Annotated[str, Field(max_length=500)]


class InboxIn(Body):
    """Either `graph_id`, for the items of a deployment's graph, or `filter`, for the items that match."""

    graph_id: Short | None = Field(None, description="a graph's name or an assistant's id")
    url: Short | None = Field(None, description="the deployment; this server by default")
    name: str | None = Field(None, max_length=LONGEST_NAME, description="the graph's name by default")
    filter: Short | None = Field(None, description="such as `is:pending type:tool risk:high`; needs a name")

    def wanted(self) -> Wanted:
        return Wanted(self.graph_id or "", self.url or "", self.name or "", self.filter or "")


class InboxView(BaseModel):
    id: str
    name: str
    filter: str = Field(description="its filter, as in `GET /api/inbox/items`")
    graph_id: str | None
    url: str | None
    local: bool = Field(description="whether the deployment is this server")
    problem: str | None = Field(description="why its deployment cannot be followed now")
    count: int = Field(description="number of its pending items")
    at_least: bool = Field(description="whether there may be more: at most 10,000 pending items are examined")


def routes(inboxes: Inboxes) -> APIRouter:
    api = router("/api/inboxes", "inboxes")

    @api.get("")
    async def list_inboxes(caller: Caller) -> list[InboxView]:
        return [InboxView(**inbox) for inbox in await inboxes.list(caller)]

    @api.post("", status_code=201)
    async def create_inbox(request: Request, caller: Caller, body: InboxIn, key: Key = None) -> InboxView:
        return InboxView(**await inboxes.create(caller, body.wanted(), here=address_of(request), key=key))

    @api.get("/{inbox_id}")
    async def get_inbox(caller: Caller, inbox_id: str) -> InboxView:
        return InboxView(**await inboxes.get(caller, inbox_id))

    @api.put("/{inbox_id}")
    async def update_inbox(request: Request, caller: Caller, inbox_id: str, body: InboxIn) -> InboxView:
        return InboxView(**await inboxes.update(caller, inbox_id, body.wanted(), here=address_of(request)))

    @api.delete("/{inbox_id}")
    async def remove_inbox(caller: Caller, inbox_id: str) -> InboxView:
        return InboxView(**await inboxes.remove(caller, inbox_id))

    return api
