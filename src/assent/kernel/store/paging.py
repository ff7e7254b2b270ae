"""Keyset paging: a page begins after the last row of the previous one, at the same cost for every page.

A cursor is the sort key of that row, opaque to callers. All sort columns run in one direction and end in a unique one.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

import orjson
from sqlalchemy import ColumnElement, Row, Select, tuple_

from assent.errors import Invalid
from assent.kernel.store.tables import Instant
from assent.kernel.store.transaction import Tx

T = TypeVar("T")
LARGEST_PAGE = 1000
_INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    items: list[T]
    next: str | None


@dataclass(frozen=True, slots=True)
class Keyset:
    """The order of a list: its columns and their direction."""

    columns: tuple[ColumnElement[Any], ...]
    descending: bool = False

    def page(
        self, tx: Tx, statement: Select[Any], make: Callable[[Row[Any]], T], *, limit: int, cursor: str | None
    ) -> Page[T]:
        if not 1 <= limit <= LARGEST_PAGE:
            raise Invalid(f"limit must be between 1 and {LARGEST_PAGE}")
        rows = tx.all(self._after(statement, cursor).limit(limit + 1))
        shown = rows[:limit]
        more = self._cursor(shown[-1]) if len(rows) > limit else None
        return Page([make(row) for row in shown], more)

    def _after(self, statement: Select[Any], cursor: str | None) -> Select[Any]:
        ordered = statement.order_by(*(column.desc() if self.descending else column for column in self.columns))
        if cursor is None:
            return ordered
        here = tuple_(*self.columns)
        there = tuple_(*_decode(cursor, self.columns), types=[column.type for column in self.columns])
        return ordered.where(here < there if self.descending else here > there)

    def _cursor(self, row: Row[Any]) -> str:
        return self.cursor_at(*(row._mapping[column] for column in self.columns))

    def cursor_at(self, *values: Any) -> str:
        """The cursor of the page after these values, whether or not a row has them."""
        return base64.urlsafe_b64encode(orjson.dumps(values)).decode().rstrip("=")


def _decode(cursor: str, columns: Sequence[ColumnElement[Any]]) -> list[Any]:
    try:
        values = orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        pairs = list(zip(values, columns, strict=True))
        return [_typed(value, column) for value, column in pairs]
    except (binascii.Error, UnicodeError, ValueError, TypeError):
        raise Invalid("the cursor is not valid for this list", hint="start again without a cursor") from None


def _typed(value: Any, column: ColumnElement[Any]) -> Any:
    """The value in its column's type; a ValueError or TypeError where no row can hold it."""
    if isinstance(column.type, Instant):
        return _moment(value)
    if type(value) is not column.type.python_type:
        raise TypeError(value)
    if value in _INT64 if isinstance(value, int) else "\0" not in value:
        return value
    raise ValueError(value)


def _moment(value: Any) -> datetime:
    at = datetime.fromisoformat(value)
    if at.tzinfo is None:
        raise ValueError("a moment needs its time zone")
    return at
