"""Commands as JSON carries them."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.types import Send

from assent.runs.checkpoints.commands import command_of


def test_an_update_by_pairs_keeps_every_pair() -> None:
    command = command_of({"update": [["log", "a"], ["log", "b"]]})
    assert command._update_as_tuples() == [("log", "a"), ("log", "b")]


@pytest.mark.parametrize("update", [{"log": "a"}, [{"role": "user"}], [["log"]], [[1, 2]], None])
def test_update_of_another_form_is_unchanged(update: Any) -> None:
    assert command_of({"update": update}).update == update


def test_nodes_are_named_alone_with_an_input_and_several_at_once() -> None:
    assert command_of({"goto": "a"}).goto == ["a"]
    assert command_of({"goto": {"node": "a", "input": 1}}).goto == [Send("a", 1)]
    assert command_of({"goto": ["a", {"node": "b"}]}).goto == ["a", Send("b", None)]
