"""REST: the caller's own passkeys, and, for administrators, lost passkeys of others."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from assent.identity.model.passkeys import Passkey, Proof
from assent.identity.passkeys import Passkeys
from assent.surfaces.api.schemas import Body
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.passkey_origins import Relying
from assent.surfaces.http.routing import router


class PasskeyIn(Body):
    name: str = Field(min_length=1, max_length=200, description="the person's name for the device")
    credential: dict[str, Any] = Field(description="the result of `navigator.credentials.create`, as JSON")


class PasskeyChange(Body):
    name: str = Field(min_length=1, max_length=200)


class PasskeyView(BaseModel):
    id: str
    name: str
    party: str = Field(description="the domain that the browser bound it to")
    transports: list[str]
    created_at: datetime
    last_used_at: datetime | None

    @classmethod
    def of(cls, passkey: Passkey) -> PasskeyView:
        return cls(
            id=passkey.id,
            name=passkey.name,
            party=passkey.party,
            transports=list(passkey.transports),
            created_at=passkey.created_at,
            last_used_at=passkey.last_used_at,
        )


def routes(passkeys: Passkeys, relying: Relying) -> APIRouter:
    api = router("/api", "passkeys")
    _own(api, passkeys, relying)
    _of_others(api, passkeys)
    return api


def _own(api: APIRouter, passkeys: Passkeys, relying: Relying) -> None:
    @api.get("/passkeys")
    async def list_passkeys(caller: Caller) -> list[PasskeyView]:
        return [PasskeyView.of(passkey) for passkey in await passkeys.own(caller)]

    @api.post("/passkeys/registration")
    async def start_registration(request: Request, caller: Caller) -> dict[str, Any]:
        """Returns the options for `navigator.credentials.create`."""
        return await passkeys.start(caller, relying.party(request))

    @api.post("/passkeys", status_code=201)
    async def add_passkey(request: Request, caller: Caller, body: PasskeyIn) -> PasskeyView:
        proof = Proof(body.credential, relying.party(request))
        return PasskeyView.of(await passkeys.add(caller, body.name, proof))

    @api.patch("/passkeys/{passkey_id}")
    async def rename_passkey(caller: Caller, passkey_id: str, body: PasskeyChange) -> PasskeyView:
        return PasskeyView.of(await passkeys.rename(caller, passkey_id, body.name))

    @api.delete("/passkeys/{passkey_id}", status_code=204)
    async def remove_passkey(caller: Caller, passkey_id: str) -> None:
        await passkeys.remove(caller, passkey_id)


def _of_others(api: APIRouter, passkeys: Passkeys) -> None:
    @api.get("/users/{name}/passkeys")
    async def list_passkeys_of(caller: Caller, name: str) -> list[PasskeyView]:
        return [PasskeyView.of(passkey) for passkey in await passkeys.of_person(caller, name)]

    @api.delete("/users/{name}/passkeys/{passkey_id}", status_code=204)
    async def remove_passkey_of(caller: Caller, name: str, passkey_id: str) -> None:
        await passkeys.remove_of(caller, name, passkey_id)
