"""The browser-only inbox: a deployment's interrupts, listed and answered by the browser itself.

Its key stays in the browser's local storage. The page's content security policy names the one origin that its script
may call, so a person opens the page once per deployment. No item is created: none of the inbox's guarantees hold."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Query, Response

from assent.errors import Invalid
from assent.surfaces.http.authentication import Caller
from assent.surfaces.web.errors import PageRoute
from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.rendering import policy
from assent.surfaces.web.views.shell import Shell

PATH = "/inbox/browser"
_ORIGIN = re.compile(r"https?://(?:[a-z0-9.-]+|\[[0-9a-f:]+\])(?::[0-9]{1,5})?")
"""As `URL.origin` writes it in a browser. It becomes part of a header."""

Origin = Annotated[str, Query(max_length=300)]


def routes(shell: Shell) -> APIRouter:
    web = APIRouter(include_in_schema=False, route_class=PageRoute)

    @web.get(PATH)
    async def browser_inbox_page(caller: Caller, origin: Origin = "") -> Response:
        if origin and not _ORIGIN.fullmatch(origin):
            raise Invalid(_("The origin is not valid. Open an inbox from the list of this page."))
        page = await shell.show(caller, "browser_inbox.html", here="settings", tab="browser", origin=origin)
        page.headers["Content-Security-Policy"] = policy(origin or "'none'")
        return page

    return web
