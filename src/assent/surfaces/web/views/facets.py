"""Filter menus of the list. Each value becomes a search term in the URL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from assent.review.model.search import filters
from assent.review.rows.item_search import MOST_FACETED
from assent.surfaces.web import renderers
from assent.surfaces.web.text import words
from assent.surfaces.web.views.item_list import Listing
from assent.surfaces.web.views.people import Names

_RISKS = ("critical", "high", "medium", "low")
_MOST_VALUES = 12
_AGES = (("1h", "1 hour"), ("1d", "1 day"), ("7d", "1 week"))
_MARKS = (("claimed", "Claimed"), ("snoozed", "Snoozed"), ("gated", "Gated"), ("in-doubt", "In doubt"))
_OWNERS = (("me", "Me"), ("none", "Nobody"))
_SORTS = (("newest", "Newest"), ("oldest", "Oldest"), ("deadline", "Deadline"), ("risk", "Highest risk"))
_GROUPS = (("agent", "Agent"), ("thread", "Thread"), ("type", "Type"))


@dataclass(frozen=True, slots=True)
class Choice:
    value: str
    label: str
    count: int | None = None

    @property
    def counted(self) -> str:
        if self.count is None:
            return ""
        return f"{self.count:,}{'+' if self.count >= MOST_FACETED else ''}"


@dataclass(frozen=True, slots=True)
class Facet:
    field: str
    label: str
    choices: Sequence[Choice]


def facets(listed: Listing) -> list[Facet]:
    """The menus: values that occur, with their counts, then the fixed ones."""
    counts, names = listed.found.facets, listed.names
    counted = [
        Facet("kind", "Type", _types(counts.get("kind", {}))),
        Facet("risk", "Risk", _risks(counts.get("risk", {}))),
        Facet("agent", "Agent", _agents(counts.get("agent", {}), names)),
    ]
    fixed = [
        Facet("owner", "Owner", [Choice(*owner) for owner in _OWNERS]),
        Facet("older", "Older than", [Choice(*age) for age in _AGES]),
        Facet("is", "Only", [Choice(*mark) for mark in _MARKS]),
        Facet("sort", "Sort", [Choice(*sort) for sort in _SORTS]),
        Facet("group", "Group by", [Choice(*group) for group in _GROUPS]),
    ]
    return [*(facet for facet in counted if facet.choices), *fixed]


def suggestions(menus: Sequence[Facet]) -> list[str]:
    """Words that the search field offers."""
    offered = [f"is:{word}" for word in filters.WORDS]
    offered += [f"{facet.field}:{choice.value}" for facet in menus if facet.field != "is" for choice in facet.choices]
    fields = [f"{field}:" for field in filters.FIELDS]
    return list(dict.fromkeys(word for word in (*offered, *fields) if not set(word) & {'"', "'", " "}))


def _types(counts: Mapping[str, int]) -> list[Choice]:
    return [Choice(type, renderers.sign(type).word, count) for type, count in _most(counts)]


def _risks(counts: Mapping[str, int]) -> list[Choice]:
    return [Choice(risk, words.risk_word(risk), counts[risk]) for risk in _RISKS if risk in counts]


def _agents(counts: Mapping[str, int], names: Names) -> list[Choice]:
    return [Choice(actor, names.of(actor), count) for actor, count in _most(counts)]


def _most(counts: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """The most frequent values first. A value that the filter language cannot express is left out."""
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ((value, count) for value, count in ordered[:_MOST_VALUES] if not set(value) & {'"', "'", ","})
