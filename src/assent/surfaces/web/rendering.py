"""Renders templates to responses with security headers."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi.responses import HTMLResponse

from assent.kernel import fair_threads
from assent.surfaces.web import preferences

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES = Path(__file__).parent / "templates"


def policy(connect: str = "'self'") -> str:
    """The content security policy of a page whose scripts may call `connect`."""
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src {connect}; "
        "manifest-src 'self'; worker-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    )


_HEADERS = {
    "Content-Security-Policy": policy(),
    "Referrer-Policy": "same-origin",  # with no-referrer browsers send our own forms with `Origin: null`
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Vary": "Accept-Language, Cookie",
}


@cache
def environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # lazy: servers without pages do not need it

    from assent.kernel import canonical
    from assent.surfaces import extensions
    from assent.surfaces.web import assets, language, renderers, titles
    from assent.surfaces.web.text import markdown, texts, times, words

    pages: Any = Environment(
        loader=FileSystemLoader([_TEMPLATES, *extensions.folders("templates")]),
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
        pretty=texts.pretty,
        key=texts.key,
        size=texts.size,
        markdown=markdown.words,
        plain=markdown.plain,
        host=markdown.host,
        heading=titles.row_heading,
        summary=titles.row_summary,
        time=times.time,
        date=times.date,
        soon=times.soon,
        translated=language.gettext,
        problem=words.problem,
    )
    pages.globals.update(
        words=words,
        static=assets.address,
        build=assets.build,
        sprite=assets.sprite,
        preferences=preferences,
        type_sign=renderers.sign,
    )
    return pages  # type: ignore[no-any-return]


async def draw(template: str, *, status: int = 200, **facts: Any) -> HTMLResponse:
    """`render` in a thread, so that pages with long agent texts do not block other requests."""
    return await fair_threads.one_by_one(partial(render, template, status=status, **facts))


def render(template: str, *, status: int = 200, **facts: Any) -> HTMLResponse:
    html = environment().get_template(template).render(facts)
    return HTMLResponse(html, status, headers=_HEADERS)
