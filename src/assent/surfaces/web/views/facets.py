"""Filter menus of the list. Each value becomes a search term in the URL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assent.surfaces.web import renderers
from assent.surfaces.web.text import words

_RISKS = ("low", "medium", "high", "critical")
_AGES = (("1h", "1 hour"), ("1d", "1 day"), ("7d", "1 week"))
_MARKS = (("claimed", "Claimed"), ("snoozed", "Snoozed"), ("gated", "Gated"), ("in-doubt", "In doubt"))


@dataclass(frozen=True, slots=True)
class Facet:
    field: str
    label: str
    values: Sequence[tuple[str, str]]


def facets() -> list[Facet]:
    return [
        Facet("type", "Type", [(name, renderers.sign(name).word) for name in renderers.types()]),
        Facet("risk", "Risk", [(name, words.risk_word(name)) for name in _RISKS]),
        Facet("older", "Older than", _AGES),
        Facet("is", "Only", _MARKS),
    ]
