"""The map's tools, over the places of an invented town: a second type of tool for the assistant."""

from __future__ import annotations

from typing import Annotated

from fastmcp import FastMCP
from mcp_types import ToolAnnotations
from pydantic import Field
from typing_extensions import TypedDict

from assent.assistant.calendar import places
from assent.assistant.calendar.faults import translating_errors
from assent.assistant.calendar.places import Mode, Place

_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_MOST_FOUND = 20

Where = Annotated[str, Field(max_length=200, description="The name or place_id of a place that search_places finds.")]


class PlaceView(TypedDict):
    place_id: str
    name: str
    category: str
    address: str
    hours: str
    distance_meters: int | None


class Places(TypedDict):
    places: list[PlaceView]


class Directions(TypedDict):
    origin: str
    destination: str
    mode: Mode
    distance_meters: int
    duration_minutes: int
    steps: list[str]


def add_to(server: FastMCP) -> None:
    for tool in (search_places, get_directions):
        server.tool(translating_errors(tool), annotations=_READS, tags={"maps"})


def search_places(
    query: Annotated[str, Field(max_length=200, description="A name, a kind of place such as cafe, or a street.")],
    near: Where | None = None,
) -> Places:
    """Find places in Marenby, a small invented town with made-up data. With `near`, the nearest come first."""
    middle = places.named("near", near) if near else None
    return {"places": [_view(place, middle) for place in places.search(query, middle)[:_MOST_FOUND]]}


def get_directions(origin: Where, destination: Where, mode: Mode = "walking") -> Directions:
    """Estimate the way between two places in Marenby, an invented town: from the straight line, not along streets."""
    start, end = places.named("origin", origin), places.named("destination", destination)
    metres = start.distance(end)
    minutes = places.minutes(metres, mode)
    return {
        "origin": start.name,
        "destination": end.name,
        "mode": mode,
        "distance_meters": metres,
        "duration_minutes": minutes,
        "steps": _steps(start, end, metres, minutes) if start != end else ["You are there."],
    }


def _steps(start: Place, end: Place, metres: int, minutes: int) -> list[str]:
    return [
        f"Leave {start.name}, {start.address}, and head {start.direction(end)}.",
        f"Go on for about {metres / 1000:.1f} km, {minutes} minutes.",
        f"Arrive at {end.name}, {end.address}.",
    ]


def _view(place: Place, near: Place | None) -> PlaceView:
    return {
        "place_id": place.place_id,
        "name": place.name,
        "category": place.category,
        "address": place.address,
        "hours": place.hours,
        "distance_meters": near.distance(place) if near else None,
    }
