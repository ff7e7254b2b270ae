"""The REST surface's one error translator.

Under `/api` errors are problem+json with our stable `code`; LangGraph's own routes answer `{"detail": "…"}` with the
same facts beside it, as their clients expect, and the assistant's `{"status": "error", "message": "…"}`. Whatever was
not raised on purpose becomes a 500 that tells an id and no internals; the log line with that id has the traceback.
"""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from assent import logs
from assent.errors import AssentError, Invalid, MethodNotAllowed, NotFound, Unavailable

log = logging.getLogger(__name__)

ASSISTANT = frozenset({"/run", "/resume", "/health-check"})
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


def install(app: FastAPI) -> None:
    app.add_exception_handler(AssentError, _on_assent_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, on_http)


async def _on_assent_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, AssentError)
    return respond(request.url.path, error)


async def _on_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    errors = [{"path": _path(one["loc"]), "message": one["msg"]} for one in error.errors()]
    summary = "; ".join(f"{one['path']}: {one['message']}" for one in errors)
    return respond(request.url.path, Invalid(summary, errors=errors))


async def on_http(request: Request, error: Exception) -> Response:
    """What the framework itself refuses: an address or a method that is not there, a form that cannot be read."""
    assert isinstance(error, HTTPException)
    known = {NotFound.status: NotFound, MethodNotAllowed.status: MethodNotAllowed}.get(error.status_code)
    message = known().message if known else str(error.detail)
    code = (known or (Invalid if error.status_code < 500 else AssentError)).code
    return _json(request.url.path, error.status_code, code, message, headers=dict(error.headers or {}))


def respond(path: str, error: AssentError) -> Response:
    """The response for an error, usable by middleware that stands outside the routes."""
    if error.status >= 500:
        log.error(error.message, extra={"code": error.code})
    headers = {"Retry-After": str(error.retry_after)} if isinstance(error, Unavailable) else {}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    facts = {"hint": error.hint} if error.hint else {}
    return _json(path, error.status, error.code, error.message, {**facts, **error.extra}, headers)


def last(path: str, error: Exception) -> Response:
    """The response for an error that reached the last boundary. What was not raised on purpose tells only an id."""
    if isinstance(error, AssentError):
        return respond(path, error)
    log.error("unhandled error", exc_info=error, extra={"path": path})
    told = f"something went wrong here; the log has it under {logs.request_id.get()}"
    return _json(path, AssentError.status, AssentError.code, told)


def is_ours(path: str) -> bool:
    """Whether an address belongs to our own REST rather than to the LangGraph API."""
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
