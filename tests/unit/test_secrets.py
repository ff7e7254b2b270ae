"""Secrets in arguments: found by schema and by policy, masked wherever they stand, and nothing else is touched."""

from typing import Any

import pytest

from assent.domain.secrets import MASK, covered, masked, secret_paths

pytestmark = pytest.mark.promise("P10")


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("found", "paths"),
    [
        (None, []),
        ("odd", []),
        (schema(a={"type": "string"}), []),
        (schema(a={"writeOnly": True}, b={"format": "password"}, c={"writeOnly": "yes"}), [("a",), ("b",)]),
        (schema(card=schema(number={"format": "password"})), [("card", "number")]),
        (schema(card={"writeOnly": True, **schema(number={"writeOnly": True})}), [("card",)]),
        (schema(keys={"type": "array", "items": schema(secret={"writeOnly": True})}), [("keys", "secret")]),
        (schema(keys={"type": "array", "items": {"format": "password"}}), [("keys",)]),
        ({"properties": ["odd"]}, []),
        ({"writeOnly": True}, []),
    ],
)
def test_what_a_schema_calls_secret(found: Any, paths: list[Any]) -> None:
    assert secret_paths(found) == paths


def test_what_a_policy_calls_secret_comes_too() -> None:
    assert secret_paths(schema(a={"writeOnly": True}), ["b", "c.d"]) == [("b",), ("c", "d"), ("a",)]


@pytest.mark.parametrize(
    ("value", "path", "shown"),
    [
        ({"a": 1, "b": 2}, ("a",), {"a": MASK, "b": 2}),
        ({"a": {"b": [1, 2]}}, ("a", "b"), {"a": {"b": MASK}}),
        ({"a": [{"b": 1, "c": 2}, {"b": 3}, 4]}, ("a", "b"), {"a": [{"b": MASK, "c": 2}, {"b": MASK}, 4]}),
        ({"a": None}, ("a",), {"a": MASK}),
        ({"a": 1}, ("b",), {"a": 1}),
        ({"a": "text"}, ("a", "b"), {"a": "text"}),
        ("text", ("a",), "text"),
    ],
)
def test_the_mask_covers_the_secret_and_nothing_else(value: Any, path: tuple[str, ...], shown: Any) -> None:
    before = repr(value)
    assert masked(value, [path]) == shown
    assert repr(value) == before, "the original is untouched"


def test_a_reference_does_not_go_round_for_ever() -> None:
    loop: dict[str, Any] = {"type": "object", "properties": {}}
    loop["properties"]["again"] = loop
    assert secret_paths(loop) == []


def test_a_text_about_the_value_does_not_give_it_away() -> None:
    value = {"key": "abc", "keys": ["abcd", {"deep": 77}], "on": True, "empty": "", "none": None}
    text = "abc abcd 77 True None"
    assert covered(text, value, [("key",)]) == f"{MASK} {MASK}d 77 True None"
    assert (
        covered(text, value, [("keys",), ("key",), ("on",), ("empty",), ("none",)]) == f"{MASK} {MASK} {MASK} True None"
    )
    assert covered(text, value, [("elsewhere",), ("key", "deeper")]) == text
    assert covered(None, value, [("key",)]) is None
