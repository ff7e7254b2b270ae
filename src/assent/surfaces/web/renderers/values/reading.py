"""Tolerant access to arguments: missing values and wrong types yield empty results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assent.kernel.canonical import Json
from assent.review.model.calls.arguments import Args, entries, first, mapping, text

View = Mapping[str, Any]

__all__ = ["Args", "View", "actions", "call", "entries", "first", "mapping", "only", "others", "text"]


def actions(item: View) -> list[View]:
    listed = item.get("actions")
    return [action for action in listed if isinstance(action, Mapping)] if isinstance(listed, list | tuple) else []


def call(item: View) -> tuple[str, Args]:
    """Name and arguments of the only action; empty if there are several."""
    calls = actions(item)
    if len(calls) != 1:
        return "", {}
    return str(calls[0].get("name") or ""), mapping(calls[0].get("args"))


def only(item: View) -> Args:
    """The named arguments of the only action."""
    return call(item)[1]


def others(args: Args, *shown: str | tuple[str, ...]) -> dict[str, Json]:
    """The arguments that no other block shows, so that the view is complete. Of alternative names, the block shows only
    the one that `first` finds."""
    groups = (names if isinstance(names, tuple) else (names,) for names in shown)
    used = {next((name for name in names if args.get(name) is not None), None) for names in groups}
    return {name: value for name, value in args.items() if name not in used}
