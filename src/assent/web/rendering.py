"""From a template and its facts to a response that a browser cannot be talked into misreading."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi.responses import HTMLResponse
from starlette.staticfiles import StaticFiles

if TYPE_CHECKING:
    from jinja2 import Environment

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
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # not for servers that show no page

    from assent.domain import canonical
    from assent.web import markdown, texts, times, words

    pages = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters.update(
        shown=texts.shown,
        shown_exactly=texts.shown_exactly,
        spelled=texts.spelled,
        canonical=canonical.text,
        markdown=markdown.words,
        host=markdown.host,
        time=times.time,
        counted=words.counted,
    )
    pages.globals.update(words=words)
    return pages


def render(template: str, *, status: int = 200, **facts: Any) -> HTMLResponse:
    return HTMLResponse(_environment().get_template(template).render(facts), status, headers=_HEADERS)


def static_files() -> StaticFiles:
    return StaticFiles(directory=_HERE / "static")
