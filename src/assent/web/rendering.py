"""From a template and its facts to a response that a browser cannot be talked into misreading."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.staticfiles import StaticFiles

_HERE = Path(__file__).parent
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "Referrer-Policy": "same-origin",  # with no-referrer browsers send our own forms with `Origin: null`
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


@cache
def _environment() -> Environment:
    return Environment(loader=FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=StrictUndefined)


def render(template: str, *, status: int = 200, **facts: Any) -> HTMLResponse:
    return HTMLResponse(_environment().get_template(template).render(facts), status, headers=_HEADERS)


def static_files() -> StaticFiles:
    return StaticFiles(directory=_HERE / "static")
