"""Agents' text as markdown. Raw HTML stays text, images are not loaded, links show their host. A sanitiser cleans the
result again, independent of the renderer."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from markupsafe import Markup

from assent.surfaces.web.text.texts import shown

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

LONGEST = 50_000
_LONGEST_LINE = 2_000
_MARKS = frozenset("*_`#[>~|\\<\n")

_TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s",
    "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_ATTRIBUTES = {"a": {"href", "target"}, "span": {"class", "title"}, "ol": {"start"}}
_SCHEMES = {"http", "https", "mailto"}


def words(source: str) -> Markup:
    """Returns safe markup for a description."""
    import nh3

    text = source if len(source) <= LONGEST else f"{source[:LONGEST]}…"
    cleaned = nh3.clean(
        _markdown().render(text),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes=_SCHEMES,
        link_rel="noopener noreferrer nofollow",
    )
    return Markup(cleaned)  # noqa: S704 - nh3 has just cleaned it


def plain(source: str) -> str:
    """Returns the text without markdown on one line, for lists."""
    if not _MARKS.intersection(source):
        return " ".join(source.split())
    tokens = _markdown().parse(source[:_LONGEST_LINE])
    inner = (child for token in tokens for child in (token.children or [token]))
    return " ".join("".join(" " if part.type.endswith("break") else part.content for part in inner).split())


@cache
def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt  # lazy: servers without pages do not need it

    reader = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    reader.disable(["image", "html_block", "html_inline", "entity"])  # an entity could hide invisible characters
    for kind, rule in _RULES.items():
        reader.add_render_rule(kind, rule)
    return reader


def _text(self: Any, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[str, Any]) -> str:
    return str(shown(tokens[index].content))


def _code(self: Any, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[str, Any]) -> str:
    return f"<code>{shown(tokens[index].content)}</code>"


def _block(self: Any, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[str, Any]) -> str:
    return f"<pre><code>{shown(tokens[index].content)}</code></pre>\n"


def _link(self: Any, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[str, Any]) -> str:
    tokens[index].attrSet("target", "_blank")
    env.setdefault("links", []).append(str(tokens[index].attrGet("href") or ""))
    return str(self.renderToken(tokens, index, options, env))


def _link_end(self: Any, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[str, Any]) -> str:
    return f'</a> <span class="host">({shown(host(env["links"].pop()))})</span>'


def _heading(self: Any, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[str, Any]) -> str:
    """Every heading becomes h4, below the page's own headings."""
    tokens[index].tag = "h4"
    return str(self.renderToken(tokens, index, options, env))


_RULES = {
    "heading_open": _heading,
    "heading_close": _heading,
    "text": _text,
    "code_inline": _code,
    "code_block": _block,
    "fence": _block,
    "link_open": _link,
    "link_close": _link_end,
}


def host(address: str) -> str:
    """The host of a link, for people to judge."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return "an invalid address"
    return parts.netloc or (f"{parts.scheme}:" if parts.scheme else "this server")
