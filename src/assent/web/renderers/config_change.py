"""A change of settings, field by field: what is, and what would be."""

from __future__ import annotations

from collections.abc import Iterator

from assent.domain import canonical
from assent.domain.canonical import Json
from assent.web import diffs
from assent.web.diffs import Change
from assent.web.renderers.blocks import Caution, Diff, Facts, Rendering
from assent.web.renderers.plain import plain
from assent.web.renderers.reading import Args, View, entries, first, mapping, only, others
from assent.web.renderers.registry import renders

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
        Diff(changes) if changes else Caution("Nothing would change: both sides are the same."),
    )


def _changes(args: Args) -> Iterator[Change]:
    listed = first(args, *_LISTS)
    if isinstance(listed, dict):
        listed = [{"field": name, **mapping(one)} for name, one in listed.items()]
    for entry in map(mapping, entries(listed)):
        field, sides = first(entry, *_FIELD), _sides(entry)
        if field is None or sides is None:
            continue
        yield from _between(plain(field), entry, sides)
    if (sides := _sides(args)) is not None:
        yield from _between("", args, sides)


def _between(path: str, args: Args, sides: tuple[str, str]) -> list[Change]:
    """A side that is not named at all was not there, or will not be."""
    before, after = ({path: args[side]} if side in args else {} for side in sides)
    return [Change(_without(one.path, path), one.old, one.new) for one in diffs.of_args(before, after)]


def _without(path: str, field: str) -> str:
    """The field's own words in place of how a path would quote them."""
    start = canonical.join("", field)
    return (field + path[len(start) :]).lstrip(".") or "value"


def _sides(args: Json) -> tuple[str, str] | None:
    return next((pair for pair in _SIDES if any(side in args for side in pair)), None)
