"""How renderers read arguments that may be anything: what is not there, or is of another kind, is simply not found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assent.domain.canonical import Json

View = Mapping[str, Any]
Args = Mapping[str, Json]


def actions(item: View) -> list[View]:
    found = item.get("actions")
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list | tuple) else []


def call(item: View) -> tuple[str, Args]:
    """Name and arguments of the only action; of several, none is more meant than the others."""
    found = actions(item)
    if len(found) != 1:
        return "", {}
    return str(found[0].get("name") or ""), mapping(found[0].get("args"))


def only(item: View) -> Args:
    """The arguments of the only action, as long as they have names."""
    return call(item)[1]


def mapping(value: Json) -> Args:
    return value if isinstance(value, Mapping) else {}


def first(args: Args, *names: str) -> Json:
    """What stands under the first of these names that has something."""
    return next((args[name] for name in names if args.get(name) is not None), None)


def text(args: Args, *names: str) -> str:
    """The first of them that is a text and says something."""
    found = (args.get(name) for name in names)
    return next((one for one in found if isinstance(one, str) and one.strip()), "")


def entries(value: Json) -> list[Json]:
    """A list as it is, one thing as a list of it, nothing as none."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def others(args: Args, *told: str | tuple[str, ...]) -> dict[str, Json]:
    """What no other block tells, so that nothing is missing from a view that looks complete. Of several names for one
    thing only that is told which `first` would find."""
    groups = (one if isinstance(one, tuple) else (one,) for one in told)
    known = {next((name for name in names if args.get(name) is not None), None) for names in groups}
    return {name: value for name, value in args.items() if name not in known}
