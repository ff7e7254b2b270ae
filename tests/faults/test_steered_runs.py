"""Steps started by a command count like any other: their questions are items, and their breakpoints are asked about.

LangGraph keeps a command beside the checkpoint until its step has ended, and shows none of the tasks that it started.
The controls read states as LangGraph shows them, or run in `dev`, where the policy only advises.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.arena import Arena
from tests.faults.test_gated_breakpoints import _wakes
from tests.waiting import until

pytestmark = pytest.mark.promise("P1")

CALLING = ("built", "looked_up", "built_deep")


async def ended(arena: Arena, graph: str, node: str = "work") -> str:
    """A thread that has come to its end, and on which nobody was asked anything."""
    past = [{"updates": [{"values": {"log": str(arena.log), "tag": "asked"}, "as_node": node}]}]
    return await arena.thread(metadata={"graph_id": graph}, supersteps=past)


async def rejected(arena: Arena, graph: str) -> str:
    thread = await arena.stopped(graph)
    [item] = await arena.items(thread)
    assert (await arena.decide(item, "reject")).status_code == 200
    await arena.rests(thread)
    return thread


async def sent_again(arena: Arena, thread: str, graph: str) -> None:
    for _ in range(2):
        await arena.run(thread, graph, command={"goto": "work"})


async def sent_again_with_input(arena: Arena, thread: str, graph: str) -> None:
    await arena.run(thread, graph, command={"goto": {"node": "work", "input": None}})


async def gone_on(arena: Arena, thread: str, graph: str) -> None:
    await arena.run(thread, graph, input=None)


async def gone_on_later(arena: Arena, thread: str, graph: str) -> None:
    made = await arena.run(thread, graph, how="", input=None, after_seconds=0.01)
    run = made.json()["run_id"]

    async def awake() -> bool:
        return await arena.house.services.store.read("default", _wakes, run)

    await until(awake, "the delayed run does not wake")


async def gone_on_in_a_copy(arena: Arena, thread: str, graph: str) -> None:
    copy = (await arena.agent.post(f"/threads/{thread}/copy")).json()["thread_id"]
    await arena.run(copy, graph, input=None)
    await arena.rests(copy)


WAYS = (sent_again, sent_again_with_input, gone_on, gone_on_later, gone_on_in_a_copy)
PASSING = (sent_again, gone_on, gone_on_later, gone_on_in_a_copy)
"""A `goto` with input is another task, whose graph begins anew and stops by itself."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("graph", CALLING)
@pytest.mark.parametrize("before", [ended, rejected])
async def test_goto_does_not_pass_a_breakpoint_of_a_called_graph(
    arena: Arena, before: Any, graph: str, way: Any
) -> None:
    thread = await before(arena, graph)
    await arena.run(thread, graph, command={"goto": "work"})
    item = await arena.item(thread)
    assert (item["dialect"], item["gated"]) == ("breakpoint", True)
    await way(arena, thread, graph)
    await arena.rests(thread)
    assert arena.effects == []


@pytest.mark.parametrize("way", PASSING)
@pytest.mark.parametrize("graph", CALLING)
async def test_control_goto_passes_an_advisory_breakpoint(dev_arena: Arena, graph: str, way: Any) -> None:
    """The control."""
    thread = await ended(dev_arena, graph)
    await dev_arena.run(thread, graph, command={"goto": "work"})
    await way(dev_arena, thread, graph)
    await dev_arena.rests(thread)
    assert dev_arena.effects == ["asked"]


@pytest.mark.parametrize("way", PASSING)
async def test_control_goto_passes_when_states_are_read_without_commands(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, way: Any
) -> None:
    """The control."""
    monkeypatch.setattr("assent.runs.checkpoints.saver.applied", lambda graph, saver, saved: saved)
    thread = await ended(arena, "built")
    await arena.run(thread, "built", command={"goto": "work"})
    assert await arena.items(thread) == []
    await way(arena, thread, "built")
    await arena.rests(thread)
    assert arena.effects == ["asked"]


async def test_stop_after_a_goto_is_passed_by_one_decision(arena: Arena) -> None:
    thread = await ended(arena, "built")
    await arena.run(thread, "built", command={"goto": "work"})
    assert (await arena.agent.get(f"/threads/{thread}/state")).json()["next"] == ["work"]
    assert (await arena.run(thread, "built", command={"goto": "work"})).status_code == 409
    assert (await arena.decide(await arena.item(thread), "approve")).status_code == 200
    assert (await arena.rests(thread))["status"] == "idle"
    assert arena.effects == ["asked"]


async def test_stop_after_a_goto_ends_with_its_rejection(arena: Arena) -> None:
    thread = await ended(arena, "built")
    await arena.run(thread, "built", command={"goto": "work"})
    assert (await arena.decide(await arena.item(thread), "reject")).status_code == 200
    assert (await arena.rests(thread))["status"] == "idle"
    assert (await arena.agent.get(f"/threads/{thread}/state")).json()["next"] == []
    await arena.run(thread, "built", input=None)
    assert arena.effects == []


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("graph", ["approving", "wiring"])
async def test_question_of_a_step_that_a_goto_started_is_an_item(arena: Arena, graph: str, given: bool) -> None:
    thread = await ended(arena, graph, "pay")
    goto = {"node": "pay", "input": {"log": str(arena.log), "tag": "asked"}} if given else "pay"
    await arena.run(thread, graph, command={"goto": goto})
    assert (await arena.state(thread))["status"] == "interrupted"
    item = await arena.item(thread)
    assert item["gated"]
    assert (await arena.run(thread, graph, command={"goto": goto})).status_code == 409
    assert arena.effects == []
    assert (await arena.decide(item, "approve")).status_code == 200
    assert (await arena.rests(thread))["status"] == "idle"
    assert len(arena.effects) == 1


async def test_control_question_after_a_goto_is_lost_when_states_are_read_without_commands(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control."""
    monkeypatch.setattr("assent.runs.checkpoints.saver.applied", lambda graph, saver, saved: saved)
    thread = await ended(arena, "approving", "pay")
    await arena.run(thread, "approving", command={"goto": "pay"})
    assert (await arena.state(thread))["status"] == "idle"
    assert await arena.items(thread) == []


async def test_update_of_a_command_is_seen_once(arena: Arena) -> None:
    """Beside a question, and after it."""
    thread = await ended(arena, "approving", "pay")
    await arena.run(thread, "approving", command={"goto": "pay", "update": {"tag": "updated"}})
    assert (await arena.agent.get(f"/threads/{thread}/state")).json()["values"]["tag"] == "updated"
    assert (await arena.decide(await arena.item(thread), "approve")).status_code == 200
    await arena.rests(thread)
    assert arena.effects == ["updated to payroll"]
