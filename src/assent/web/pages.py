"""Signing in and out, how a person likes the pages, and help. All of it works without JavaScript, but for reading the
token out of a sign-in link's fragment, which never leaves the browser by itself."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse

from assent.domain import filters
from assent.errors import Unauthenticated
from assent.http import sessions
from assent.http.authentication import Caller
from assent.services.access import Access
from assent.web import preferences
from assent.web.errors import PageRoute
from assent.web.rendering import render
from assent.web.shell import Shell

Text = Annotated[str, Form(max_length=500)]


def routes(access: Access, shell: Shell, undo_window: timedelta) -> APIRouter:
    web = APIRouter(include_in_schema=False, route_class=PageRoute)

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
        response = RedirectResponse(_local(next), 303)
        try:
            await sessions.sign_in(access, request, response, credential.strip())
        except Unauthenticated as error:
            return render("login.html", status=401, next=_local(next), problem=error)
        return response

    @web.post("/logout")
    async def logout(request: Request) -> Response:
        """Public, so that signing out works as well where the session has ended already."""
        response = RedirectResponse("/login", 303)
        await sessions.sign_out(access, request, response)
        return response

    @web.get("/inbox/status")
    async def status_page(caller: Caller) -> Response:
        """Where this stood before it had a place among the settings."""
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
    """Only a path of ours: `//elsewhere` and `https://elsewhere` would lead a signed-in person away."""
    return target if target.startswith("/") and not target.startswith(("//", "/\\")) else "/inbox"
