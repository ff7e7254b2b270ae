"""Schemas come from agents and servers: they are checked with, never trusted."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema.exceptions import SchemaError

from assent.errors import Problem
from assent.review.model.schemas import validation as schemas


@pytest.mark.parametrize(
    ("schema", "value", "path", "message"),
    [
        ({"type": "integer"}, "x", "args", "must be integer"),
        ({"type": ["integer", "null"]}, "x", "args", "must be integer or null"),
        ({"required": ["a b"]}, {}, 'args["a b"]', "is required"),
        ({"properties": {"a": {"items": {"minimum": 3}}}}, {"a": [4, 1]}, "args.a[1]", "must be at least 3"),
        ({"enum": ["x", 1]}, "y", "args", 'must be one of ["x",1]'),
        ({"const": {"b": 1, "a": 2}}, 1, "args", 'must be {"a":2,"b":1}'),
        ({"additionalProperties": False}, {"a": 1}, "args", "has fields that the schema does not allow"),
        ({"pattern": "^a+$"}, "b", "args", "does not match ^a+$"),
        ({"format": "date"}, "tomorrow", "args", "is not a valid date"),
        ({"format": "uuid"}, "1", "args", "is not a valid uuid"),
        ({"format": "uri"}, "no spaces: here", "args", "is not a valid uri"),
        (False, 1, "args", "is not allowed"),
        ({"not": {}}, 1, "args", "does not satisfy not"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1, "args", "fits none of the allowed forms"),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "null"}]},
            [1],
            "args[0]",
            "must be null",
        ),
    ],
)
def test_problems_name_the_field_and_what_it_should_be(schema: Any, value: Any, path: str, message: str) -> None:
    assert schemas.problems(schema, value, "args") == (Problem(path, message),)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"format": "date-time"}, "2026-11-15T10:00:00Z"),
        ({"format": "date"}, "2026-11-15"),
        ({"format": "email"}, "a@b.c"),
        ({"format": "uri"}, "https://x.org/y"),
        ({"format": "unheard-of"}, "x"),
        ({"format": "date"}, 5),
        ({"type": "number"}, 2**70),
        ({"pattern": "b"}, "abc"),
        ({"pattern": "(?=look)ahead"}, "left to the agent"),
        ({}, None),
    ],
)
def test_fitting_value_has_no_problems(schema: Any, value: Any) -> None:
    assert schemas.problems(schema, value) == ()
    assert schemas.defect(schema) is None


def test_at_most_twenty_problems_are_reported() -> None:
    assert len(schemas.problems({"items": {"type": "null"}}, list(range(1000)))) == schemas.MAX_PROBLEMS


def doubling(levels: int) -> Any:
    definitions: dict[str, Any] = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(levels)}
    return {"$defs": {**definitions, f"d{levels}": {}}, "$ref": "#/$defs/d0"}


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"type": 5}, "not valid JSON Schema at type"),
        ({"properties": []}, "not valid JSON Schema at properties"),
        ("text", "not valid JSON Schema at its root"),
        ({"$ref": "#"}, "without end"),
        ({"$ref": "#/nowhere"}, "not part of it"),
        (doubling(40), "without end"),
        ({"patternProperties": {"(a+)+$": {}}}, "patternProperties"),
        ({"description": "x" * 300_000}, "longer"),
    ],
)
def test_a_schema_that_cannot_be_enforced_says_why_and_checks_nothing(schema: Any, says: str) -> None:
    start = process_time()
    assert says in (schemas.defect(schema) or "")
    assert schemas.problems(schema, {"a": "x"}) == ()
    assert process_time() - start < 5


_SEVEN = "http://json-schema.org/draft-07/schema#"


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "^(a+)+$"},
        {"pattern": "^(a|a)*(b|b)*$"},
        {"$schema": _SEVEN, "pattern": "^(a+)+$"},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "pattern": "^(a+)+$"},
        {"allOf": [{"$schema": _SEVEN, "pattern": "^(a+)+$"}]},
        {"$ref": "#/x", "x": {"$schema": _SEVEN, "pattern": "^(a+)+$"}},
    ],
    ids=str,
)
def test_expression_with_exponential_backtracking_ends_quickly(schema: Any) -> None:
    """In any dialect that the schema, or a part of it, declares."""
    start = process_time()
    assert schemas.problems(schema, "a" * 50 + "!")
    assert process_time() - start < 1


@pytest.mark.parametrize("target", [3, [1], "x", {"type": "nope"}, {"pattern": 3}, None], ids=str)
def test_reference_to_something_else_than_a_schema_checks_nothing(target: Any) -> None:
    whole = {"$ref": "#/x", "x": target}
    assert "not part of it" in (schemas.defect(whole) or "")
    assert schemas.problems({"properties": {"a": {"$ref": "#/x"}}, "x": target}, {"a": "b"}) == ()


def test_nothing_is_fetched_for_a_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    schema = {"$ref": "http://127.0.0.1:9/schema.json"}
    assert "not part of it" in (schemas.defect(schema) or "")
    assert schemas.problems(schema, 1) == ()


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
keywords = st.sampled_from(
    [
        *("type", "properties", "required", "items", "enum", "const", "anyOf", "oneOf", "allOf", "not", "if", "then"),
        *("$ref", "$defs", "$schema", "$id", "pattern", "format", "minimum", "maxLength", "additionalProperties"),
        *("prefixItems", "contains", "dependentRequired", "unevaluatedProperties", "propertyNames"),
    ]
)


@given(st.recursive(json, lambda inner: st.dictionaries(keywords, inner, max_size=4), max_leaves=12), json)
def test_any_schema_and_value_are_checked_without_an_error(schema: Any, value: Any) -> None:
    schemas.defect(schema)
    for problem in schemas.problems(schema, value):
        assert problem.message


@pytest.mark.parametrize("part", [{"not": {}}, True])
def test_schema_with_too_many_parts_is_not_read(part: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    monkeypatch.setattr(schemas, "_check_schema", lambda draft, schema: read.append(schema))
    schemas._validator_class.cache_clear()
    assert schemas.defect({"title": repr(part), "anyOf": [part] * 2_000}) == "has more than 1000 parts"
    assert not read
    assert schemas.defect({"title": repr(part), "anyOf": [part] * 10}) is None
    assert read, "the control: one of few parts is"
    schemas._validator_class.cache_clear()


@pytest.mark.parametrize(("draft", "keyword"), [("draft-04", "enum"), ("draft-04", "type"), ("2020-12", "type")])
def test_lists_in_a_schema_are_not_compared_pair_by_pair(draft: str, keyword: str) -> None:
    """The control is the library, which compares every two entries where they have no order."""
    listed = [entry for number in range(600) for entry in (number, str(number), [number])]
    schema = {"$schema": f"http://json-schema.org/{draft}/schema#", keyword: listed}

    def seconds(check: Callable[[Any], None]) -> float:
        started = process_time()
        with suppress(SchemaError):
            check(schema)
        return process_time() - started

    library = schemas._draft(schema)
    assert seconds(library.check_schema) > 4 * seconds(schemas._validator_class(library).check_schema)


def test_nested_reference_targets_are_read_once() -> None:
    inner: Any = {"anyOf": [{"title": "x"}] * 400}
    for _ in range(20):
        inner = {"not": inner}
    to = [{"$ref": "#/x" + "/not" * depth} for depth in range(20, -1, -1)]
    assert schemas.defect({"x": inner, "allOf": to}) == "takes too long to be checked"
