"""The policy router by rules: which types of tools a request may use. The graph enforces it where tools run."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from assent.assistant.planner.dates.zone import machine_now
from assent.assistant.planner.goals import Directions, Goal, Places, Remark, Unclear
from assent.assistant.planner.intents.requests import understand
from assent.assistant.planner.tools import Tool, choices

CALENDAR, MAPS = "calendar", "maps"


def route(user_request: str, now: Callable[[], datetime] = machine_now) -> set[str]:
    """The types of tools that the request needs. One that is not understood may turn out to need any."""
    return set().union(*(_types(goal) for goal in understand(user_request, now())))


def structured(tool: Tool, text: str, now: Callable[[], datetime]) -> dict[str, Any]:
    """Arguments for a schema that asks for the allowed types: the list takes them, texts say where they come from."""
    return {name: _value(schema, route(text, now)) for name, schema in tool.properties.items()}


def _types(goal: Goal) -> set[str]:
    if isinstance(goal, Remark):
        return set()
    if isinstance(goal, Unclear):
        return {CALENDAR, MAPS}
    return {MAPS} if isinstance(goal, (Places, Directions)) else {CALENDAR}


def _permitted(types: set[str], offered: set[str]) -> set[str]:
    """Of the types that are offered. Where an operator's own names say nothing to us, any of them may be meant."""
    return types & offered if offered & {CALENDAR, MAPS} or not types else offered


def _value(schema: Any, types: set[str]) -> Any:
    kind = schema.get("type") if isinstance(schema, dict) else None
    allowed = choices(schema)
    if kind == "array":
        return sorted(_permitted(types, set(allowed)) if allowed else types)
    if kind == "boolean":
        return bool(types)
    if kind in ("number", "integer"):
        return len(types)
    if allowed:
        return next((value for value in sorted(types) if value in allowed), allowed[0])
    return "by the rules of the offline planner"
