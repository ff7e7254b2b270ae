"""The benchmark per node, with one round: every node is measured, within its threshold, and one that is not is told."""

from __future__ import annotations

import pytest

from assent import LocalInbox
from assent.assistant.graph import assemble
from bench import bench_assistant
from tests.assistant.desk import Aviary, nodes_of
from tests.docs.documents import read


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ASSISTANT_MODEL", "ASSISTANT_ROUTER_MODEL", "ASSISTANT_EXECUTOR_MODEL", "ASSISTANT_MCP_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.promise("ASST-37")
def test_every_node_is_measured_and_quick_enough() -> None:
    rows = {row.name: row for row in bench_assistant.nodes(rounds=1)}
    assert rows.keys() == {f"assistant: {name}, p95" for name in bench_assistant.SECONDS}
    assert [name for name, row in rows.items() if not row.ok] == []
    assert all(row.value > 0 for row in rows.values())


@pytest.mark.promise("ASST-37")
def test_thresholds_match_the_promises_and_the_docs(aviary: Aviary, inbox: LocalInbox) -> None:
    assert (bench_assistant.SECONDS["policy_router"], bench_assistant.SECONDS["task_executor"]) == (5, 16)
    graph = assemble(nodes_of(aviary.server, inbox))
    assert graph.nodes.keys() == bench_assistant.SECONDS.keys()
    page = read("docs/benchmarks.md")
    for name, seconds in bench_assistant.SECONDS.items():
        assert f"| `{name}` | ≤ {seconds:g} s |" in page


def test_control_a_slow_node_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_assistant, "SECONDS", dict.fromkeys(bench_assistant.SECONDS, 0.0))
    assert not any(row.ok for row in bench_assistant.nodes(rounds=1))
