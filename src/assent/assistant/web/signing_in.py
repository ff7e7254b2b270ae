"""The two pages of a sign-in at an MCP server: one leads a person to the authorization server, which sends them back to
the other. Both are for people who may decide the question, since everybody then acts with that login.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Query, Response
from fastapi.responses import RedirectResponse

from assent.assistant.mcp.login.desk import CALLBACK, START, Logins
from assent.errors import Forbidden
from assent.identity.model.access import Principal, Scope
from assent.review.dialects.mcp import oauth_url
from assent.review.inbox import Inbox
from assent.review.model.questions import ItemType
from assent.surfaces.http.authentication import Caller
from assent.surfaces.web.errors import PageRoute
from assent.surfaces.web.rendering import render

Text = Annotated[str, Query(max_length=4096)]

_MOST = 100
"""The questions that are looked through for the link: usually each of them has it."""


def routes(logins: Logins, inbox: Inbox) -> APIRouter:
    web = APIRouter(include_in_schema=False, route_class=PageRoute)

    @web.get(f"{START}/{{id}}")
    async def begin(caller: Caller, id: str) -> Response:
        person = _person(caller)
        await _require_question(inbox, caller, f"{START}/{id}")
        page = await logins.begin(id, person)
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


async def _require_question(inbox: Inbox, caller: Principal, path: str) -> None:
    """Refuses a link that is in no pending question which the caller may decide."""
    listed = await inbox.list(caller, filter=f"is:pending type:{ItemType.OAUTH}", limit=_MOST)
    for row in listed.items:
        if row["dialect"] == oauth_url.NAME:
            item = await inbox.get(caller, row["id"])
            if item["refusal"] is None and urlsplit(item["actions"][0]["args"]["url"]).path == path:
                return
    raise Forbidden(
        "no question with this sign-in waits for your decision",
        hint="open the question in the inbox: it names the people who may decide it, or has a newer link",
    )


def _ended(*, done: bool) -> Response:
    return render("assistant_signed_in.html", status=200 if done else 400, done=done)
