"""The two pages of a sign-in at an MCP server: one leads a person to the authorization server, which sends them back to
the other. Both are for people who may decide, since everybody then acts with that login.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.responses import RedirectResponse

from assent.assistant.mcp.login.desk import CALLBACK, START, Logins
from assent.errors import Forbidden
from assent.identity.model.access import Principal, Scope
from assent.surfaces.http.authentication import Caller
from assent.surfaces.web.errors import PageRoute
from assent.surfaces.web.rendering import render

Text = Annotated[str, Query(max_length=4096)]


def routes(logins: Logins) -> APIRouter:
    web = APIRouter(include_in_schema=False, route_class=PageRoute)

    @web.get(f"{START}/{{id}}")
    async def begin(caller: Caller, id: str) -> Response:
        page = await logins.begin(id, _person(caller))
        return _ended(done=False) if page is None else RedirectResponse(page, 303)

    @web.get(CALLBACK)
    async def sign_in(caller: Caller, code: Text = "", state: Text = "", iss: Text | None = None) -> Response:
        person = _person(caller)
        return _ended(done=bool(code and state) and await logins.complete(state, code, iss, person))

    return web


def _person(caller: Principal) -> str:
    caller.require(Scope.DECIDE)
    if not caller.is_person:
        raise Forbidden("only a person can sign in", hint="open the link in a browser that is signed in to Assent")
    return caller.actor


def _ended(*, done: bool) -> Response:
    return render("assistant_signed_in.html", status=200 if done else 400, done=done)
