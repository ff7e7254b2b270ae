"""A schema that is the only check there is must be one that can be kept, down to its last part."""

from __future__ import annotations

from time import process_time
from typing import Any

import pytest
from hypothesis import given

from assent.errors import Problem
from assent.review.model.schemas.flaws import flaw
from assent.review.model.schemas.parts import MOST_PARTS
from assent.review.model.schemas.validation import MAX_PATTERNS
from tests.unit.dialects.test_schemas import json


def deep(part: Any) -> Any:
    return {"type": "object", "properties": {"a": {"type": "array", "items": part}}}


@pytest.mark.parametrize(
    ("part", "path", "message"),
    [
        ({"$ref": "#/nowhere"}, "properties.a.items", "refers to '#/nowhere', which is not part of it"),
        ({"$ref": "https://x.org/y.json"}, "properties.a.items", "which is not part of it"),
        ({"$ref": "#/properties/a/type"}, "properties.a.items", "which is not part of it"),
        ({"$ref": "#/properties/a/items"}, "properties.a.items", "refers to itself without end"),
        ({"if": {"not": {"$ref": "#x"}}}, "properties.a.items", "refers to '#x'"),
        ({"additionalProperties": {"$ref": "#x"}}, "properties.a.items.additionalProperties", "refers to '#x'"),
        ({"$defs": {"unused": {"$ref": "#x"}}}, 'properties.a.items["$defs"].unused', "refers to '#x'"),
        ({"$id": "http://x.org/", "$ref": "#"}, "properties.a.items", "has an $id of its own"),
        ({"pattern": "(?=a)b"}, "properties.a.items.pattern", "cannot be checked in linear time"),
        ({"oneOf": [{}, {"pattern": "(?:a{999}){999}"}]}, "properties.a.items.oneOf[1].pattern", "linear time"),
        ({"pattern": "("}, "", "at properties.a.items.pattern"),
        ({"minimum": "x"}, "", "at properties.a.items.minimum"),
        ({"required": "x"}, "", "at properties.a.items.required"),
        ({"type": "nope"}, "", "at properties.a.items.type"),
        ({"patternProperties": {"(a+)+$": {}}}, "", "patternProperties"),
        ({"anyOf": [{}] * MOST_PARTS}, "", "parts"),
        ({"anyOf": [{"pattern": str(n)} for n in range(MAX_PATTERNS + 1)]}, "", "patterns"),
    ],
)
def test_flaw_at_any_depth_is_found(part: Any, path: str, message: str) -> None:
    flaw_text = flaw(deep(part))
    assert flaw_text is not None
    assert (flaw_text.path, message in flaw_text.message) == (path, True), flaw_text


@pytest.mark.parametrize(
    "part",
    [
        {"type": "string", "pattern": "^(a+)+$", "format": "email"},
        {"$ref": "#/properties/a"},
        {"properties": {"$ref": {"type": "string"}, "pattern": {"type": "string"}, "$id": {}}},
        {"enum": [{"$ref": "#/nowhere", "pattern": "("}], "default": {"$ref": "#/nowhere"}},
        {"items": False, "additionalProperties": True},
    ],
)
def test_enforceable_schema_has_no_flaw(part: Any) -> None:
    assert flaw(deep(part)) is None


def test_very_large_schema_is_refused_within_two_seconds() -> None:
    start = process_time()
    assert flaw(deep({"properties": {f"p{n}": {"type": "string"} for n in range(9000)}})) is not None
    assert process_time() - start < 2


@given(json)
def test_any_schema_is_checked_without_an_error(schema: Any) -> None:
    assert isinstance(flaw(deep(schema)), Problem | None)
