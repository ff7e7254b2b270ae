"""Describes the object of a call: beside an id, a reviewer should see the name from earlier tool results, and beside a
new value the present one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AnyMessage, ToolMessage

from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.review.model.schemas.present import X_NOW
from assent.review.model.secrets import is_secret_name
from assent.review.model.titles import X_TITLE

_NAMES = ("name", "title", "summary")
_LONGEST = 200


def named_in(args: Mapping[str, Any], messages: Sequence[AnyMessage]) -> Mapping[str, Any] | None:
    """The object whose id is in the arguments, from the latest result with it."""
    objects = (_find(name, value, messages) for name, value in args.items() if name.endswith("_id") and value)
    return next((thing for thing in objects if thing is not None), None)


def about(thing: Mapping[str, Any]) -> str:
    """The object's name and its present start."""
    text, start = f"“{_name(thing)}”", thing.get("start")
    return f"{text}, now at {start[:_LONGEST]}" if isinstance(start, str) else text


def annotated(schema: Json, tool: str, args: Mapping[str, Any], thing: Mapping[str, Any]) -> Json:
    """The schema of the arguments with the object's present values, and with a title that says what changes. The title
    has the new values as placeholders: a reviewer may edit them."""
    if not isinstance(schema, dict):
        return schema
    now = {name: thing[name] for name, value in args.items() if _changes(name, value, thing)}
    properties = {
        name: {**part, X_NOW: now[name]} if name in now and isinstance(part, dict) else part
        for name, part in (schema.get("properties") or {}).items()
    }
    return {X_TITLE: _title(tool, now, thing), **schema, "properties": properties}


def _find(name: str, value: Any, messages: Sequence[AnyMessage]) -> Mapping[str, Any] | None:
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            for thing in _mappings(_data(message)):
                if thing.get(name) == value and any(isinstance(thing.get(key), str) for key in _NAMES):
                    return thing
    return None


def _name(thing: Mapping[str, Any]) -> str:
    return next(str(thing[key]) for key in _NAMES if isinstance(thing.get(key), str))[:_LONGEST]


def _changes(name: str, value: Any, thing: Mapping[str, Any]) -> bool:
    return name in thing and not is_secret_name(name) and not canonical.same(value, thing[name])


def _title(tool: str, now: Mapping[str, Any], thing: Mapping[str, Any]) -> str:
    changes = [f"{name}: {_plain(value)} → {{{name}}}" for name, value in now.items()]
    about = [_plain(thing["start"])] if not now and isinstance(thing.get("start"), str) else []
    return f"{tool}: “{_plain(_name(thing))}”" + "".join(f", {part}" for part in [*changes, *about])


def _plain(value: Any) -> str:
    """Without braces, which would be placeholders."""
    text = value if isinstance(value, str) else canonical.text(value)
    return text[:_LONGEST].replace("{", "(").replace("}", ")")


def _data(message: ToolMessage) -> Any:
    structured = message.artifact.get("structured_content") if isinstance(message.artifact, Mapping) else None
    if structured is not None or not isinstance(message.content, str):
        return structured
    try:
        return canonical.parse(message.content)
    except canonical.JsonError:
        return None


def _mappings(data: Any) -> Iterator[Mapping[str, Any]]:
    """The data's objects, the outer ones first."""
    if isinstance(data, Mapping):
        yield data
    inner = data.values() if isinstance(data, Mapping) else data if isinstance(data, list) else ()
    for value in inner:
        yield from _mappings(value)
