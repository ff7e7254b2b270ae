"""REST: the tenant's timeline: search, verify, export, erase."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse, StreamingResponse
from pydantic import BaseModel, Field

from assent.audit.service import Audit
from assent.errors import Invalid
from assent.identity.model.access import Scope
from assent.kernel.events import Entry
from assent.kernel.timeline import Head, SignedHead
from assent.surfaces.api.schemas import Body, Cursor, Limit, Moment, PageOf
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.routing import router

Filter = Annotated[str | None, Query(max_length=200)]


class EventView(BaseModel):
    seq: int
    at: datetime
    kind: str
    actor: str
    subject: str
    hash: str
    previous: str
    payload_hash: str
    payload: str | None = Field(
        description="canonical JSON text as it was hashed; masked where it quotes a later secret; null if it was erased"
    )

    @classmethod
    def of(cls, entry: Entry) -> EventView:
        event, payload = entry
        fields = {name: getattr(event, name) for name in cls.model_fields if name != "payload"}
        return cls(**fields, payload=payload)


class BreakView(BaseModel):
    seq: int
    reason: str


class VerdictView(BaseModel):
    ok: bool
    seq: int
    hash: str
    breaks: list[BreakView]
    signed: int = Field(description="number of signed heads of this installation that the chain was compared with")
    signed_until: int = Field(description="the last event they cover; 0 if there are none")


class HeadView(BaseModel):
    tenant: str
    seq: int
    hash: str
    at: str | None = Field(default=None, description="when it was signed")
    key: str | None = Field(default=None, description="the key that signed it")
    signature: str | None = Field(default=None, description="Ed25519, base64; null without a key")


class Erasure(Body):
    subject: str = Field(
        pattern=r"^[^:\s]+:\S+$", max_length=200, description="e.g. key:<id>, item:<id>, reviewer:<id>"
    )


class Erased(BaseModel):
    payloads: int


def _anchor(seq: int | None, digest: str | None) -> Head | None:
    if (seq is None) is not (digest is None):
        raise Invalid("a head needs both seq and hash")
    return Head(seq, digest) if seq is not None and digest is not None else None


def routes(audit: Audit) -> APIRouter:
    api = router("/api/audit", "audit")

    @api.get("/events")
    async def list_events(
        caller: Caller,
        subject: Filter = None,
        kind: Filter = None,
        actor: Filter = None,
        since: Moment | None = None,
        until: Moment | None = None,
        text: Filter = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> PageOf[EventView]:
        """`kind` may be the part before the dot, such as `policy`; `text` is searched in the payloads."""
        page = await audit.search(
            caller,
            subject=subject,
            kind=kind,
            actor=actor,
            since=since,
            until=until,
            text=text,
            limit=limit,
            cursor=cursor,
        )
        return PageOf(items=[EventView.of(entry) for entry in page.items], next=page.next)

    @api.get("/verification")
    async def verify(
        caller: Caller,
        seq: Annotated[int | None, Query(ge=1, description="a head exported earlier: its number…")] = None,
        hash: Annotated[str | None, Query(pattern="^[0-9a-f]{64}$", description="…and its hash")] = None,
    ) -> VerdictView:
        verdict = await audit.verify(caller, anchor=_anchor(seq, hash))
        breaks = [BreakView(seq=broken.seq, reason=broken.reason) for broken in verdict.breaks]
        return VerdictView(
            ok=not breaks,
            seq=verdict.head.seq,
            hash=verdict.head.hash,
            breaks=breaks,
            signed=verdict.signed,
            signed_until=verdict.signed_until,
        )

    @api.get("/head")
    async def head(caller: Caller) -> HeadView:
        """The signed end of the chain. A copy stored elsewhere shows later whether an earlier event was rewritten."""
        current = await audit.head(caller)
        if isinstance(current, SignedHead):
            return HeadView(**current.to_json())
        return HeadView(tenant=caller.tenant, seq=current.seq, hash=current.hash)

    @api.get("/public-key", response_class=PlainTextResponse)
    async def public_key(caller: Caller) -> str:
        """The public half of the key that signs heads, as PEM."""
        return audit.public_key(caller)

    @api.get("/export", response_class=StreamingResponse)
    async def export(caller: Caller) -> StreamingResponse:
        caller.require(Scope.AUDIT_READ)

        async def lines() -> AsyncIterator[str]:
            async for line in audit.export(caller):
                yield line + "\n"

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    @api.post("/erasures")
    async def erase(caller: Caller, body: Erasure) -> Erased:
        return Erased(payloads=await audit.erase(caller, body.subject))

    return api
