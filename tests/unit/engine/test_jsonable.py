"""Every value has a JSON text: what an author's graph puts into its state must not keep its run from ending."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import MagicMock

import pytest

from assent.kernel import jsonable
from tests.graphs_malformed.hostile import VALUES


@pytest.mark.parametrize("kind", VALUES)
def test_a_value_of_any_kind_becomes_json(kind: str) -> None:
    shown = jsonable.plain({"value": VALUES[kind](), "beside": 1})
    assert shown["beside"] == 1
    assert json.loads(jsonable.dump(shown)) == shown


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
