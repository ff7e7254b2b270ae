"""JSON is read in one way only, and written in one way only."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from enum import IntEnum, StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assent.kernel import canonical
from assent.kernel.canonical import JsonTooLarge, MalformedJson, NotJson

numbers = st.integers(min_value=-(10**40), max_value=10**40) | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text("ab. é"), inner), max_leaves=20)


class Word(StrEnum):
    YES = "yes"


class Number(IntEnum):
    ONE = 1


@pytest.mark.parametrize(
    ("source", "path", "says"),
    [
        ('{"a": 1, "a": 2}', "a", "duplicate"),
        ('[{"b": {"x y": 1, "x y": 1}}]', '[0].b["x y"]', "duplicate"),
        ('{"a": [1, NaN]}', "a[1]", "nan"),
        ("[-Infinity]", "[0]", "inf"),
        ('{"big": 1e999}', "big", "inf"),
        (r'{"a": "\ud800"}', "a", "surrogate"),
        (r'{"\udfff": 1}', "", "surrogate"),
        ("[" * 65 + "]" * 65, "[0]" * 64, "deeper than 64"),
        ("[" * 100_000, "", "deep"),
        ('{"a": ', "", "line 1, column 7"),
        ("[1,]", "", "line 1"),
        ("", "", "line 1"),
        ("9" * 5000, "", "300 digits"),
        ("[1, -" + "9" * 1001 + "]", "", "300 digits"),
        (b'"\xff"', "", "UTF-8"),
        ('"\ud800"', "", "UTF-8"),
        ("\ufeff1", "", "BOM"),
    ],
)
def test_ambiguous_json_is_refused_with_its_position(source: str | bytes, path: str, says: str) -> None:
    with pytest.raises(MalformedJson, match=says) as refused:
        canonical.parse(source)
    assert refused.value.path == path


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("[" * 64 + "]" * 64, None),
        (b'{"n": 123456789012345678901234567890}', {"n": 123456789012345678901234567890}),
        ("9007199254740993", 9007199254740993),
        (r'"\ud83d\ude00"', "😀"),
        (' { "b" : [ true , null ] } ', {"b": [True, None]}),
        ("-0.0", -0.0),
    ],
)
def test_unambiguous_json_is_read_exactly(source: str | bytes, value: Any) -> None:
    parsed = canonical.parse(source)
    assert value is None or (parsed == value and repr(parsed) == repr(value))


def test_the_size_is_counted_in_bytes_and_can_be_set() -> None:
    assert canonical.parse('"éé"', max_bytes=6) == "éé"
    with pytest.raises(JsonTooLarge, match="6 bytes; the limit is 5"):
        canonical.parse('"éé"', max_bytes=5)


def test_the_depth_can_be_set() -> None:
    assert canonical.parse("[[1]]", max_depth=2) == [[1]]
    with pytest.raises(MalformedJson, match="deeper than 1"):
        canonical.parse("[[1]]", max_depth=1)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [1.0, "é", None]}, '{"a":[1.0,"é",null],"b":1}'),
        (598, "598"),
        (598.0, "598.0"),
        (1e16, "1e+16"),
        (2**70, "1180591620717411303424"),
        ((1, (2,)), "[1,[2]]"),
        ([Word.YES, Number.ONE, True], '["yes",1,true]'),
        ('"\n\u2028', '"\\"\\n\u2028"'),
        ({"": {}}, '{"":{}}'),
    ],
)
def test_equal_values_have_the_same_canonical_text(value: Any, text: str) -> None:
    assert canonical.text(value) == text
    assert canonical.digest(value) == canonical.digest_text(text) == hashlib.sha256(text.encode()).hexdigest()


def endless() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": [float("nan")]}, "a[0]"),
        (float("inf"), ""),
        ({1: "x"}, ""),
        ({"a": {None: 1}}, "a"),
        ({"a": {1, 2}}, "a"),
        (b"x", ""),
        ({"a": "\ud800"}, "a"),
        ([10**4300], "[0]"),
        ([object()], "[0]"),
        (endless(), "[0]" * 128),
    ],
)
def test_value_outside_json_has_no_canonical_text(value: Any, path: str) -> None:
    with pytest.raises(NotJson) as refused:
        canonical.text(value)
    assert refused.value.path == path


@given(values)
def test_text_and_parse_undo_each_other(value: Any) -> None:
    text = canonical.text(value)
    assert canonical.text(canonical.parse(text)) == text
    assert json.loads(text) == value
    assert canonical.same(canonical.parse(text.encode()), value)


@given(st.dictionaries(st.text(max_size=3), st.integers(), min_size=2))
def test_the_order_of_keys_does_not_matter(value: dict[str, int]) -> None:
    assert canonical.digest(dict(reversed(value.items()))) == canonical.digest(value)


@given(st.text() | st.binary())
def test_any_text_is_either_read_or_refused(source: str | bytes) -> None:
    with suppress(MalformedJson):
        canonical.text(canonical.parse(source))


def test_parsed_value_can_be_nested_and_written() -> None:
    deepest = canonical.parse("[" * 64 + "]" * 64)
    assert canonical.text({"tenant": {"item": {"args": deepest}}}).startswith('{"tenant":{"item":{"args":[[')


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({"a": [598, "x"]}, {"a": [598.0, "x"]}, True),
        ([1], [True], False),
        (0, False, False),
        ({"a": 1}, {"a": 1, "b": None}, False),
        ([1, 2], [1], False),
        ("1", 1, False),
        (None, None, True),
        (2**53, 2**53 + 1, False),
    ],
)
def test_same_distinguishes_values_that_clients_distinguish(one: Any, other: Any, expected: bool) -> None:
    assert canonical.same(one, other) is expected


def test_paths_are_written_in_dot_and_bracket_notation() -> None:
    assert canonical.where(["actions", 0, "args", "to-do", "odd key", "0"]) == 'actions[0].args.to-do["odd key"]["0"]'
    assert canonical.below("id", "[0].args") == "id[0].args"
    assert canonical.below("id", "args") == "id.args"
    assert canonical.below("", "args") == "args"
    assert canonical.below("id", "") == "id"


def _count(value: Any) -> int:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_count, children))


@given(values)
def test_commas_and_braces_in_strings_are_not_counted_as_values(value: Any) -> None:
    text = json.dumps([value, ',[{"\\'])
    count = _count(value) + 2
    assert canonical.has_more_values(text, count - 1)
    assert not canonical.has_more_values(text, 2 * count)


@pytest.mark.parametrize("text", ["[" + "[]," * 1000 + "[]]", "[" + '"",' * 1000 + '""]', "[" + "1," * 1000 + "1]"])
def test_too_many_values_are_refused_before_parsing(text: str) -> None:
    with pytest.raises(JsonTooLarge, match="more than 500 values"):
        canonical.parse(text, max_values=500)
    assert canonical.parse(text, max_values=5000)
