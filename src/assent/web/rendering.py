"""From a template and its facts to a response that a browser cannot be talked into misreading."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi.responses import HTMLResponse

from assent.web import preferences

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES = Path(__file__).parent / "templates"
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "Referrer-Policy": "same-origin",  # with no-referrer browsers send our own forms with `Origin: null`
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Vary": "Accept-Language, Cookie",
}


@cache
def environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # not for servers that show no page

    from assent.domain import canonical
    from assent.web import assets, language, markdown, renderers, texts, times, words

    pages: Any = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
    )
    pages.install_gettext_callables(language.gettext, language.ngettext, newstyle=True)
    pages.filters.update(
        shown=texts.shown,
        shown_exactly=texts.shown_exactly,
        spelled=texts.spelled,
        unseen=texts.unseen,
        canonical=canonical.text,
        markdown=markdown.words,
        plain=markdown.plain,
        host=markdown.host,
        time=times.time,
        translated=language.gettext,
        problem=words.problem,
    )
    pages.globals.update(
        words=words, static=assets.address, sprite=assets.sprite, preferences=preferences, type_sign=renderers.sign
    )
    return pages  # type: ignore[no-any-return]


def render(template: str, *, status: int = 200, **facts: Any) -> HTMLResponse:
    shown = environment().get_template(template).render(facts)
    return HTMLResponse(shown, status, headers=_HEADERS)
