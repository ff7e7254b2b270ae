"""The page to which authorization servers of MCP servers send people back. It needs no credential of ours: only the
person who followed the link has its state."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from assent.assistant.mcp.login import desk
from assent.surfaces.http.public import public
from assent.surfaces.web.errors import PageRoute
from assent.surfaces.web.rendering import render

Text = Annotated[str, Query(max_length=4096)]


def routes() -> APIRouter:
    web = APIRouter(include_in_schema=False, route_class=PageRoute)

    @web.get(desk.CALLBACK)
    @public
    async def sign_in(code: Text = "", state: Text = "", iss: Text | None = None) -> Response:
        done = bool(code and state) and await desk.complete(state, code, iss)
        return render("assistant_signed_in.html", status=200 if done else 400, done=done)

    return web
