"""Parts of the LangGraph API by path, for `http.disable_*` in langgraph.json."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from starlette.routing import BaseRoute

_EXACT = {"/.well-known/agent-card.json": "a2a"}
_FIRST = {
    "assistants": "assistants",
    "store": "store",
    "mcp": "mcp",
    "a2a": "a2a",
    "ui": "ui",
    "runs": "runs",
    "info": "meta",
    "metrics": "meta",
    "docs": "meta",
    "openapi.json": "meta",
}
_EVENTS = ("/commands", "/stream/events")


def part_of(path: str) -> str | None:
    """The part that a route of ours belongs to; None for routes that cannot be switched off."""
    if path in _EXACT:
        return _EXACT[path]
    first, *rest = path.removeprefix("/").split("/")
    if first != "threads":
        return _FIRST.get(first)
    if path.endswith(_EVENTS):
        return "event_streaming"
    return "runs" if "runs" in rest else "threads"


def without(disabled: Collection[str]) -> frozenset[str]:
    """The parts that are not served. Crons and event streaming start runs, so they go with them."""
    return frozenset((*disabled, "crons", "event_streaming") if "runs" in disabled else disabled)


def served(routes: Iterable[BaseRoute], disabled: Collection[str]) -> list[BaseRoute]:
    off = without(disabled)
    return [route for route in routes if part_of(getattr(route, "path", "")) not in off]
