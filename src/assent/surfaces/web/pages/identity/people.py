"""The people page: users with roles and groups, and one-time login links."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from assent.errors import AssentError, Invalid
from assent.identity.model.access import Principal, Role, Scope
from assent.identity.model.passkeys import Passkey
from assent.identity.model.users import User
from assent.identity.passkeys import Passkeys
from assent.identity.users import LINK_LIFETIME, Users
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.origins import address_of
from assent.surfaces.web.errors import PageRoute, mendable
from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.views.shell import Shell

PAGE = 50
PATH = "/inbox/settings/people"
ROLES = {Role.VIEWER: "Viewer", Role.REVIEWER: "Reviewer", Role.ADMIN: "Admin"}

Text = Annotated[str, Form(max_length=5000)]


@dataclass(frozen=True, slots=True)
class Typed:
    name: str = ""
    email: str = ""
    role: str = Role.REVIEWER
    groups: str = ""

    def chosen_role(self) -> Role:
        role = next((role for role in Role if role == self.role), None)
        if role is None:
            raise Invalid(_("Choose a role."))
        return role

    def named_groups(self) -> list[str]:
        return [group.strip() for group in self.groups.split(",") if group.strip()]


@dataclass(frozen=True, slots=True)
class Link:
    """A one-time login link for `name`."""

    name: str
    address: str
    minutes: int = int(LINK_LIFETIME.total_seconds() // 60)


def _typed(name: Text = "", email: Text = "", role: Text = Role.REVIEWER.value, groups: Text = "") -> Typed:
    return Typed(name, email, role, groups)


Sent = Annotated[Typed, Depends(_typed)]


def routes(users: Users, passkeys: Passkeys, shell: Shell) -> APIRouter:
    web = APIRouter(prefix=PATH, include_in_schema=False, route_class=PageRoute)
    desk = _Desk(users, passkeys, shell)

    @web.get("")
    async def people_page(
        caller: Caller, cursor: Annotated[str | None, Query(max_length=1000)] = None, done: str = ""
    ) -> Response:
        return await desk.show(caller, cursor=cursor, done=done)

    @web.post("")
    async def add(caller: Caller, typed: Sent) -> Response:

        async def act() -> User:
            email, groups = typed.email.strip() or None, typed.named_groups()
            return await users.create(caller, name=typed.name, role=typed.chosen_role(), email=email, groups=groups)

        return await desk.attempt(caller, act, "added", typed)

    @web.post("/change")
    async def change(caller: Caller, typed: Sent) -> Response:

        async def act() -> User:
            return await users.change(caller, typed.name, role=typed.chosen_role(), groups=typed.named_groups())

        return await desk.attempt(caller, act, "changed")

    @web.post("/disabling")
    async def disable(caller: Caller, name: Text = "", disabled: Text = "") -> Response:

        async def act() -> User:
            if disabled and name == caller.name:
                raise Invalid(_("You cannot disable yourself."))
            return await users.change(caller, name, disabled=bool(disabled))

        return await desk.attempt(caller, act, "disabled" if disabled else "enabled")

    _credentials(web, desk, passkeys)
    return web


def _credentials(web: APIRouter, desk: _Desk, passkeys: Passkeys) -> None:
    @web.post("/passkey-removal")
    async def remove_passkey(caller: Caller, name: Text = "", passkey: Text = "") -> Response:
        """Removes a person's lost passkey. An admin cannot add a passkey for another person."""
        return await desk.attempt(caller, partial(passkeys.remove_of, caller, name, passkey), "passkey-removed")

    @web.post("/login-link")
    async def login_link(request: Request, caller: Caller, name: Text = "") -> Response:
        """The link appears in this response only; its token is in the fragment, which browsers do not send."""
        return await desk.link(caller, name, address_of(request) or "")


class _Desk:
    def __init__(self, users: Users, passkeys: Passkeys, shell: Shell) -> None:
        self._users = users
        self._passkeys = passkeys
        self._shell = shell

    async def attempt(
        self, caller: Principal, act: Callable[[], Awaitable[object]], done: str, typed: Typed | None = None
    ) -> Response:
        """Runs the action; on errors, shows the page with the error and the person's input."""
        try:
            await act()
        except AssentError as error:
            return await self.show(caller, typed=typed, problem=mendable(error))
        return RedirectResponse(f"{PATH}?done={done}", 303)

    async def link(self, caller: Principal, name: str, here: str) -> Response:
        try:
            token = await self._users.login_link(caller, name)
        except AssentError as error:
            return await self.show(caller, problem=mendable(error))
        return await self.show(caller, link=Link(name, f"{here}/login#{token}"))

    async def show(
        self,
        caller: Principal,
        *,
        cursor: str | None = None,
        done: str = "",
        typed: Typed | None = None,
        link: Link | None = None,
        problem: AssentError | None = None,
    ) -> Response:
        if not caller.may(Scope.ADMIN):
            return await self._shell.refuse(caller, Scope.ADMIN, here="settings", title=_("People"))
        held = defaultdict[str, list[Passkey]](list)
        for owner, passkey in await self._passkeys.of_everyone(caller):
            held[owner].append(passkey)
        return await self._shell.show(
            caller,
            "settings_people.html",
            here="settings",
            tab="people",
            status=problem.status if problem else 200,
            found=await self._users.list(caller, limit=PAGE, cursor=cursor),
            first=cursor is None,
            held=held,
            roles=ROLES,
            typed=typed or Typed(),
            opened=typed is not None,
            link=link,
            problem=problem,
            done=done,
        )
