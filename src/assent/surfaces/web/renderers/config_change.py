"""Configuration changes: current and proposed values by field."""

from __future__ import annotations

from collections.abc import Iterator

from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.surfaces.web.renderers.blocks import Caution, Diff, Facts, Rendering
from assent.surfaces.web.renderers.plain import plain
from assent.surfaces.web.renderers.registry import renders
from assent.surfaces.web.renderers.values.reading import Args, View, entries, first, mapping, only, others
from assent.surfaces.web.text import diffs
from assent.surfaces.web.text.diffs import Change

_SIDES = (("current", "proposed"), ("before", "after"), ("old", "new"), ("from", "to"), ("old_value", "new_value"))
_LISTS = ("changes", "diff", "fields")
_FIELD = ("field", "path", "key", "name", "setting")


@renders("config_change", label="Config change", icon="diff")
def config_change(item: View) -> Rendering | None:
    args = only(item)
    changes = list(_changes(args))
    sides = _sides(args)
    if not changes and sides is None:
        return None
    about = others(args, _LISTS, *(sides or ()))
    return Rendering(
        Facts(about) if about else None,
        Diff(changes) if changes else Caution("No change: both sides are equal."),
    )


def _changes(args: Args) -> Iterator[Change]:
    listed = first(args, *_LISTS)
    if isinstance(listed, dict):
        listed = [{"field": name, **mapping(change)} for name, change in listed.items()]
    for entry in map(mapping, entries(listed)):
        field, sides = first(entry, *_FIELD), _sides(entry)
        if field is None or sides is None:
            continue
        yield from _between(plain(field), entry, sides)
    if (sides := _sides(args)) is not None:
        yield from _between("", args, sides)


def _between(path: str, args: Args, sides: tuple[str, str]) -> list[Change]:
    """A missing side means that the field is absent."""
    before, after = ({path: args[side]} if side in args else {} for side in sides)
    return [Change(_without(change.path, path), change.old, change.new) for change in diffs.of_args(before, after)]


def _without(path: str, field: str) -> str:
    """Replaces the quoted field at the start of a path by its plain name."""
    start = canonical.join("", field)
    return (field + path[len(start) :]).lstrip(".") or "value"


def _sides(args: Json) -> tuple[str, str] | None:
    return next((pair for pair in _SIDES if any(side in args for side in pair)), None)
