"""Translates errors into HTTP responses.

Under `/api` errors are problem+json with our stable `code`; LangGraph's routes answer `{"detail": "…"}` with the same
fields, as their clients expect, and the assistant's routes `{"status": "error", "message": "…"}`. An unexpected error
becomes a 500 with an id and no internals; the log line with that id has the traceback.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.types import Scope

from assent import errors, logs
from assent.errors import (
    AssentError,
    ConfirmationRequired,
    Invalid,
    MethodNotAllowed,
    NotFound,
    TooManyRequests,
    Unavailable,
)

log = logging.getLogger(__name__)

ErrorPage = Callable[[Request, AssentError], Response | None]
"""Renders an error as a page if the request is for a page."""

ASSISTANT = frozenset({"/run", "/resume", "/cancel", "/prompts", "/health-check"})
"""The routes of the reference assistant."""


class Problem(BaseModel):
    """An error, as application/problem+json."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    hint: str | None = None
    request_id: str | None = None


def install(app: FastAPI, page: Callable[[Request, str], str] | None = None) -> None:
    """`page` returns the full URL of a page."""
    app.state.page = page
    app.add_exception_handler(AssentError, _on_assent_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, on_http)


async def _on_assent_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, AssentError)
    if isinstance(error, ConfirmationRequired) and request.app.state.page is not None:
        error.extra["url"] = request.app.state.page(request, error.extra["url"])
    return respond(request.url.path, error)


async def _on_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return respond(request.url.path, invalid(error))


def invalid(error: RequestValidationError | ValidationError) -> Invalid:
    """The error of a body, of arguments or of an input, with each wrong field."""
    return Invalid(problems=[errors.Problem(_path(fault["loc"]), fault["msg"]) for fault in error.errors()])


async def on_http(request: Request, error: Exception) -> Response:
    """Errors of the framework: an unknown path or method, an unreadable form."""
    assert isinstance(error, HTTPException)
    kind = {NotFound.status: NotFound, MethodNotAllowed.status: MethodNotAllowed}.get(error.status_code)
    message = kind().message if kind else str(error.detail)
    code = (kind or (Invalid if error.status_code < 500 else AssentError)).code
    return _json(request.url.path, error.status_code, code, message, headers=dict(error.headers or {}))


def respond(path: str, error: AssentError) -> Response:
    """The response for an error, usable by middleware as well."""
    if error.status >= 500:
        log.error(error.message, extra={"code": error.code})
    headers = {"Retry-After": str(error.retry_after)} if isinstance(error, Unavailable | TooManyRequests) else {}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    facts = {"hint": error.hint} if error.hint else {}
    return _json(path, error.status, error.code, error.message, {**facts, **error.extra}, headers)


def refuse(scope: Scope, error: AssentError) -> Response:
    """The response for an error that middleware raised before routing: a page if a page was requested."""
    response = respond(scope["path"], error)
    error_page: ErrorPage | None = getattr(scope["app"].state, "error_page", None) if "app" in scope else None
    page = error_page(Request(scope), error) if error_page and scope["type"] == "http" else None
    if page is None:
        return response
    if "retry-after" in response.headers:
        page.headers["Retry-After"] = response.headers["retry-after"]
    return page


def last(path: str, error: Exception) -> Response:
    """The response for an error that no handler caught. An unexpected error shows only its id."""
    if isinstance(error, AssentError):
        return respond(path, error)
    log.error("unhandled error", exc_info=error, extra={"path": path})
    message = f"internal error; search the log for {logs.request_id.get()}"
    return _json(path, AssentError.status, AssentError.code, message)


def last_of(scope: Scope, error: Exception) -> Response:
    """Like `last`; an expected error is a page if a page was requested."""
    return refuse(scope, error) if isinstance(error, AssentError) else last(scope["path"], error)


def is_ours(path: str) -> bool:
    """Whether a path belongs to our own REST API rather than to the LangGraph API."""
    return path == "/api" or path.startswith("/api/")


def _json(
    path: str,
    status: int,
    code: str,
    message: str,
    facts: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    shared = {"code": code, **(facts or {}), "request_id": logs.request_id.get()}
    if is_ours(path):
        body = {
            "type": f"urn:assent:error:{code}",
            "title": code.replace("_", " "),
            "status": status,
            "detail": message,
        }
        return JSONResponse(body | shared, status, headers, media_type="application/problem+json")
    if path in ASSISTANT:
        return JSONResponse({"status": "error", "message": message} | shared, status, headers)
    return JSONResponse({"detail": message} | shared, status, headers)


def _path(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location if part != "body") or "body"
