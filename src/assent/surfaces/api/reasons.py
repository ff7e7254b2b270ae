"""REST: saved reasons for rejections and for requests for a revision."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from assent.review.collaboration.reasons import LONGEST_NAME, LONGEST_TEXT, Reasons, Use, Wanted
from assent.surfaces.api.schemas import Body, Key
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.routing import router


class ReasonIn(Body):
    name: Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
    text: Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]
    use: Use = Field(Use.BOTH, description="where it is offered: reject, revision or both")

    def wanted(self) -> Wanted:
        return Wanted(self.name, self.text, self.use)


class ReasonView(BaseModel):
    id: str
    name: str
    text: str
    use: Use
    created_at: str


def routes(reasons: Reasons) -> APIRouter:
    api = router("/api/reasons", "reasons")

    @api.get("")
    async def list_reasons(caller: Caller) -> list[ReasonView]:
        return [ReasonView(**reason) for reason in await reasons.list(caller)]

    @api.post("", status_code=201)
    async def create_reason(caller: Caller, body: ReasonIn, key: Key = None) -> ReasonView:
        return ReasonView(**await reasons.create(caller, body.wanted(), key=key))

    @api.put("/{reason_id}")
    async def update_reason(caller: Caller, reason_id: str, body: ReasonIn) -> ReasonView:
        return ReasonView(**await reasons.update(caller, reason_id, body.wanted()))

    @api.delete("/{reason_id}")
    async def remove_reason(caller: Caller, reason_id: str) -> ReasonView:
        return ReasonView(**await reasons.remove(caller, reason_id))

    return api
