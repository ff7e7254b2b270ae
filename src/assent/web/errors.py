"""The pages' one error translator: what cannot be shown or done becomes a page that says why, and what to do next."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError

from assent.errors import AssentError, Invalid
from assent.http.routing import StrictRoute
from assent.web.rendering import render


class PageRoute(StrictRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def shown(request: Request) -> Response:
            try:
                return await handle(request)
            except RequestValidationError as error:
                return page(Invalid("; ".join(str(one["msg"]) for one in error.errors())))
            except AssentError as error:
                if error.status >= 500:  # the last boundary logs these, and says when to come back
                    raise
                return page(error)

        return shown


def page(error: AssentError) -> Response:
    return render("error.html", status=error.status, problem=error)
