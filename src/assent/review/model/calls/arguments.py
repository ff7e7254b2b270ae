"""Tolerant access to arguments: missing values and wrong types yield empty results."""

from __future__ import annotations

from collections.abc import Mapping

from assent.kernel.canonical import Json

Args = Mapping[str, Json]


def mapping(value: Json) -> Args:
    return value if isinstance(value, Mapping) else {}


def first(args: Args, *names: str) -> Json:
    """The first value under these names that is not None."""
    return next((args[name] for name in names if args.get(name) is not None), None)


def text(args: Args, *names: str) -> str:
    """The first non-blank string under these names."""
    values = (args.get(name) for name in names)
    return next((value for value in values if isinstance(value, str) and value.strip()), "")


def entries(value: Json) -> list[Json]:
    """A list unchanged, a single value as a list, None as an empty list."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]
