"""The API keys page. A new secret appears in one response only and never in a URL."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Query, Response
from fastapi.responses import RedirectResponse

from assent.errors import AssentError
from assent.identity.keys import Keys, NewKey
from assent.identity.model.access import Kind, Principal, Scope
from assent.identity.model.keys import Lifetime
from assent.identity.users import Users
from assent.kernel.store.paging import LARGEST_PAGE
from assent.settings import parse_duration
from assent.surfaces.http.authentication import Caller
from assent.surfaces.web.errors import PageRoute, mendable
from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.views.shell import Shell

PAGE = 50
PATH = "/inbox/settings/keys"
NEVER = "never"
LIFETIMES = {
    "": "default",
    "1d": "1 day",
    "30d": "30 days",
    "90d": "90 days",
    "365d": "a year",
    NEVER: "until revoked",
}
OVERLAPS = {"1h": "1 hour", "24h": "24 hours", "7d": "7 days"}
USUAL_OVERLAP = "24h"
KINDS = {Kind.AGENT: "Agent", Kind.SERVICE: "Service", Kind.REVIEWER: "Reviewer"}

Text = Annotated[str, Form(max_length=500)]


@dataclass(frozen=True, slots=True)
class Typed:
    kind: str = Kind.AGENT
    name: str = ""
    user: str = ""
    scopes: tuple[str, ...] = ()
    lifetime: str = ""


def _typed(
    scopes: Annotated[list[str] | None, Form(max_length=50)] = None,
    kind: Text = Kind.AGENT.value,
    name: Text = "",
    user: Text = "",
    lifetime: Text = "",
) -> Typed:
    return Typed(kind, name, user, tuple(scopes or ()), lifetime)


def _lifetime(chosen: str) -> timedelta | Lifetime | None:
    if chosen == NEVER:
        return None
    return parse_duration(chosen) if chosen else Lifetime.USUAL


def routes(keys: Keys, users: Users, shell: Shell) -> APIRouter:
    web = APIRouter(prefix=PATH, include_in_schema=False, route_class=PageRoute)
    desk = _Desk(keys, users, shell)

    @web.get("")
    async def keys_page(
        caller: Caller, cursor: Annotated[str | None, Query(max_length=1000)] = None, done: str = ""
    ) -> Response:
        return await desk.show(caller, cursor=cursor, done=done)

    @web.post("")
    async def create(caller: Caller, typed: Annotated[Typed, Depends(_typed)]) -> Response:
        try:
            new = await desk.create(caller, typed)
        except AssentError as error:
            if error.status >= 500 or not caller.may(Scope.ADMIN):
                raise
            return await desk.show(caller, typed=typed, problem=error)
        return await desk.show(caller, new=new)

    @web.post("/{key_id}/rotation")
    async def rotate(caller: Caller, key_id: str, overlap: Text = USUAL_OVERLAP) -> Response:
        try:
            new = await keys.rotate(caller, key_id, overlap=parse_duration(overlap))
        except AssentError as error:
            return await desk.show(caller, problem=mendable(error))
        return await desk.show(caller, new=new)

    @web.post("/{key_id}/revocation")
    async def revoke(caller: Caller, key_id: str) -> Response:
        await keys.revoke(caller, key_id)
        return RedirectResponse(f"{PATH}?done=revoked", 303)

    return web


class _Desk:
    def __init__(self, keys: Keys, users: Users, shell: Shell) -> None:
        self._keys = keys
        self._users = users
        self._shell = shell

    async def create(self, caller: Principal, typed: Typed) -> NewKey:
        kind = next((kind for kind in Kind if kind == typed.kind), Kind.AGENT)
        return await self._keys.create(
            caller,
            kind=kind,
            name=typed.name,
            user=typed.user.strip() or None,
            scopes=typed.scopes,
            lifetime=_lifetime(typed.lifetime),
        )

    async def show(
        self,
        caller: Principal,
        *,
        cursor: str | None = None,
        done: str = "",
        typed: Typed | None = None,
        new: NewKey | None = None,
        problem: AssentError | None = None,
    ) -> Response:
        if not caller.may(Scope.ADMIN):
            return await self._shell.refuse(caller, Scope.ADMIN, here="settings", title=_("API keys"))
        keys = await self._keys.list(caller, limit=PAGE, cursor=cursor)
        users = await self._users.list(caller, limit=LARGEST_PAGE)
        return await self._shell.show(
            caller,
            "settings_keys.html",
            here="settings",
            tab="keys",
            status=problem.status if problem else 200,
            keys=keys,
            first=cursor is None,
            people=[user.name for user in users.items if user.disabled_at is None],
            kinds=KINDS,
            scopes=list(Scope),
            lifetimes=LIFETIMES,
            usual=self._keys.lifetime.days,
            overlaps=OVERLAPS,
            usual_overlap=USUAL_OVERLAP,
            typed=typed or Typed(),
            opened=typed is not None,
            new=new,
            problem=problem,
            done=done,
        )
