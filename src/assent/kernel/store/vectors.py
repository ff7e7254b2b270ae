"""Vectors in columns, and their similarity as SQL.

Vectors have the length 1 (or 0), so their similarity is the sum of the products of their parts: the cosine. Every
search is exact. Postgres computes it with pgvector where the extension is installed, and otherwise in plain SQL, which
is slower; SQLite calls a function of this module for every row.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from functools import lru_cache
from operator import mul
from typing import Any, TypeAlias

from sqlalchemy import REAL, ColumnElement, Dialect, Float, LargeBinary, cast, func, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import TypeDecorator, TypeEngine, UserDefinedType

Vector: TypeAlias = tuple[float, ...]

FUNCTION = "assent_similarity"
"""The name of `product` in SQLite."""


class VectorType(TypeDecorator[Vector]):
    """`real[]` on Postgres; the same numbers as bytes on SQLite."""

    impl = LargeBinary
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        native: TypeEngine[Any] = ARRAY(REAL()) if dialect.name == "postgresql" else LargeBinary()
        return dialect.type_descriptor(native)

    def process_bind_param(self, value: Vector | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        return list(value) if dialect.name == "postgresql" else array("f", value).tobytes()

    def process_result_value(self, value: Any, dialect: Dialect) -> Vector | None:
        return None if value is None else tuple(value if isinstance(value, list) else _floats(value))


class _PgVector(UserDefinedType[Any]):
    cache_ok = True

    def get_col_spec(self, **kwargs: Any) -> str:
        return "vector"


def normalized(vector: Sequence[float]) -> Vector:
    length = math.sqrt(sum(part * part for part in vector))
    return tuple(part / length for part in vector) if length > 0 else tuple(map(float, vector))


def similarity(
    column: ColumnElement[Any], wanted: ColumnElement[Any], dialect: str, *, pgvector: bool
) -> ColumnElement[Any]:
    """From -1 to 1. Both must have the same number of parts."""
    if dialect != "postgresql":
        called: ColumnElement[Any] = getattr(func, FUNCTION)(column, wanted, type_=Float())
        return called
    if pgvector:
        negative = cast(column, _PgVector()).op("<#>", return_type=Float())(cast(wanted, _PgVector()))
        return -negative
    parts = func.unnest(column, wanted).table_valued("a", "b", name="parts").render_derived()
    total = func.sum(parts.c.a * parts.c.b, type_=Float())
    return select(func.coalesce(total, 0.0)).select_from(parts).correlate_except(parts).scalar_subquery()


def product(left: bytes, right: bytes) -> float:
    """Called by SQLite, with the wanted vector on the right in all rows."""
    return float(sum(map(mul, _floats(left), _wanted(right))))


def _floats(data: bytes) -> array[float]:
    numbers = array("f")
    numbers.frombytes(data)
    return numbers


@lru_cache(maxsize=8)
def _wanted(data: bytes) -> array[float]:
    return _floats(data)
