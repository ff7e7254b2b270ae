"""REST: API keys of the caller's tenant."""

from __future__ import annotations

from datetime import datetime, timedelta

from fastapi import APIRouter
from pydantic import BaseModel, Field

from assent.api.schemas import Body, Cursor, Limit, PageOf
from assent.domain.access import Kind, Scope
from assent.domain.keys import ApiKey
from assent.http.authentication import Caller
from assent.http.routing import router
from assent.services.keys import Keys


class KeyRequest(Body):
    kind: Kind
    name: str = Field(min_length=1, max_length=200)
    user: str | None = Field(None, description="whose key it is; required for kind reviewer")
    scopes: list[str] = Field(default_factory=list, description="empty means the usual ones of this kind")
    lifetime_seconds: int | None = Field(None, ge=1, le=10 * 365 * 86400)


class KeyView(BaseModel):
    id: str
    kind: Kind
    name: str
    user: str | None
    scopes: list[Scope]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None

    @classmethod
    def of(cls, key: ApiKey) -> KeyView:
        return cls(
            id=key.id,
            kind=key.kind,
            name=key.name,
            user=key.owner,
            scopes=sorted(key.scopes),
            created_at=key.created_at,
            expires_at=key.expires_at,
            revoked_at=key.revoked_at,
            last_used_at=key.last_used_at,
        )


class NewKeyView(BaseModel):
    key: KeyView
    secret: str = Field(description="shown this once; only its hash is stored")


def routes(keys: Keys) -> APIRouter:
    api = router("/api/keys", "keys")

    @api.post("", status_code=201)
    async def create_key(caller: Caller, body: KeyRequest) -> NewKeyView:
        lifetime = timedelta(seconds=body.lifetime_seconds) if body.lifetime_seconds else None
        new = await keys.create(
            caller, kind=body.kind, name=body.name, user=body.user, scopes=body.scopes, lifetime=lifetime
        )
        return NewKeyView(key=KeyView.of(new.key), secret=new.secret)

    @api.get("")
    async def list_keys(caller: Caller, limit: Limit = 50, cursor: Cursor = None) -> PageOf[KeyView]:
        page = await keys.list(caller, limit=limit, cursor=cursor)
        return PageOf(items=[KeyView.of(key) for key in page.items], next=page.next)

    @api.delete("/{key_id}")
    async def revoke_key(caller: Caller, key_id: str) -> KeyView:
        return KeyView.of(await keys.revoke(caller, key_id))

    return api
