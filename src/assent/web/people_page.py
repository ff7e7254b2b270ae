"""People in the browser: who may sign in, as what, in which groups; and links that sign them in once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from assent.domain.access import Principal, Role, Scope
from assent.domain.users import User
from assent.errors import AssentError, Invalid
from assent.http.authentication import Caller
from assent.http.origins import address_of
from assent.services.users import LINK_LIFETIME, Users
from assent.web.errors import PageRoute, mendable
from assent.web.language import gettext as _
from assent.web.shell import Shell

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
        found = next((one for one in Role if one == self.role), None)
        if found is None:
            raise Invalid(_("Choose a role."))
        return found

    def named_groups(self) -> list[str]:
        return [group.strip() for group in self.groups.split(",") if group.strip()]


@dataclass(frozen=True, slots=True)
class Link:
    """Signs `name` in, once."""

    name: str
    address: str
    minutes: int = int(LINK_LIFETIME.total_seconds() // 60)


def _typed(name: Text = "", email: Text = "", role: Text = Role.REVIEWER.value, groups: Text = "") -> Typed:
    return Typed(name, email, role, groups)


Sent = Annotated[Typed, Depends(_typed)]


def routes(users: Users, shell: Shell) -> APIRouter:
    web = APIRouter(prefix=PATH, include_in_schema=False, route_class=PageRoute)
    desk = _Desk(users, shell)

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

    @web.post("/login-link")
    async def login_link(request: Request, caller: Caller, name: Text = "") -> Response:
        """The link stands in this one answer; its token is a fragment, which browsers send nowhere."""
        return await desk.link(caller, name, address_of(request) or "")

    return web


class _Desk:
    def __init__(self, users: Users, shell: Shell) -> None:
        self._users = users
        self._shell = shell

    async def attempt(
        self, caller: Principal, act: Callable[[], Awaitable[User]], done: str, typed: Typed | None = None
    ) -> Response:
        """Does it, or shows the page with what stands against it and with what was typed."""
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
        return await self._shell.show(
            caller,
            "settings_people.html",
            here="settings",
            tab="people",
            status=problem.status if problem else 200,
            found=await self._users.list(caller, limit=PAGE, cursor=cursor),
            first=cursor is None,
            roles=ROLES,
            typed=typed or Typed(),
            opened=typed is not None,
            link=link,
            problem=problem,
            done=done,
        )
