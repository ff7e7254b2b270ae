"""Differences between two revisions, field by field, in the canonical text that was hashed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assent.kernel import canonical
from assent.kernel.canonical import Json

View = Mapping[str, Any]
_NOTHING = object()


@dataclass(frozen=True, slots=True)
class Change:
    """`old` or `new` is None where the field is absent."""

    path: str
    old: str | None
    new: str | None


def between(before: View, after: View) -> list[Change]:
    """Compares title, description, and the name and arguments of every action."""
    return [*_texts(before, after), *_actions(before["actions"], after["actions"])]


def of_args(before: Json, after: Json) -> list[Change]:
    return list(_fields("", before, after))


def _texts(before: View, after: View) -> Iterator[Change]:
    for name in ("title", "description"):
        if before.get(name) != after.get(name):
            yield Change(name, before.get(name), after.get(name))


def _actions(before: Sequence[View], after: Sequence[View]) -> Iterator[Change]:
    old, new = {action["key"]: action for action in before}, {action["key"]: action for action in after}
    several = len(old | new) > 1
    for key in old | new:
        was, is_now = old.get(key), new.get(key)
        label = str((is_now or was or {})["name"]) if several else ""
        if was and is_now and was["name"] != is_now["name"]:
            yield Change(canonical.below(label, "action"), was["name"], is_now["name"])
        yield from _fields(label, was["args"] if was else _NOTHING, is_now["args"] if is_now else _NOTHING)


def _fields(path: str, before: Any, after: Any) -> Iterator[Change]:
    """Compares objects recursively. A list is one value, because its entries have no names."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(name for name in after if name not in before)]:
            yield from _fields(canonical.join(path, name), before.get(name, _NOTHING), after.get(name, _NOTHING))
    elif (old := _text(before)) != (new := _text(after)):
        yield Change(path or "arguments", old, new)


def _text(value: Any) -> str | None:
    return None if value is _NOTHING else canonical.text(value)
