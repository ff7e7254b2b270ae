"""The account page: the caller's passkeys. Adding a passkey needs JavaScript; the rest works without."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import RedirectResponse

from assent.errors import AssentError
from assent.identity.model.access import Principal
from assent.identity.model.passkeys import FRESH
from assent.identity.passkeys import Passkeys
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.passkey_origins import Relying, Site
from assent.surfaces.web.errors import PageRoute, mendable
from assent.surfaces.web.views.shell import Shell

PATH = "/inbox/settings/account"
Text = Annotated[str, Form(max_length=500)]


def routes(passkeys: Passkeys, relying: Relying, shell: Shell) -> APIRouter:
    web = APIRouter(prefix=PATH, include_in_schema=False, route_class=PageRoute)
    desk = _Desk(passkeys, shell)

    @web.get("")
    async def account_page(request: Request, caller: Caller, done: str = "") -> Response:
        return await desk.show(caller, relying.site(request), done=done)

    @web.post("/passkeys/{passkey_id}/name")
    async def rename(request: Request, caller: Caller, passkey_id: str, name: Text = "") -> Response:
        try:
            await passkeys.rename(caller, passkey_id, name)
        except AssentError as error:
            return await desk.show(caller, relying.site(request), problem=mendable(error))
        return RedirectResponse(f"{PATH}?done=renamed", 303)

    @web.post("/passkeys/{passkey_id}/removal")
    async def remove(request: Request, caller: Caller, passkey_id: str) -> Response:
        try:
            await passkeys.remove(caller, passkey_id)
        except AssentError as error:
            return await desk.show(caller, relying.site(request), problem=mendable(error))
        return RedirectResponse(f"{PATH}?done=removed", 303)

    return web


class _Desk:
    def __init__(self, passkeys: Passkeys, shell: Shell) -> None:
        self._passkeys = passkeys
        self._shell = shell

    async def show(
        self, caller: Principal, site: Site, *, done: str = "", problem: AssentError | None = None
    ) -> Response:
        return await self._shell.show(
            caller,
            "settings_account.html",
            here="settings",
            tab="account",
            status=problem.status if problem else 200,
            passkeys=await self._passkeys.own(caller),
            fresh=await self._passkeys.fresh(caller),
            minutes=int(FRESH.total_seconds() // 60),
            site=site,
            path=PATH,
            problem=problem,
            done=done,
        )
