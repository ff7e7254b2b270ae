"""Every value has a JSON text: what an author's graph puts into its state must not keep its run from ending."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import MagicMock

import pytest
from langchain_core.messages import HumanMessage

from assent.kernel import jsonable, jsontext
from tests.graphs_malformed.hostile import VALUES


@pytest.mark.parametrize("kind", VALUES)
def test_a_value_of_any_kind_becomes_json(kind: str) -> None:
    shown = jsonable.plain({"value": VALUES[kind](), "beside": 1})
    assert shown["beside"] == 1
    assert json.loads(jsonable.dump(shown)) == shown


@pytest.mark.parametrize("kind", VALUES)
def test_texts_of_a_value_are_written_as_the_value_is(kind: str) -> None:
    value = {"value": VALUES[kind](), "beside": [HumanMessage("hi", id="a", more=1), 2**70, {"é": 0.1}]}
    texts, plain = jsonable.texts(value), jsonable.plain(value)
    assert jsonable.plain(texts) == plain
    assert json.loads(jsontext.dump(texts)) == plain
    assert json.loads(jsonable.dump(texts)) == plain


def test_texts_of_other_values_are_plain() -> None:
    assert jsonable.texts([HumanMessage("hi", id="a")])[0]["content"] == "hi"
    assert jsonable.texts({1: "one"}) == {"1": "one"}


def test_a_value_that_contains_itself_is_shown_once() -> None:
    assert jsonable.plain(VALUES["cycle"]()) == {"again": "<contains itself>", "and again": ["<contains itself>"]}


def test_an_integer_that_python_cannot_write_is_described() -> None:
    assert jsonable.plain([10**5000, 2**200]) == ["<an integer of 16610 bits>", 2**200]


def test_a_value_nested_too_deep_is_cut_off() -> None:
    shown: Any = jsonable.plain(VALUES["bottomless"]())
    levels = 0
    while isinstance(shown, list):
        [shown], levels = shown, levels + 1
    assert (shown, levels) == ("<nested too deep>", 200)


def test_a_value_that_fails_when_it_is_read_is_named_and_others_are_shown() -> None:
    shown = jsonable.plain([VALUES["secretive"](), "a\ud800b", MagicMock()])
    assert shown[:2] == ["<Secretive: RuntimeError when it was read>", "a?b"]
