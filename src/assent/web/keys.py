"""API keys in the browser: made once, shown once, revoked for good. A secret stands in one answer and in no address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Query, Response
from fastapi.responses import RedirectResponse

from assent.domain.access import Kind, Principal, Scope
from assent.errors import AssentError
from assent.http.authentication import Caller
from assent.services.keys import Keys, NewKey
from assent.services.users import Users
from assent.settings import parse_duration
from assent.store.paging import LARGEST_PAGE
from assent.web import times
from assent.web.errors import PageRoute
from assent.web.language import gettext as _
from assent.web.shell import Shell

PAGE = 50
PATH = "/inbox/settings/keys"
LIFETIMES = {"": "until it is revoked", "1d": "1 day", "30d": "30 days", "90d": "90 days", "365d": "a year"}
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
        kind = next((one for one in Kind if one == typed.kind), Kind.AGENT)
        return await self._keys.create(
            caller,
            kind=kind,
            name=typed.name,
            user=typed.user.strip() or None,
            scopes=typed.scopes,
            lifetime=parse_duration(typed.lifetime) if typed.lifetime else None,
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
        found = await self._keys.list(caller, limit=PAGE, cursor=cursor)
        known = await self._users.list(caller, limit=LARGEST_PAGE)
        return await self._shell.show(
            caller,
            "settings_keys.html",
            here="settings",
            tab="keys",
            status=problem.status if problem else 200,
            found=found,
            first=cursor is None,
            people=[user.name for user in known.items if user.disabled_at is None],
            kinds=KINDS,
            scopes=list(Scope),
            lifetimes=LIFETIMES,
            typed=typed or Typed(),
            opened=typed is not None,
            new=new,
            problem=problem,
            done=done,
            now=times.now(),
        )
