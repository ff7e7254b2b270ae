"""The pages' one error translator: what cannot be shown or done becomes a page that says why, and what to do next."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from assent.errors import AssentError, Invalid, NotFound
from assent.http import errors
from assent.http.origins import require_same_origin
from assent.http.routing import StrictRoute
from assent.web import preferences
from assent.web.language import gettext as _
from assent.web.rendering import render

_WORTH_COMPRESSING = 1_000


class PageRoute(StrictRoute):
    """Of a page: what changes something must come from a page of ours, and a refusal is a page as well."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def shown(request: Request) -> Response:
            preferences.use(request)
            try:
                require_same_origin(request)
                return _compressed(request, await handle(request))
            except RequestValidationError as error:
                return page(Invalid("; ".join(str(one["msg"]) for one in error.errors())))
            except AssentError as error:
                if error.status >= 500:  # the last boundary logs these, and says when to come back
                    raise
                return page(error)

        return shown


async def on_http(request: Request, error: Exception) -> Response:
    """An address that is not there, among the pages: told by a page, to who reads pages."""
    missing = isinstance(error, HTTPException) and error.status_code == NotFound.status
    reads_pages = "text/html" in request.headers.get("accept", "")
    if not (missing and reads_pages and request.url.path.startswith("/inbox/")):
        return await errors.on_http(request, error)
    preferences.use(request)
    return page(NotFound(_("There is no such page.")))


def mendable(error: AssentError) -> AssentError:
    """What can be told beside the form it came from. A failure of ours is not for the page: it is raised again."""
    if error.status >= 500:
        raise error
    return error


def page(error: AssentError) -> Response:
    return render("error.html", status=error.status, problem=error)


def _compressed(request: Request, response: Response) -> Response:
    """Pages hold no secret beside what a stranger could make them say, so that nothing can be told from their size."""
    body = getattr(response, "body", b"")
    if len(body) > _WORTH_COMPRESSING and "gzip" in request.headers.get("accept-encoding", ""):
        response.body = gzip.compress(body, 5)
        response.headers["Content-Encoding"] = "gzip"
        response.headers["Content-Length"] = str(len(response.body))
    return response
