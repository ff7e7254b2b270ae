"""Which function renders which type. Ours and those of other packages come in by the same decorator.

The one that was registered last is asked first, so that a package can put its own in the place of ours; one that has
nothing to say returns None, and the next is asked. What a renderer raises is logged, never shown.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import Any, TypeVar

from assent.web import words
from assent.web.renderers.blocks import Heading, Rendering
from assent.web.renderers.reading import View
from assent.web.words import Sign

log = logging.getLogger(__name__)

GROUP = "assent.renderers"
"""The entry points of other packages: modules to import, or functions to call, that register renderers."""

GUESSED = "tool"
"""The type of whatever an agent's tools want to do: here a renderer may recognise its own by name and arguments."""

Renderer = Callable[[View], Rendering | None]
Matches = Callable[[View], bool]
F = TypeVar("F", bound=Renderer)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Registered:
    types: tuple[str, ...]
    render: Renderer
    label: str | None
    icon: str
    matches: Matches | None

    @property
    def name(self) -> str:
        return f"{getattr(self.render, '__module__', '')}.{getattr(self.render, '__qualname__', self.types[0])}"


_registered: list[Registered] = []


def renders(
    *types: str, label: str | None = None, icon: str = "request", matches: Matches | None = None
) -> Callable[[F], F]:
    """Registers a function for items of these types; `matches` recognises tool calls that are the same thing."""
    if not types or not all(isinstance(one, str) for one in types):
        raise TypeError('name the type: @renders("invoice")')

    def register(render: F) -> F:
        _registered.append(Registered(types, render, label, icon, matches))
        return render

    return register


def rendered(item: View, action: View | None = None) -> Rendering | None:
    """How an item looks, or one of its actions; None where only its exact arguments tell.

    The renderers get a copy: what they do to it changes nothing that the page shows besides."""
    seen = deepcopy(dict(item) if action is None else {**item, "actions": [action]})
    own = [one for one in known() if item.get("type") in one.types]
    guessed = (_recognised(one, seen) for one in known() if one not in own and _matches(one, seen))
    found = (_first(guessed), _first(_rendering(one, seen) for one in own))
    blocks = [block for one in found if one is not None for block in one.blocks]
    return Rendering(*blocks) if blocks else None


def sign(type: str) -> Sign:
    """The icon and the word for a type in lists."""
    found = next((one for one in known() if type in one.types and one.label), None)
    if found is not None and found.label:
        return Sign(Heading("", found.icon).icon, str(found.label))
    return words.TYPES.get(type) or Sign("request", type)


def types() -> list[str]:
    """Those that have a word of their own."""
    named = (type for one in known()[::-1] if one.label for type in one.types[:1])
    return list(dict.fromkeys([*words.TYPES, *named]))


def known() -> list[Registered]:
    """Every renderer, the one to be asked first in front."""
    load_plugins()
    return _registered[::-1]


@cache
def load_plugins() -> None:
    """Once, when the first item is shown. A package that cannot be loaded is passed over."""
    for point in metadata.entry_points(group=GROUP):
        try:
            _register(point.load())
        except Exception:  # somebody else's code: the other packages, and ours, must be there all the same
            log.exception("renderers of another package could not be loaded", extra={"entry_point": point.name})


def _register(loaded: Any) -> None:
    """Importing was enough for a module and for a function that `renders` stands above; another one is called."""
    if callable(loaded) and not any(one.render is loaded for one in _registered):
        loaded()


def _recognised(one: Registered, item: View) -> Rendering | None:
    """With what it was taken for, because a tool by itself does not say."""
    found = _rendering(one, item)
    return found and Rendering(Heading(one.label or one.types[0], one.icon), *found.blocks)


def _matches(one: Registered, item: View) -> bool:
    matches = one.matches
    if item.get("type") != GUESSED or matches is None:
        return False
    return _tried(one, item, lambda: bool(matches(item))) or False


def _rendering(one: Registered, item: View) -> Rendering | None:
    found = _tried(one, item, lambda: _checked(one.render(item)))
    return found if found is not None and found.blocks else None


def _checked(found: object) -> Rendering | None:
    if found is None or type(found) is Rendering:
        return found
    raise TypeError(f"a renderer returns a Rendering or None, not {type(found).__name__}")


def _tried(one: Registered, item: View, ask: Callable[[], T]) -> T | None:
    try:
        return ask()
    except Exception:  # somebody else's code: whatever it raises, the item must be shown
        facts = {"renderer": one.name, "type": item.get("type"), "item": item.get("id")}
        log.exception("a renderer failed; the arguments are shown without it", extra=facts)
        return None


def _first(found: Iterator[Rendering | None]) -> Rendering | None:
    return next((one for one in found if one is not None), None)
