"""What keeps a JSON Schema from being enforced, wherever in it that stands.

A schema that comes with an agent's interrupt is used as far as it goes, because the agent's own check follows. One that
comes with a request is the only check there is: if any part of it could not be kept, the request is refused, with the
path of that part. Each part is tried by itself, so that a reference deep inside does not hide behind a value that never
gets there.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from assent.domain import canonical, schemas
from assent.domain.canonical import Json
from assent.domain.questions import Problem

MOST_PARTS = 1_000
MOST_PATTERNS = 50

_ONE = frozenset(
    {
        *("additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not"),
        *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
    }
)
_LISTED = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_NAMED = frozenset({"$defs", "definitions", "dependencies", "dependentSchemas", "properties"})


_Part = tuple[str, dict[str, Json]]
"""A schema inside a schema, and where it stands."""


def flaw(schema: Json) -> Problem | None:
    """The first part that could not be enforced, or None."""
    try:
        return _flaw(canonical.text(schema))
    except RecursionError:
        return Problem("", "is nested too deep")


@lru_cache(maxsize=256)
def _flaw(schema_text: str) -> Problem | None:
    if len(schema_text) > schemas.MAX_SCHEMA_TEXT:
        return Problem("", f"is longer than {schemas.MAX_SCHEMA_TEXT} characters")
    schema = canonical.parse(schema_text, max_depth=2 * canonical.MAX_DEPTH)
    parts = list(islice(_parts(schema), MOST_PARTS + 1))
    if len(parts) > MOST_PARTS:
        return Problem("", f"has more than {MOST_PARTS} parts")
    reason = schemas.defect(schema)
    if reason is not None:
        return Problem("", reason)
    return _bad_name(parts) or _bad_pattern(parts) or _bad_reference(schema_text, parts)


def _parts(schema: Json) -> Iterator[_Part]:
    """Every schema in it, itself first. What only looks like one, such as a default, is none."""
    waiting = [("", schema)]
    while waiting:
        path, found = waiting.pop()
        if isinstance(found, dict):
            yield path, found
            waiting += _children(path, found)


def _children(path: str, schema: dict[str, Json]) -> Iterator[tuple[str, Json]]:
    for keyword, value in schema.items():
        below = canonical.join(path, keyword)
        if keyword in _ONE and isinstance(value, dict):
            yield below, value
        elif keyword in _LISTED and isinstance(value, list):
            yield from ((canonical.join(below, index), child) for index, child in enumerate(value))
        elif keyword in _NAMED and isinstance(value, dict):
            yield from ((canonical.join(below, name), child) for name, child in value.items())


def _bad_name(parts: list[_Part]) -> Problem | None:
    """What has an address of its own would mean something else by its references."""
    named = (path for path, schema in parts if path and isinstance(schema.get("$id"), str))
    path = next(named, None)
    return None if path is None else Problem(path, "has an $id of its own, which only the whole schema can have")


def _bad_pattern(parts: list[_Part]) -> Problem | None:
    """Only what runs in linear time is ever run."""
    patterns = [(canonical.join(path, "pattern"), schema["pattern"]) for path, schema in parts if "pattern" in schema]
    if len(patterns) > MOST_PATTERNS:
        return Problem("", f"has more than {MOST_PATTERNS} patterns")
    path = next((path for path, pattern in patterns if not schemas.can_match(pattern)), None)
    return None if path is None else Problem(path, "is an expression that cannot be checked in linear time")


def _bad_reference(schema_text: str, parts: list[_Part]) -> Problem | None:
    check = schemas.part_check(schema_text)
    for path, schema in parts:
        reason = check(schema)
        if reason is not None:
            return Problem(path, reason)
    return None
