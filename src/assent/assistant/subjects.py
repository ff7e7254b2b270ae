"""Describes the object of a call: beside an id, a reviewer should see the name from earlier tool results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AnyMessage, ToolMessage

from assent.kernel import canonical

_NAMES = ("name", "title", "summary")
_LONGEST = 200


def about(args: Mapping[str, Any], messages: Sequence[AnyMessage]) -> str | None:
    """The name and the present start of the object whose id is in the arguments, from the latest result with it."""
    objects = (_find(name, value, messages) for name, value in args.items() if name.endswith("_id") and value)
    return next((_described(thing) for thing in objects if thing is not None), None)


def _find(name: str, value: Any, messages: Sequence[AnyMessage]) -> Mapping[str, Any] | None:
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            for thing in _mappings(_data(message)):
                if thing.get(name) == value and any(isinstance(thing.get(key), str) for key in _NAMES):
                    return thing
    return None


def _described(thing: Mapping[str, Any]) -> str:
    name = next(str(thing[key]) for key in _NAMES if isinstance(thing.get(key), str))
    start = thing.get("start")
    text = f"“{name[:_LONGEST]}”"
    return f"{text}, now at {start[:_LONGEST]}" if isinstance(start, str) else text


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
