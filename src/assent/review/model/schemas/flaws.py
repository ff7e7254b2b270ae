"""Finds the parts of a JSON Schema that cannot be enforced.

A schema in an agent's interrupt is used as far as possible, because the agent validates again. A schema in a request is
the only check: if any part of it cannot be enforced, the request is refused, with the path of that part. Each part is
checked separately, so that a broken reference deep inside is found without a value that reaches it.
"""

from __future__ import annotations

from functools import lru_cache

from assent.errors import Problem
from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.review.model.schemas import parts as schema_parts
from assent.review.model.schemas import validation as schemas

Part = tuple[str, dict[str, Json]]


def flaw(schema: Json) -> Problem | None:
    """The first part that cannot be enforced, or None."""
    try:
        return _flaw(canonical.text(schema))
    except RecursionError:
        return Problem("", "is nested too deep")


@lru_cache(maxsize=256)
def _flaw(schema_text: str) -> Problem | None:
    if len(schema_text) > schemas.MAX_SCHEMA_TEXT:
        return Problem("", f"is longer than {schemas.MAX_SCHEMA_TEXT} characters")
    schema = canonical.parse(schema_text, max_depth=2 * canonical.MAX_DEPTH)
    if canonical.has_more_values(schema_text, schemas.MAX_SCHEMA_VALUES):
        return Problem("", f"has more than {schemas.MAX_SCHEMA_VALUES} values")
    reason = schemas.defect(schema)
    if reason is not None:
        return Problem("", reason)
    parts = [(path, part) for path, part in schema_parts.walk(schema) if isinstance(part, dict)]
    return _bad_name(parts) or _bad_pattern(parts) or _bad_reference(schema_text, parts)


def _bad_name(parts: list[Part]) -> Problem | None:
    """A part with its own `$id` would change the meaning of its references."""
    named = (path for path, schema in parts if path and isinstance(schema.get("$id"), str))
    path = next(named, None)
    return None if path is None else Problem(path, "has an $id of its own, which only the whole schema can have")


def _bad_pattern(parts: list[Part]) -> Problem | None:
    """Only linear-time patterns are ever run."""
    patterns = [(canonical.join(path, "pattern"), schema["pattern"]) for path, schema in parts if "pattern" in schema]
    path = next((path for path, pattern in patterns if not schemas.can_match(pattern)), None)
    return None if path is None else Problem(path, "is too large, or cannot be checked in linear time")


def _bad_reference(schema_text: str, parts: list[Part]) -> Problem | None:
    check = schemas.part_check(schema_text)
    for path, schema in parts:
        reason = check(schema)
        if reason is not None:
            return Problem(path, reason)
    return None
