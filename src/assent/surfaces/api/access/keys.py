"""REST: API keys of the caller's tenant."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from assent.identity.keys import OVERLAP, Keys
from assent.identity.model.access import Kind, Scope
from assent.identity.model.keys import LONGEST_OVERLAP, ApiKey, KeyState, Lifetime
from assent.surfaces.api.schemas import Body, Cursor, Limit, PageOf
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.routing import router

Lifetimes = Annotated[
    int | None,
    Field(
        ge=1,
        le=10 * 365 * 86400,
        description="default: the setting `key_lifetime`; null: until it is revoked",
    ),
]


class KeyRequest(Body):
    kind: Kind
    name: str | None = Field(None, min_length=1, max_length=200, description="required unless `agent` is given")
    agent: str | None = Field(
        None,
        min_length=1,
        max_length=200,
        description="the id, or the name where it is unique, of the agent or service that gets a further key",
    )
    user: str | None = Field(None, description="the owner of the key; required for kind reviewer")
    scopes: list[str] = Field(default_factory=list, description="empty means the default scopes of this kind")
    lifetime_seconds: Lifetimes = None

    def lifetime(self) -> timedelta | Lifetime | None:
        return _lifetime(self)


class Rotation(Body):
    overlap_seconds: int = Field(
        int(OVERLAP.total_seconds()),
        ge=1,
        le=int(LONGEST_OVERLAP.total_seconds()),
        description="how long the old key still works",
    )
    lifetime_seconds: Lifetimes = None

    def lifetime(self) -> timedelta | Lifetime | None:
        return _lifetime(self)


def _lifetime(body: KeyRequest | Rotation) -> timedelta | Lifetime | None:
    if "lifetime_seconds" not in body.model_fields_set:
        return Lifetime.USUAL
    return None if body.lifetime_seconds is None else timedelta(seconds=body.lifetime_seconds)


class KeyView(BaseModel):
    id: str
    kind: Kind
    name: str
    user: str | None
    agent: str | None = Field(description="the id of the agent or service it belongs to; none for a person's key")
    scopes: list[Scope]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    state: KeyState = Field(description="`expiring` works, and stops within two weeks")

    @classmethod
    def of(cls, key: ApiKey) -> KeyView:
        return cls(
            id=key.id,
            kind=key.kind,
            name=key.name,
            user=key.owner,
            agent=None if key.user_id else key.principal_id,
            scopes=sorted(key.scopes),
            created_at=key.created_at,
            expires_at=key.expires_at,
            revoked_at=key.revoked_at,
            last_used_at=key.last_used_at,
            state=key.state,
        )


class NewKeyView(BaseModel):
    key: KeyView
    secret: str = Field(description="shown this once; only its hash is stored")


def routes(keys: Keys) -> APIRouter:
    api = router("/api/keys", "keys")

    @api.post("", status_code=201)
    async def create_key(caller: Caller, body: KeyRequest) -> NewKeyView:
        new = await keys.create(
            caller,
            kind=body.kind,
            name=body.name,
            user=body.user,
            agent=body.agent,
            scopes=body.scopes,
            lifetime=body.lifetime(),
        )
        return NewKeyView(key=KeyView.of(new.key), secret=new.secret)

    @api.get("")
    async def list_keys(caller: Caller, limit: Limit = 50, cursor: Cursor = None) -> PageOf[KeyView]:
        page = await keys.list(caller, limit=limit, cursor=cursor)
        return PageOf(items=[KeyView.of(key) for key in page.items], next=page.next)

    @api.post("/{key_id}/rotation", status_code=201)
    async def rotate_key(caller: Caller, key_id: str, body: Rotation) -> NewKeyView:
        """Makes a key of the same owner with the same scopes; the old key still works for the overlap."""
        overlap = timedelta(seconds=body.overlap_seconds)
        new = await keys.rotate(caller, key_id, overlap=overlap, lifetime=body.lifetime())
        return NewKeyView(key=KeyView.of(new.key), secret=new.secret)

    @api.delete("/{key_id}")
    async def revoke_key(caller: Caller, key_id: str) -> KeyView:
        return KeyView.of(await keys.revoke(caller, key_id))

    return api
