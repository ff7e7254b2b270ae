"""Namespaces of graphs inside, and what a checkpoint tells without its graph."""

from __future__ import annotations

from typing import Any

import pytest

from assent.runs.engine.namespaces import has_ended, is_hidden, is_of
from tests.graphs_gated.stopping import asked_first, called_second


@pytest.mark.parametrize(
    ("ns", "belongs"),
    [
        ("work:1", True),
        ("work:1|2", True),
        ("work:1|pay:3", True),
        ("work", True),
        ("work|1", True),
        ("work:2", False),
        ("worker", False),
        ("pay:3|work:1", False),
        ("", False),
    ],
)
def test_namespace_belongs_to_the_task_that_its_first_part_names(ns: str, belongs: bool) -> None:
    assert is_of(ns, "work", "1") is belongs


@pytest.mark.parametrize(
    ("graph", "ns", "hidden"),
    [
        (asked_first, "work:1", False),
        (asked_first, "work", False),
        (asked_first, "work:1|1", True),
        (asked_first, "work:1|pay:2", True),
        (asked_first, "elsewhere:1", True),
        (called_second, "work:1", True),
        (called_second, "work:1|1", True),
    ],
)
def test_namespace_is_hidden_unless_its_node_is_a_graph(graph: Any, ns: str, hidden: bool) -> None:
    assert is_hidden(graph, ns) is hidden


@pytest.mark.parametrize(
    ("values", "ended"),
    [
        ({"text": "x"}, True),
        ({"join:a+b:c": set(), "__pregel_tasks": []}, True),
        ({"branch:to:pay": None}, False),
        ({"join:a+b:c": {"a"}}, False),
        ({"__pregel_tasks": ["sent"]}, False),
        ({"__start__": {}}, False),
    ],
)
def test_graph_has_ended_where_nothing_starts_a_node(values: dict[str, Any], ended: bool) -> None:
    assert has_ended({"channel_versions": {"branch:to:pay": 2}, "channel_values": values}) is ended


def test_graph_without_start_channels_has_not_ended() -> None:
    assert not has_ended({"channel_versions": {"text": 2}, "channel_values": {"text": "x"}})
