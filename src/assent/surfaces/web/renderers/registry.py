"""The registry of renderers, built-in and from plugins.

The last registered renderer is tried first, so that a plugin can replace a built-in one. A renderer that returns None
passes to the next. Exceptions of renderers are logged, never shown.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib import metadata
from typing import Any, TypeVar

from assent.surfaces.web.renderers.blocks import Block, Caution, Facts, Heading, Rendering
from assent.surfaces.web.renderers.plain import plain
from assent.surfaces.web.renderers.values import amounts, moments
from assent.surfaces.web.renderers.values.reading import View, mapping
from assent.surfaces.web.text import words
from assent.surfaces.web.text.words import Sign

log = logging.getLogger(__name__)

GROUP = "assent.renderers"
"""Entry points of plugins: modules to import, or functions to call, that register renderers."""

RISK = "Risk"
"""The first row of an assessment."""

GUESSED = "tool"
"""The type of plain tool calls. Renderers recognise their own by tool name and arguments."""

Renderer = Callable[[View], Rendering | None]
Matches = Callable[[View], bool]
Title = Callable[[View], str | None]
F = TypeVar("F", bound=Renderer)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Registered:
    types: tuple[str, ...]
    render: Renderer
    label: str | None
    icon: str
    matches: Matches | None
    title: Title | None = None

    @property
    def name(self) -> str:
        return f"{getattr(self.render, '__module__', '')}.{getattr(self.render, '__qualname__', self.types[0])}"


_registered: list[Registered] = []


def renders(
    *types: str,
    label: str | None = None,
    icon: str = "request",
    matches: Matches | None = None,
    title: Title | None = None,
) -> Callable[[F], F]:
    """Registers a function for items of these types; `matches` recognises equivalent tool calls, and `title` says what
    a call does in one sentence."""
    if not types or not all(isinstance(type, str) for type in types):
        raise TypeError('name the type: @renders("invoice")')

    def register(render: F) -> F:
        _registered.append(Registered(types, render, label, icon, matches, title))
        return render

    return register


def rendered(item: View, action: View | None = None) -> Rendering | None:
    """Renders an item or one of its actions; None if no renderer applies.

    Renderers get a copy, so that they cannot change the rest of the page."""
    copy = _Copy(item if action is None else {**item, "actions": [action]})
    own = [entry for entry in known() if item.get("type") in entry.types]
    guessed = (_recognised(entry, copy) for entry in known() if entry not in own and _matches(entry, copy))
    renderings = (_first(guessed), _first(_rendering(entry, copy) for entry in own))
    blocks = [block for rendering in renderings if rendering is not None for block in rendering.blocks]
    return Rendering(*blocks) if blocks else None


def shown(item: View, action: View) -> Rendering | None:
    """The human view of one action: as `rendered`, without the assessment of plain tool calls and without the cautions
    that the page shows above it. Arguments that the renderer leaves out follow in a table."""
    warned = {caution["text"] for caution in action["cautions"]}
    rendering = rendered(item, action)
    blocks = [
        block
        for block in (rendering.blocks if rendering else ())
        if not (isinstance(block, Caution) and block.text in warned) and not _assesses(block)
    ]
    if not any(not isinstance(block, Heading | Caution) for block in blocks):
        return Rendering(*blocks) if any(isinstance(block, Caution) for block in blocks) else None
    return Rendering(*blocks, Facts(_left_out(blocks, mapping(action["args"]))))


def _assesses(block: Block) -> bool:
    """Whether the block is the assessment of `tool_call`, which the page shows beside the name."""
    return isinstance(block, Facts) and bool(block.rows) and block.rows[0].label == RISK


def _left_out(blocks: Sequence[Block], args: Mapping[str, Any]) -> dict[str, Any]:
    text = "\n".join(_texts(blocks))
    return {name: value for name, value in args.items() if not all(_stands(leaf, text) for leaf in _leaves(value))}


def _stands(leaf: str, text: str) -> bool:
    return leaf in text or amounts.grouped(leaf) in text or _tells_moment(leaf, text)


def _tells_moment(leaf: str, text: str) -> bool:
    """Whether the text has this time, to the last digit that is not zero."""
    moment = moments.read(leaf)
    return moment is not None and not (moment.at.second or moment.at.microsecond) and str(moment) in text


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (leaf for inner in value.values() for leaf in _leaves(inner))
    elif isinstance(value, list | tuple):
        yield from (leaf for inner in value for leaf in _leaves(inner))
    elif value is not None and value != "":
        yield plain(value)[:200]


def _texts(part: Any) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, list | tuple):
        yield from (text for inner in part for text in _texts(inner))
    elif is_dataclass(part):
        yield from (text for field in fields(part) for text in _texts(getattr(part, field.name)))


def title(item: View, action: View) -> str | None:
    """The sentence of the first renderer that has one for this call."""
    copy = _Copy({**item, "actions": [action]})
    for entry in known():
        if entry.title is None or not (item.get("type") in entry.types or _matches(entry, copy)):
            continue
        make = entry.title
        told = _tried(entry, copy, lambda make=make: make(copy))  # type: ignore[misc]
        if isinstance(told, str) and told.strip():
            return told
    return None


class _Copy(MutableMapping[str, Any]):
    """Copies fields of an item on first access: an item can have hundreds of actions, each rendered with the item."""

    def __init__(self, item: View) -> None:
        self._fields = dict(item)
        self._shared = set(self._fields)

    def __getitem__(self, name: str) -> Any:
        if name in self._shared:
            self[name] = _copied(self._fields[name])
        return self._fields[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._shared.discard(name)
        self._fields[name] = value

    def __delitem__(self, name: str) -> None:
        self._shared.discard(name)
        del self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


def _copied(value: Any) -> Any:
    """`deepcopy` of JSON, in a fraction of its time."""
    if isinstance(value, dict):
        return {name: _copied(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_copied(inner) for inner in value]
    return value if isinstance(value, str | int | float | None) else deepcopy(value)


def sign(type: str) -> Sign:
    """The icon and label of a type in lists."""
    entry = next((entry for entry in known() if type in entry.types and entry.label), None)
    if entry is not None and entry.label:
        return Sign(Heading("", entry.icon).icon, str(entry.label))
    return words.TYPES.get(type) or Sign("request", type)


def types() -> list[str]:
    """The types that have a label."""
    named = (type for entry in known()[::-1] if entry.label for type in entry.types[:1])
    return list(dict.fromkeys([*words.TYPES, *named]))


def known() -> list[Registered]:
    """All renderers, in the order they are tried."""
    load_plugins()
    return _registered[::-1]


@cache
def load_plugins() -> None:
    """Loads plugins once, at the first item. Plugins that fail to load are skipped."""
    for point in metadata.entry_points(group=GROUP):
        try:
            _register(point.load())
        except Exception:  # third-party code: the other renderers must still load
            log.exception("load renderer plugin failed", extra={"entry_point": point.name})


def _register(loaded: Any) -> None:
    """Calls the entry point, unless it is a module or already registered by `renders`."""
    if callable(loaded) and not any(entry.render is loaded for entry in _registered):
        loaded()


def _recognised(entry: Registered, item: View) -> Rendering | None:
    """Renders a tool call under a heading with the recognised type."""
    rendering = _rendering(entry, item)
    return rendering and Rendering(Heading(entry.label or entry.types[0], entry.icon), *rendering.blocks)


def _matches(entry: Registered, item: View) -> bool:
    matches = entry.matches
    if item.get("type") != GUESSED or matches is None:
        return False
    return _tried(entry, item, lambda: bool(matches(item))) or False


def _rendering(entry: Registered, item: View) -> Rendering | None:
    rendering = _tried(entry, item, lambda: _checked(entry.render(item)))
    return rendering if rendering is not None and rendering.blocks else None


def _checked(result: object) -> Rendering | None:
    if result is None or type(result) is Rendering:
        return result
    raise TypeError(f"a renderer returns a Rendering or None, not {type(result).__name__}")


def _tried(entry: Registered, item: View, call: Callable[[], T]) -> T | None:
    try:
        return call()
    except Exception:  # third-party code: the item must be shown without it
        facts = {"renderer": entry.name, "type": item.get("type"), "item": item.get("id")}
        log.exception("render item failed", extra=facts)
        return None


def _first(renderings: Iterator[Rendering | None]) -> Rendering | None:
    return next((rendering for rendering in renderings if rendering is not None), None)
