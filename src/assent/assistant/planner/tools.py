"""The tools that were bound, by what they are for. Their names and fields are a server's own choice, so a tool is found
by an explicit mapping, by its name, or by its schema and description; and its fields by the usual names for them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Role(StrEnum):
    CLARIFY = "request_clarification"
    CALENDARS = "list_calendars"
    EVENTS = "list_events"
    CREATE = "create_event"
    UPDATE = "update_event"
    DELETE = "delete_event"
    PLACES = "search_places"
    DIRECTIONS = "get_directions"
    ROOM = "book_room"


_FIELDS = {
    "name": ("name", "title", "summary", "subject", "purpose"),
    "start": ("start", "start_time", "start_datetime", "starts_at", "begin", "datetime"),
    "start_time": ("start_time", "start", "from_time", "time_min", "since", "start_date"),
    "duration_minutes": ("duration_minutes", "duration", "minutes", "length_minutes"),
    "duration_days": ("duration_days", "days"),
    "calendar_id": ("calendar_id", "calendar", "calendarId"),
    "event_id": ("event_id", "eventId", "id"),
    "location": ("location", "place", "where"),
    "description": ("description", "notes", "details"),
    "query": ("query", "q", "text", "search", "what"),
    "near": ("near", "around", "location", "near_place"),
    "origin": ("origin", "from", "from_place", "source"),
    "destination": ("destination", "to", "to_place", "target"),
    "mode": ("mode", "travel_mode", "profile"),
    "people": ("people", "attendees", "seats", "capacity", "guests"),
    "attendees": ("attendees", "guests", "participants", "invitees"),
    "equipment": ("equipment", "resources"),
    "question": ("question", "message", "prompt"),
    "context": ("context", "reason", "details"),
}


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    description: str
    properties: Mapping[str, Any]
    required: frozenset[str]

    def has(self, *fields: str) -> bool:
        return all(self.own_name(field) for field in fields)

    def own_name(self, field: str) -> str | None:
        """The tool's own name for this field; None if it does not have it."""
        return next((name for name in _FIELDS[field] if name in self.properties), None)

    def arguments(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Under the tool's own names, without what is not known and what it does not take."""
        named = {self.own_name(field): value for field, value in fields.items() if value is not None}
        return {name: value for name, value in named.items() if name is not None and self._takes(name, value)}

    def fields(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The way back: a call's arguments under our names."""
        named = ((field, self.own_name(field)) for field in _FIELDS)
        return {field: arguments[name] for field, name in named if name is not None and name in arguments}

    def _takes(self, name: str, value: Any) -> bool:
        allowed = choices(self.properties[name])
        return not allowed or value in allowed


def tool(schema: Mapping[str, Any]) -> Tool:
    """From the form in which tools are bound, OpenAI's."""
    function = schema.get("function", schema)
    parameters = function.get("parameters") or {}
    return Tool(
        name=function["name"],
        description=function.get("description") or "",
        properties=parameters.get("properties") or {},
        required=frozenset(parameters.get("required") or ()),
    )


def by_role(tools: Sequence[Tool], mapping: Mapping[str, str]) -> dict[Role, Tool]:
    """The tool of each role. An explicit mapping of names goes first, then names, then schemas."""
    assigned: dict[Role, Tool] = {}
    for tool in tools:
        if tool.name in mapping:
            assigned.setdefault(Role(mapping[tool.name]), tool)
    for finder in (_by_name, _by_schema):
        for tool in tools:
            role = finder(tool)
            if role and tool not in assigned.values():
                assigned.setdefault(role, tool)
    return assigned


def choices(schema: Any) -> list[Any]:
    """The values that a schema allows, wherever it says so; empty if it allows any."""
    if not isinstance(schema, Mapping):
        return []
    inner = [choices(option) for option in [*schema.get("anyOf", ()), schema.get("items")]]
    return [*schema.get("enum", ()), *(value for values in inner for value in values)]


def _by_name(tool: Tool) -> Role | None:
    snake = re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", tool.name).lower())
    return next((role for role in Role if snake == role or snake.endswith(f"_{role}")), None)


def _by_schema(tool: Tool) -> Role | None:
    text = f"{re.sub(r'[_-]', ' ', tool.name)} {tool.description}".lower()
    if "question" in tool.properties and _says(text, ("clarif", "ask", "user", "person")):
        return Role.CLARIFY
    if _says(text, ("calendars",)) and not tool.required:
        return Role.CALENDARS
    return next((role for role, has, lacks, *said in _FITS if _fits(tool, has, lacks) and _all(text, said)), None)


def _fits(tool: Tool, has: Sequence[str], lacks: Sequence[str]) -> bool:
    return tool.has(*has) and not any(tool.has(field) for field in lacks)


def _all(text: str, said: Sequence[Sequence[str]]) -> bool:
    return all(_says(text, words) for words in said)


def _says(text: str, words: Sequence[str]) -> bool:
    return any(re.search(rf"\b{word}", text) for word in words)


_CHANGES = ("updat", "chang", "edit", "modif", "mov", "reschedul")
_FITS: tuple[tuple[Any, ...], ...] = (
    (Role.ROOM, ["start"], [], ["room"], ["book", "reserv"]),
    (Role.UPDATE, ["event_id", "start"], [], _CHANGES),
    (Role.UPDATE, ["event_id", "name"], [], _CHANGES),
    (Role.DELETE, ["event_id"], [], ["delet", "remov", "cancel"]),
    (Role.CREATE, ["start", "name"], ["event_id"], ["creat", "add", "new", "schedul", "insert"]),
    (Role.DIRECTIONS, ["origin", "destination"], []),
    (Role.PLACES, ["query"], [], ["place", "map", "venue", "address"]),
    (Role.EVENTS, ["start_time"], ["name", "event_id"], ["list", "get", "read", "find", "event"]),
)
"""The fields that a tool of the role has, those it has not, and groups of words, one of each in its description."""
