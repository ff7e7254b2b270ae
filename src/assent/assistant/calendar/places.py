"""The map: a few dozen places of Marenby, an invented town, and their distances.

Distances are estimated from the straight line; there are no streets in the data. The tools' descriptions state that.
"""

from __future__ import annotations

import difflib
import json
import math
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

from assent.errors import Invalid, NotFound

Mode = Literal["walking", "bicycling", "driving", "transit"]

_DETOUR = 1.3
_METRES_PER_MINUTE: dict[Mode, int] = {"walking": 75, "bicycling": 230, "driving": 420, "transit": 300}
_MINUTES_LOST: dict[Mode, int] = {"walking": 0, "bicycling": 1, "driving": 4, "transit": 6}
_WINDS = ("east", "north-east", "north", "north-west", "west", "south-west", "south", "south-east")


@dataclass(frozen=True, slots=True)
class Place:
    """`east` and `north` are metres from the market square."""

    place_id: str
    name: str
    category: str
    address: str
    hours: str
    east: int
    north: int

    def distance(self, other: Place) -> int:
        """The estimated distance on the ground, to ten metres."""
        return round(math.dist((self.east, self.north), (other.east, other.north)) * _DETOUR / 10) * 10

    def direction(self, other: Place) -> str:
        angle = math.atan2(other.north - self.north, other.east - self.east)
        return _WINDS[round(angle / (math.pi / 4)) % 8]


@cache
def places() -> tuple[Place, ...]:
    text = resources.files("assent.assistant.calendar").joinpath("places.json").read_text(encoding="utf-8")
    return tuple(Place(**place) for place in json.loads(text))


def search(query: str, near: Place | None = None) -> list[Place]:
    """Every word has to be in the name, the category or the address. Nearest first, or else by name."""
    words = query.casefold().split()
    if not words:
        raise Invalid("query: must not be blank", hint="a name, a kind of place or a street")
    matches = [place for place in places() if all(_mentions(place, word) for word in words)]
    return sorted(matches, key=lambda place: (near.distance(place) if near else 0, place.name))


def named(field: str, text: str) -> Place:
    """The only place with this id, name or part of a name."""
    wanted = text.strip().casefold()
    exact = [place for place in places() if wanted in (place.place_id, place.name.casefold())]
    matches = exact or [place for place in places() if wanted and wanted in place.name.casefold()]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise Invalid(f"{field}: {text!r} may be {_names(matches)}", hint="say which")
    similar = difflib.get_close_matches(text, [place.name for place in places()], n=3)
    hint = f"did you mean {' or '.join(similar)}?" if similar else "search_places finds places"
    raise NotFound(f"{field}: there is no place {text!r} on the map", hint=hint)


def minutes(metres: int, mode: Mode) -> int:
    return math.ceil(metres / _METRES_PER_MINUTE[mode]) + (_MINUTES_LOST[mode] if metres else 0)


def _mentions(place: Place, word: str) -> bool:
    text = f"{place.name} {place.category} {place.address}".casefold()
    return word in text or word.removesuffix("s") in text


def _names(matches: list[Place]) -> str:
    return " or ".join(place.name for place in matches[:5])
