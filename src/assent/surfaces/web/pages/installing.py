"""Makes the inbox installable: its manifest, its service worker, and the page that is shown without a connection.

None of them has data of the inbox."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from assent.surfaces.http.authentication import Caller
from assent.surfaces.web import assets
from assent.surfaces.web.errors import PageRoute
from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.rendering import render

_SCOPE = "/inbox"
_ICONS = (
    ("icon-192.png", "192x192", "image/png", "any"),
    ("icon-512.png", "512x512", "image/png", "any"),
    ("icon-maskable.png", "512x512", "image/png", "maskable"),
    ("icon.svg", "any", "image/svg+xml", "any"),
)


def routes() -> APIRouter:
    web = APIRouter(prefix=_SCOPE, include_in_schema=False, route_class=PageRoute)

    @web.get("/manifest.webmanifest")
    async def manifest(caller: Caller) -> Response:
        return JSONResponse(_manifest(), media_type="application/manifest+json")

    @web.get("/worker.js")
    async def worker(caller: Caller) -> Response:
        """A worker controls only pages below its own path, unless this header allows more: the list has no slash at its
        end."""
        headers = {"Service-Worker-Allowed": _SCOPE, "Cache-Control": "no-cache"}
        return Response(assets.text("worker.js"), media_type="text/javascript", headers=headers)

    @web.get("/offline")
    async def offline_page(caller: Caller) -> Response:
        return render("offline.html")

    return web


def _manifest() -> dict[str, Any]:
    return {
        "id": _SCOPE,
        "name": "Assent",
        "short_name": "Assent",
        "description": _("Decide what agents may do"),
        "start_url": _SCOPE,
        "scope": _SCOPE,
        "display": "standalone",
        "theme_color": "#3b5bdb",
        "background_color": "#fbfbfc",
        "icons": [
            {"src": assets.address(name), "sizes": sizes, "type": type, "purpose": purpose}
            for name, sizes, type, purpose in _ICONS
        ],
    }
