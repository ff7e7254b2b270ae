"""Server-rendered pages: sign in, and what this server is. All of it works without JavaScript, but for reading the
token out of a sign-in link's fragment, which never leaves the browser by itself."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse

from assent.domain.access import Principal, Scope
from assent.errors import Unauthenticated
from assent.http import sessions
from assent.http.authentication import Caller
from assent.http.origins import require_same_origin
from assent.http.routing import StrictRoute
from assent.services.access import Access
from assent.services.audit import Audit
from assent.settings import Settings
from assent.store.events import Entry
from assent.web.rendering import render

Text = Annotated[str, Form(max_length=500)]


def routes(access: Access, audit: Audit, settings: Settings) -> APIRouter:
    web = APIRouter(include_in_schema=False, route_class=StrictRoute)

    @web.get("/")
    async def root(request: Request) -> Response:
        """People are led to the inbox; programs get the same answer as from `/ok`."""
        if "text/html" in request.headers.get("accept", ""):
            return RedirectResponse("/inbox", 303)
        return JSONResponse({"ok": True, "services": {}})

    @web.get("/login")
    async def login_page(next: str = "/inbox") -> Response:
        return render("login.html", next=_local(next), problem=None)

    @web.post("/login")
    async def login(request: Request, credential: Text = "", next: Text = "/inbox") -> Response:
        require_same_origin(request)
        response = RedirectResponse(_local(next), 303)
        try:
            await sessions.sign_in(access, request, response, credential.strip())
        except Unauthenticated as error:
            return render("login.html", status=401, next=_local(next), problem=error)
        return response

    @web.post("/logout")
    async def logout(request: Request) -> Response:
        """Public, so that signing out works as well where the session has ended already."""
        require_same_origin(request)
        response = RedirectResponse("/login", 303)
        await sessions.sign_out(access, request, response)
        return response

    @web.get("/inbox/status")
    async def status_page(caller: Caller) -> Response:
        entries, shown = await _latest(audit, caller), settings.database_shown
        return render("status.html", caller=caller, settings=settings, database=shown, entries=entries)

    return web


async def _latest(audit: Audit, caller: Principal) -> list[Entry]:
    return (await audit.search(caller, limit=10)).items if caller.may(Scope.AUDIT_READ) else []


def _local(target: str) -> str:
    """Only a path of ours: `//elsewhere` and `https://elsewhere` would lead a signed-in person away."""
    return target if target.startswith("/") and not target.startswith(("//", "/\\")) else "/inbox"
