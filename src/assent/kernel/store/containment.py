"""Rows whose JSON contains a given object: Postgres' `@>`, and its equivalent with JSON functions on SQLite.

An object contains another if it has all of its keys and each value contains the other's; an array contains another if
each of the other's elements is contained in one of its own; any other value contains only its equals, where 1 and 1.0
are one number and 1 and true are not. SQLite compares integers beyond 64 bits as floating point numbers.

Keys come from callers, so those that would end a quoted part of a path are refused. The size of a filter is limited:
each of its parts becomes a condition of the statement, each array a subquery in it. Every path and value is a bound
parameter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Text, and_, case, cast, exists, false, func, literal, select
from sqlalchemy.dialects.postgresql import JSONB

from assent.errors import Invalid
from assent.kernel.limits import FILTER_KEY

MOST_PARTS = 100
MOST_ELEMENTS = 10
"""Of all arrays of a filter: each element is compared with all elements of a stored array."""

_DEEPEST = 12
_KEYS = "at most 1,000 characters, without quotation marks, backslashes and control characters"
_INT64 = range(-(2**63), 2**63)


def contains(column: ColumnElement[Any], wanted: Mapping[str, Any], dialect: str) -> ColumnElement[bool]:
    """The condition that the JSON in `column` contains `wanted`; refuses an invalid filter."""
    check_filter(wanted)
    if dialect == "postgresql":
        without_nul = func.replace(cast(column, Text), r"\u0000", r"\ufffd")  # jsonb refuses it, in any row
        return cast(without_nul, JSONB).contains(dict(wanted))
    return _matches(_Place(column, "$"), wanted)


def check_filter(wanted: Mapping[str, Any]) -> None:
    for number, (part, depth) in enumerate(_parts(wanted, 0), 1):
        if number > MOST_PARTS or depth > _DEEPEST:
            raise Invalid(
                f"a filter has at most {MOST_PARTS} parts and {_DEEPEST} levels; an array counts as two levels"
            )
        if isinstance(part, Mapping):
            for key in part:
                if not FILTER_KEY.fullmatch(key):
                    raise Invalid(f"{key[:80]!r} cannot be a filter's key", hint=_KEYS)

    if sum(len(part) for part, _ in _parts(wanted, 0) if isinstance(part, list)) > MOST_ELEMENTS:
        raise Invalid(f"the arrays of a filter have at most {MOST_ELEMENTS} elements together")


def _parts(value: Any, depth: int) -> Iterator[tuple[Any, int]]:
    """The value itself and all values in it, outermost first, with the depth of each."""
    yield value, depth
    if isinstance(value, Mapping):
        for part in value.values():
            yield from _parts(part, depth + 1)
    elif isinstance(value, list):
        for part in value:
            yield from _parts(part, depth + 2)


class _Place:
    """A value inside a JSON column: its kind and value, as SQL."""

    def __init__(self, document: ColumnElement[Any], path: str) -> None:
        self._document = document
        self._path = path

    @property
    def kind(self) -> ColumnElement[Any]:
        return func.json_type(self._document, self._path)

    @property
    def value(self) -> ColumnElement[Any]:
        return func.json_extract(self._document, self._path)

    def member(self, key: str) -> _Place:
        return _Place(self._document, f'{self._path}."{key}"')

    def any_element(self, wanted: Any) -> ColumnElement[bool]:
        element = func.json_each(self._document, self._path).table_valued("value", "type")
        fits = _element_matches(element.c.value, element.c.type, wanted)
        return exists(select(literal(1)).select_from(element).where(fits).correlate_except(element))


def _matches(place: _Place, wanted: Any) -> ColumnElement[bool]:
    if isinstance(wanted, Mapping):
        members = [_matches(place.member(key), value) for key, value in wanted.items()]
        return and_(place.kind == "object", *members)
    if isinstance(wanted, list):
        return and_(place.kind == "array", *map(place.any_element, wanted))
    return scalar_equals(place.kind, place.value, wanted)


def _element_matches(value: ColumnElement[Any], kind: ColumnElement[Any], wanted: Any) -> ColumnElement[bool]:
    """An element of an array is a document of its own if it is an object or an array."""
    if isinstance(wanted, Mapping | list):
        inside = _matches(_Place(value, "$"), wanted)
        return case((kind.in_(("object", "array")), inside), else_=false())
    return scalar_equals(kind, value, wanted)


def scalar_equals(kind: ColumnElement[Any], value: ColumnElement[Any], wanted: Any) -> ColumnElement[bool]:
    """Compares the kind as well: SQLite reads true as 1, and an array as its text."""
    if wanted is None:
        return kind == "null"
    if isinstance(wanted, bool):
        return kind == ("true" if wanted else "false")
    if isinstance(wanted, str):
        return and_(kind == "text", value == wanted)
    return and_(kind.in_(("integer", "real")), value == bindable_number(wanted))


def bindable_number(wanted: Any) -> Any:
    """A number that SQLite can bind."""
    if isinstance(wanted, float) or wanted in _INT64:
        return wanted
    try:
        return float(wanted)
    except OverflowError:
        return math.inf if wanted > 0 else -math.inf
