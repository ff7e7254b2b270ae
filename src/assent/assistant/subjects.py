"""What a call is about, in words: a reviewer who reads an id should see the name that the tools gave with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AnyMessage, ToolMessage

from assent.domain import canonical

_NAMES = ("name", "title", "summary")
_LONGEST = 200


def about(args: Mapping[str, Any], said: Sequence[AnyMessage]) -> str | None:
    """The thing whose id the call has, as the last result that knows it tells: its name, and when it is now."""
    found = (_found(name, value, said) for name, value in args.items() if name.endswith("_id") and value)
    return next((told for one in found if one is not None and (told := _told(one))), None)


def _found(name: str, value: Any, said: Sequence[AnyMessage]) -> Mapping[str, Any] | None:
    for message in reversed(said):
        if isinstance(message, ToolMessage):
            for one in _mappings(_data(message)):
                if one.get(name) == value and any(isinstance(one.get(key), str) for key in _NAMES):
                    return one
    return None


def _told(one: Mapping[str, Any]) -> str:
    name = next(str(one[key]) for key in _NAMES if isinstance(one.get(key), str))
    start = one.get("start")
    told = f"“{name[:_LONGEST]}”"
    return f"{told}, now at {start[:_LONGEST]}" if isinstance(start, str) else told


def _data(message: ToolMessage) -> Any:
    kept = message.artifact.get("structured_content") if isinstance(message.artifact, Mapping) else None
    if kept is not None or not isinstance(message.content, str):
        return kept
    try:
        return canonical.parse(message.content)
    except canonical.JsonError:
        return None


def _mappings(data: Any) -> Iterator[Mapping[str, Any]]:
    """The data's objects, the outer ones first."""
    if isinstance(data, Mapping):
        yield data
    inner = data.values() if isinstance(data, Mapping) else data if isinstance(data, list) else ()
    for one in inner:
        yield from _mappings(one)
