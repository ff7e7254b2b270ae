"""What a list can be narrowed to without typing: each value becomes a term of the search, and stands in the address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assent.web import renderers, words

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
