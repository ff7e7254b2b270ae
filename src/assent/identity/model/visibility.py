"""Which rows a caller may see: a condition on a row's metadata, where the project's auth handlers limit that, and on
the owner of a thread.

The form is LangGraph's: `{"owner": "ada"}` or `{"owner": {"$eq": "ada"}}`, `{"members": {"$contains": "ada"}}` (or a
list, all of which have to be members), several keys together, `$or` and `$and` over lists of such. Any other form is
refused: a filter that is read too generously shows one person another's rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, TypeAlias

from assent.kernel import canonical
from assent.kernel.limits import FILTER_KEY

_DEEPEST = 3
_MOST = 50


class BadFilter(ValueError):
    """A filter that is not valid."""


@dataclass(frozen=True, slots=True)
class Has:
    """The key exists and has this value, not a list that holds it."""

    key: str
    value: Any


@dataclass(frozen=True, slots=True)
class Holds:
    """The key exists and has a list with all of these values."""

    key: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class OpenTo:
    """The thread belongs to this actor, or is shared."""

    actor: str


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple[Visible, ...]


@dataclass(frozen=True, slots=True)
class OneOf:
    parts: tuple[Visible, ...]


Visible: TypeAlias = Has | Holds | OpenTo | AllOf | OneOf


def both(left: Visible | None, right: Visible | None) -> Visible | None:
    """The condition that holds where each of the two holds."""
    return AllOf((left, right)) if left and right else left or right


def shows(
    visible: Visible | None, metadata: Mapping[str, Any], open_to: Callable[[str], bool] = lambda actor: False
) -> bool:
    """Whether a row meets the condition. `open_to` says whether a thread is open to an actor."""
    if visible is None:
        return True
    if isinstance(visible, AllOf):
        return all(shows(part, metadata, open_to) for part in visible.parts)
    if isinstance(visible, OneOf):
        return any(shows(part, metadata, open_to) for part in visible.parts)
    if isinstance(visible, OpenTo):
        return open_to(visible.actor)
    if visible.key not in metadata:
        return False
    stored = metadata[visible.key]
    if isinstance(visible, Has):
        return canonical.same(stored, visible.value)
    return isinstance(stored, list) and all(any(canonical.same(v, each) for each in stored) for v in visible.values)


def read(filter: Any, *, depth: int = 1) -> Visible:
    """A handler's filter as a condition."""
    if not isinstance(filter, Mapping):
        raise BadFilter(f"a filter is a dict, not a {type(filter).__name__}")
    if len(filter) > _MOST or depth > _DEEPEST:
        raise BadFilter(f"a filter has at most {_MOST} keys and {_DEEPEST} levels")
    return AllOf(tuple(part for key, value in filter.items() for part in _conditions(key, value, depth)))


def _conditions(key: Any, value: Any, depth: int) -> list[Visible]:
    if key in ("$or", "$and"):
        parts = tuple(read(part, depth=depth + 1) for part in _several(key, value))
        return [OneOf(parts) if key == "$or" else AllOf(parts)]
    if not isinstance(key, str) or not key or key.startswith("$") or not FILTER_KEY.fullmatch(key):
        raise BadFilter(f"{key!r} cannot be a filter's key")
    if not isinstance(value, Mapping):
        return [Has(key, _scalar(key, value))]
    if not value:
        raise BadFilter(f"{key}: an empty dict is not a condition")
    return [_condition(key, operator, operand) for operator, operand in value.items()]


def _condition(key: str, operator: Any, operand: Any) -> Visible:
    if operator == "$eq":
        return Has(key, _scalar(key, operand))
    if operator != "$contains":
        raise BadFilter(f"{key}: {operator!r} is neither $eq nor $contains")
    wanted = operand if isinstance(operand, list | tuple | set | frozenset) else [operand]
    if not 0 < len(wanted) <= _MOST:
        raise BadFilter(f"{key}: $contains takes 1 to {_MOST} values")
    return Holds(key, tuple(_scalar(key, element) for element in wanted))


def _several(key: str, value: Any) -> list[Any]:
    if not isinstance(value, list) or not 0 < len(value) <= _MOST:
        raise BadFilter(f"{key} takes a list of 1 to {_MOST} filters")
    return value


def _scalar(key: str, value: Any) -> Any:
    if isinstance(value, str) and "\x00" not in value and not canonical.has_surrogate(value):
        return str(value)
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and isfinite(value)):
        return value
    raise BadFilter(f"{key}: a {type(value).__name__} cannot be compared with metadata")
