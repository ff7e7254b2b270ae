"""Translates errors to pages with a reason and a hint."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from assent.errors import AssentError, Invalid, NotFound
from assent.kernel import fair_threads
from assent.surfaces.http import errors
from assent.surfaces.http.origins import require_same_origin
from assent.surfaces.http.routing import StrictRoute
from assent.surfaces.web import preferences
from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.rendering import render

_PAGES = re.compile(r"/|/login|/logout|/inbox(/.*)?")
_WORTH_COMPRESSING = 1_000
_COMPRESSED_AT_ONCE = 100_000


class PageRoute(StrictRoute):
    """A route of a page: requires same-origin requests and renders errors as pages."""

    takes_json = False

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def respond(request: Request) -> Response:
            preferences.use(request)
            try:
                require_same_origin(request)
                return await _compressed(request, await handle(request))
            except RequestValidationError as error:
                return page(Invalid("; ".join(str(detail["msg"]) for detail in error.errors())))
            except AssentError as error:
                if error.status >= 500:  # the outermost handler logs these and sets Retry-After
                    raise
                return page(error)

        return respond


async def on_http(request: Request, error: Exception) -> Response:
    """Renders 404 under /inbox/ as a page for browsers."""
    missing = isinstance(error, HTTPException) and error.status_code == NotFound.status
    reads_pages = "text/html" in request.headers.get("accept", "")
    if not (missing and reads_pages and request.url.path.startswith("/inbox/")):
        return await errors.on_http(request, error)
    preferences.use(request)
    return page(NotFound(_("Page not found.")))


def refusal(request: Request, error: AssentError) -> Response | None:
    """The page for an error outside the routes; None if the request is not for a page."""
    reads_pages = "text/html" in request.headers.get("accept", "")
    if not (reads_pages and _PAGES.fullmatch(request.url.path)):
        return None
    preferences.use(request)
    return page(error)


def mendable(error: AssentError) -> AssentError:
    """Returns a client error to show beside its form; raises server errors again."""
    if error.status >= 500:
        raise error
    return error


def page(error: AssentError) -> Response:
    return render("error.html", status=error.status, problem=error)


async def _compressed(request: Request, response: Response) -> Response:
    """Compresses the page. No secret shares a page with attacker-controlled text, so its size leaks nothing."""
    body = getattr(response, "body", b"")
    if len(body) > _WORTH_COMPRESSING and "gzip" in request.headers.get("accept-encoding", ""):
        large = len(body) > _COMPRESSED_AT_ONCE
        response.body = await fair_threads.beside(gzip.compress, body, 5) if large else gzip.compress(body, 5)
        response.headers["Content-Encoding"] = "gzip"
        response.headers["Content-Length"] = str(len(response.body))
    return response
