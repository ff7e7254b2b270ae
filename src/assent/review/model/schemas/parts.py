"""The subschemas of a JSON Schema. Their number bounds the time to process it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from assent.kernel import canonical
from assent.kernel.canonical import Json

MOST_PARTS = 1_000

_ONE = frozenset(
    {
        *("additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not"),
        *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
    }
)
_LISTED = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_NAMED = frozenset({"$defs", "definitions", "dependencies", "dependentSchemas", "properties"})


def are_too_many(schema: Json) -> bool:
    return next(islice(walk(schema), MOST_PARTS, None), None) is not None


def walk(schema: Json) -> Iterator[tuple[str, Json]]:
    """The path of every subschema, the root first. Values that only look like schemas, such as defaults, are
    skipped."""
    waiting = [("", schema)]
    while waiting:
        path, part = waiting.pop()
        if isinstance(part, dict | bool):
            yield path, part
        if isinstance(part, dict):
            waiting += _children(path, part)


def _children(path: str, schema: dict[str, Json]) -> Iterator[tuple[str, Json]]:
    for keyword, value in schema.items():
        below = canonical.join(path, keyword)
        if keyword in _ONE and isinstance(value, dict | bool):
            yield below, value
        elif keyword in _LISTED and isinstance(value, list):
            yield from ((canonical.join(below, index), child) for index, child in enumerate(value))
        elif keyword in _NAMED and isinstance(value, dict):
            yield from ((canonical.join(below, name), child) for name, child in value.items())
