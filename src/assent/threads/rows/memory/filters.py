"""Filters on the values of memories, as SQL: `{"status": "active", "score": {"$gt": 4.99}}`.

A plain value has to be equal, whole; an object without operators is compared key by key. A missing value counts as
null. Numbers are ordered among numbers and strings among strings, by code point; other values have no order and do not
match. 1 and 1.0 are one number, 1 and true are not.

Every path and value is a bound parameter; a key is one that a path can name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from sqlalchemy import Boolean, ColumnElement, Text, and_, cast, collate, func, literal, literal_column, not_, select
from sqlalchemy.dialects.postgresql import JSONB

from assent.errors import Invalid
from assent.kernel import canonical, jsontext
from assent.kernel.store.containment import bindable_number, check_filter, scalar_equals

Condition = ColumnElement[bool]

_ORDERS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_OPERATORS = {"$eq", "$ne", *_ORDERS}
_WHOLE: ColumnElement[Any] = literal_column("'{}'::text[]")  # the empty path


class _Place(Protocol):
    """A value in a JSON column."""

    def member(self, key: str) -> _Place: ...

    def is_object(self) -> Condition: ...

    def equals(self, wanted: Any) -> Condition: ...

    def compares(self, order: str, wanted: int | float | str) -> Condition: ...


def condition(column: ColumnElement[Any], wanted: Mapping[str, Any], dialect: str) -> list[Condition]:
    """The conditions on the object in `column`; refuses an invalid filter."""
    _check(wanted)
    place: _Place = _InPostgres(_without_nul(column)) if dialect == "postgresql" else _InSqlite(column, "$")
    return [_fits(place.member(key), value) for key, value in wanted.items()]


def _check(wanted: Mapping[str, Any]) -> None:
    try:
        text = canonical.text(dict(wanted))
    except canonical.JsonError as error:
        raise Invalid(f"the filter is not JSON: {error}") from None
    if r"\u0000" in text:
        raise Invalid("a filter cannot contain a NUL character")
    if any(key in _OPERATORS for key in wanted):
        raise Invalid("an operator belongs to a key", hint='{"score": {"$gt": 4}}')
    check_filter(_named(dict(wanted)))


def _named(wanted: Any) -> Any:
    """The same with operators by their names, which are keys like any other."""
    if isinstance(wanted, Mapping):
        return {key[1:] if key in _OPERATORS else key: _named(value) for key, value in wanted.items()}
    return [_named(value) for value in wanted] if isinstance(wanted, list | tuple) else wanted


def _fits(place: _Place, wanted: Any) -> Condition:
    if not isinstance(wanted, Mapping):
        return place.equals(wanted)
    if any(key.startswith("$") for key in wanted):
        return and_(*(_holds(place, name, operand) for name, operand in wanted.items()))
    return and_(place.is_object(), *(_fits(place.member(key), value) for key, value in wanted.items()))


def _holds(place: _Place, name: str, operand: Any) -> Condition:
    if name not in _OPERATORS:
        raise Invalid(f"Unsupported operator: {name[:80]}", hint=f"one of {', '.join(sorted(_OPERATORS))}")
    if name == "$eq":
        return place.equals(operand)
    if name == "$ne":
        return not_(place.equals(operand))
    if isinstance(operand, bool) or not isinstance(operand, int | float | str):
        raise Invalid(f"{name} compares numbers or strings, not {jsontext.dump(operand)[:80]}")
    return place.compares(_ORDERS[name], operand)


class _InPostgres:
    def __init__(self, value: ColumnElement[Any]) -> None:
        self._value = value

    def member(self, key: str) -> _InPostgres:
        return _InPostgres(self._value[key])

    def is_object(self) -> Condition:
        return func.jsonb_typeof(func.coalesce(self._value, _jsonb(None))) == "object"

    def equals(self, wanted: Any) -> Condition:
        return func.coalesce(self._value, _jsonb(None)) == _jsonb(wanted)

    def compares(self, order: str, wanted: int | float | str) -> Condition:
        kind = func.coalesce(func.jsonb_typeof(self._value), "null")
        if isinstance(wanted, str):
            text = collate(self._value.op("#>>", return_type=Text())(_WHOLE), "C")
            return and_(kind == "string", _ordered(text, order, wanted))
        return and_(kind == "number", _ordered(self._value, order, _jsonb(wanted)))


class _InSqlite:
    def __init__(self, document: ColumnElement[Any], path: str) -> None:
        self._document = document
        self._path = path
        self._kind = func.coalesce(func.json_type(document, path), "null")
        self._value = func.json_extract(document, path)

    def member(self, key: str) -> _InSqlite:
        return _InSqlite(self._document, f'{self._path}."{key}"')

    def is_object(self) -> Condition:
        return self._kind == "object"

    def equals(self, wanted: Any) -> Condition:
        if isinstance(wanted, Mapping):
            members = [self.member(key).equals(value) for key, value in wanted.items()]
            return and_(self.is_object(), self._size() == len(wanted), *members)
        if isinstance(wanted, list | tuple):
            elements = [self._element(index).equals(value) for index, value in enumerate(wanted)]
            return and_(self._kind == "array", self._size() == len(wanted), *elements)
        return scalar_equals(self._kind, self._value, wanted)

    def compares(self, order: str, wanted: int | float | str) -> Condition:
        if isinstance(wanted, str):
            return and_(self._kind == "text", _ordered(self._value, order, wanted))
        return and_(self._kind.in_(("integer", "real")), _ordered(self._value, order, bindable_number(wanted)))

    def _element(self, index: int) -> _InSqlite:
        return _InSqlite(self._document, f"{self._path}[{index}]")

    def _size(self) -> ColumnElement[Any]:
        inside = func.json_each(self._document, self._path).table_valued("key")
        return select(func.count()).select_from(inside).correlate_except(inside).scalar_subquery()


def _without_nul(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Replaces NUL, which `jsonb` refuses."""
    return cast(func.replace(cast(column, Text), r"\u0000", r"\ufffd"), JSONB)


def _ordered(left: ColumnElement[Any], order: str, right: Any) -> Condition:
    return left.op(order, return_type=Boolean())(right)


def _jsonb(value: Any) -> ColumnElement[Any]:
    return cast(literal(jsontext.dump(value)), JSONB)
