"""REST: sign in with a one-time link or a reviewer's key, sign out, show the caller."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from assent.identity.access import Access
from assent.identity.model.access import Kind, Principal, Scope
from assent.surfaces.api.schemas import Body
from assent.surfaces.http import sessions
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.limits.admission import Admission
from assent.surfaces.http.origins import require_same_origin
from assent.surfaces.http.public import public
from assent.surfaces.http.routing import router


class SignIn(Body):
    credential: str = Field(min_length=1, max_length=500, description="a login link's token or a reviewer's API key")


class Me(BaseModel):
    kind: Kind
    id: str
    name: str
    tenant: str
    scopes: list[Scope]

    @classmethod
    def of(cls, principal: Principal) -> Me:
        return cls(
            kind=principal.kind,
            id=principal.id,
            name=principal.name,
            tenant=principal.tenant,
            scopes=sorted(principal.scopes),
        )


def routes(access: Access, admission: Admission) -> APIRouter:
    api = router("/api", "session")

    @api.post("/session")
    @public
    async def sign_in(request: Request, response: Response, body: SignIn) -> Me:
        require_same_origin(request)
        return Me.of(await sessions.sign_in(access, admission, request, response, body.credential))

    @api.delete("/session", status_code=204)
    @public
    async def sign_out(request: Request, response: Response) -> None:
        require_same_origin(request)
        await sessions.sign_out(access, request, response)

    @api.get("/me")
    async def me(caller: Caller) -> Me:
        return Me.of(caller)

    return api
