"""Sign-in, sign-out, preferences and help. Only the token in the fragment of a sign-in link needs JavaScript."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse

from assent.errors import TooManyRequests, Unauthenticated
from assent.identity.access import Access
from assent.review.model.search import filters
from assent.surfaces.http import sessions
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.limits.admission import Admission
from assent.surfaces.http.public import public
from assent.surfaces.web import preferences
from assent.surfaces.web.errors import PageRoute
from assent.surfaces.web.rendering import render
from assent.surfaces.web.views.shell import Shell

Text = Annotated[str, Form(max_length=500)]


def routes(access: Access, admission: Admission, shell: Shell, undo_window: timedelta) -> APIRouter:
    web = APIRouter(include_in_schema=False, route_class=PageRoute)

    @web.get("/")
    @public
    async def root(request: Request) -> Response:
        """Redirects browsers to the inbox; programs get the same answer as from `/ok`."""
        if "text/html" in request.headers.get("accept", ""):
            return RedirectResponse("/inbox", 303)
        return JSONResponse({"ok": True, "services": {}})

    @web.get("/login")
    @public
    async def login_page(next: str = "/inbox") -> Response:
        return render("login.html", next=_local(next), problem=None)

    @web.post("/login")
    @public
    async def login(request: Request, credential: Text = "", next: Text = "/inbox") -> Response:
        response = RedirectResponse(_local(next), 303)
        try:
            await sessions.sign_in(access, admission, request, response, credential.strip())
        except (Unauthenticated, TooManyRequests) as error:
            return render("login.html", status=error.status, next=_local(next), problem=error)
        return response

    @web.post("/logout")
    @public
    async def logout(request: Request) -> Response:
        """Public, so that sign-out works after the session has ended."""
        response = RedirectResponse("/login", 303)
        await sessions.sign_out(access, request, response)
        return response

    @web.get("/inbox/status")
    async def status_page(caller: Caller) -> Response:
        """Former address of the settings page."""
        return RedirectResponse("/inbox/settings", 303)

    @web.get("/inbox/help")
    async def help_page(caller: Caller) -> Response:
        undo = undo_window.total_seconds()
        return await shell.show(caller, "help.html", here="help", fields=filters.FIELDS, undo=undo)

    @web.post("/inbox/preferences")
    async def prefer(request: Request, caller: Caller, language: Text = "", theme: Text = "") -> Response:
        response = RedirectResponse(_local(_came_from(request)), 303)
        preferences.keep(response, secure=request.url.scheme == "https", language=language, theme=theme)
        return response

    return web


def _came_from(request: Request) -> str:
    came = urlsplit(request.headers.get("referer", ""))
    return f"{came.path}?{came.query}" if came.query else came.path or "/inbox"


def _local(target: str) -> str:
    """Only local paths, to prevent open redirects such as `//elsewhere` and `https://elsewhere`."""
    return target if target.startswith("/") and not target.startswith(("//", "/\\")) else "/inbox"
