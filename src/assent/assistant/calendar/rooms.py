"""Rooms that can be booked, in an invented town, and the choice of a suitable one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from assent.errors import Invalid

Equipment = Literal["none", "whiteboard", "screen", "video"]


@dataclass(frozen=True, slots=True)
class Room:
    name: str
    seats: int
    equipment: frozenset[Equipment]

    def suits(self, people: int, equipment: Equipment) -> bool:
        return self.seats >= people and equipment in {"none", *self.equipment}


# From the smallest to the largest: the first that suits leaves the larger ones to larger groups.
ROOMS = (
    Room("Alder, Marenby Town Hall", 4, frozenset({"whiteboard"})),
    Room("Birch, Marenby Town Hall", 6, frozenset({"whiteboard", "screen"})),
    Room("Cedar, Harbour Works", 10, frozenset({"screen", "video"})),
    Room("Dogwood, Harbour Works", 16, frozenset({"whiteboard", "screen", "video"})),
    Room("Elm Hall, Old Granary", 40, frozenset({"screen"})),
)
MOST_PEOPLE = max(room.seats for room in ROOMS)


def choose(people: int, equipment: Equipment, taken: Collection[str]) -> Room:
    suitable = [room for room in ROOMS if room.suits(people, equipment)]
    if not suitable:
        raise Invalid(f"equipment: no room for {people} has {equipment}", hint="fewer people, or other equipment")
    free = next((room for room in suitable if room.name not in taken), None)
    if free is None:
        raise Invalid("start: every room that suits is taken at that time", hint="another time")
    return free
