"""Nodes that a run names to stop at are added to the graph's own breakpoints, and to those of the run it goes on with.

The controls hand the caller's list to LangGraph as it is, which stops nowhere else then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from assent.runs import start as starting
from assent.runs.engine import breakpoints
from tests.faults.arena import Arena
from tests.graphs_gated.stopping import after, stopping

pytestmark = pytest.mark.promise("P1")

CLARIFIED = {"responses": [{"call_id": "1", "response": "this one"}]}
OTHER_STOPS: list[tuple[str, dict[str, Any]]] = [
    ("stopping", {"interrupt_before": ["nowhere"]}),
    ("stopping", {"interrupt_before": []}),
    ("stopping", {"interrupt_after": ["pay"]}),
    ("after", {"interrupt_after": ["pay"]}),
    ("after", {"interrupt_after": ["nowhere"]}),
    ("after", {"interrupt_before": ["nowhere"]}),
]


def _only_the_callers(graph: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: kwargs[name] for name in ("interrupt_before", "interrupt_after") if kwargs.get(name)}


@pytest.mark.parametrize(("graph", "stops"), OTHER_STOPS, ids=str)
async def test_run_with_other_breakpoints_stops_at_the_graphs_as_well(
    arena: Arena, graph: str, stops: dict[str, Any]
) -> None:
    thread = await arena.stopped_with(graph, **stops)
    item = await arena.item(thread)
    assert (item["dialect"], item["gated"], arena.effects) == ("breakpoint", True, [])
    assert (await arena.decide(item, "approve")).status_code == 200
    await arena.rests(thread)
    assert arena.effects == ["asked"]


@pytest.mark.parametrize(("graph", "stops"), [OTHER_STOPS[0], OTHER_STOPS[4]], ids=str)
async def test_control_run_with_other_breakpoints_passes_when_the_graphs_are_replaced(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, graph: str, stops: dict[str, Any]
) -> None:
    """The control."""
    monkeypatch.setattr(breakpoints, "stops", _only_the_callers)
    thread = await arena.thread()
    await arena.run(thread, graph, input={"log": str(arena.log), "tag": "asked"}, **stops)
    assert arena.effects == ["asked"]


async def test_run_that_names_all_nodes_stops_before_each(arena: Arena) -> None:
    thread = await arena.stopped_with("free", interrupt_before="*")
    for node in ("prepare", "pay"):
        assert (await arena.state(thread))["status"] == "interrupted"
        assert (await arena.agent.get(f"/threads/{thread}/state")).json()["next"] == [node]
        assert (await arena.decide(await arena.item(thread), "approve")).status_code == 200
        await arena.rests(thread)
    assert arena.effects == ["asked"]


async def answered(arena: Arena) -> None:
    """By another agent, who names other nodes."""
    thread = await arena.thread(visibility="shared")
    given = {"log": str(arena.log), "tag": "asked", "moves": 0}
    await arena.run(thread, "asking_and_paying", input=given, interrupt_before=["pay"])
    answer: dict[str, Any] = {"command": {"resume": CLARIFIED}, "interrupt_before": ["nowhere"]}
    done = await arena.run(thread, "asking_and_paying", arena.other, **answer)
    assert done.status_code == 200, done.text
    await arena.rests(thread)


async def continued(arena: Arena) -> None:
    """By a person, who approves only the stop that is there."""
    thread = await arena.stopped_with("free", interrupt_before=["prepare", "pay"])
    assert (await arena.run(thread, "free", arena.ana, input=None)).status_code == 200
    await arena.rests(thread)


@pytest.mark.parametrize("way", [answered, continued])
async def test_continued_run_keeps_the_breakpoints_of_the_run_before(arena: Arena, way: Any) -> None:
    await way(arena)
    assert arena.effects == []


@pytest.mark.parametrize("way", [answered, continued])
async def test_control_continued_run_without_them_passes_the_breakpoints(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, way: Any
) -> None:
    """The control."""
    monkeypatch.setattr(starting, "either", lambda before, asked: asked)
    await way(arena)
    assert arena.effects == ["asked"]


async def test_answer_that_names_other_stops_stops_inside_of_the_graph(arena: Arena) -> None:
    thread = await arena.thread(visibility="shared")
    await arena.run(thread, "asked_first", input={"log": str(arena.log), "tag": "asked"})
    answer: dict[str, Any] = {"command": {"resume": CLARIFIED}, "interrupt_before": ["nowhere"]}
    await arena.run(thread, "asked_first", arena.other, **answer)
    await arena.rests(thread)
    assert arena.effects == []


def test_all_nodes_of_one_list_do_not_hide_those_of_the_other() -> None:
    """LangGraph does not count hidden nodes among all."""
    assert breakpoints.stops(stopping, {"interrupt_before": "*"}) == {"interrupt_before": ["pay", "prepare"]}
    assert breakpoints.stops(stopping, {"interrupt_before": ["*", "__start__"]}) == {
        "interrupt_before": ["__start__", "pay", "prepare"]
    }
    assert breakpoints.stops(after, {"interrupt_after": ["pay"]}) == {"interrupt_after": ["pay", "prepare"]}
    assert breakpoints.stops(stopping, {"interrupt_before": None, "interrupt_after": []}) == {}
