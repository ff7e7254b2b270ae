"""One decision lets a run enter the node behind a gated breakpoint once, with what was seen: no replay, no other graph
and no other config enters it again.

The control runs the same attempts in `dev`, where the policy only advises: there the payment is made.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.faults.arena import Arena

pytestmark = pytest.mark.promise("P1")

CLARIFIED = {"responses": [{"call_id": "1", "response": "this one"}]}
EVIL: dict[str, Any] = {"config": {"configurable": {"account": "EVIL"}}}
RETURNING = ("charging", "charging_after", "charging_inside", "asked_charging")


async def approved(arena: Arena, graph: str, **given: Any) -> tuple[str, str]:
    """A thread behind its breakpoint, and the checkpoint before that."""
    thread = await arena.stopped(graph, **given)
    before = await head(arena, thread)
    assert (await arena.decide(await arena.item(thread), "approve")).status_code == 200
    await arena.rests(thread)
    return thread, before


async def head(arena: Arena, thread: str) -> str:
    return str((await arena.agent.get(f"/threads/{thread}/state")).json()["checkpoint"]["checkpoint_id"])


async def replayed(arena: Arena, graph: str) -> None:
    thread, before = await approved(arena, graph)
    if graph == "asked_charging":
        assert (await arena.run(thread, graph, command={"resume": CLARIFIED})).status_code == 200
    assert arena.effects == ["asked"]
    for _ in range(2):
        await arena.run(thread, graph, checkpoint={"checkpoint_id": before})
        if (await arena.rests(thread))["status"] == "interrupted":
            await arena.run(thread, graph, command={"resume": CLARIFIED})


@pytest.mark.promise("P2")
@pytest.mark.parametrize("graph", RETURNING)
async def test_replay_does_not_enter_the_node_again(arena: Arena, graph: str) -> None:
    await replayed(arena, graph)
    assert arena.effects == ["asked"]


@pytest.mark.parametrize("graph", [one for one in RETURNING if one != "charging_inside"])
async def test_control_replay_passes_an_advisory_breakpoint(dev_arena: Arena, graph: str) -> None:
    """The control. A graph inside stops there again by itself."""
    await replayed(dev_arena, graph)
    assert len(dev_arena.effects) > 1


async def by_going_on(arena: Arena, thread: str) -> None:
    await arena.run(thread, "charging", multitask_strategy="interrupt")


async def by_answering(arena: Arena, thread: str) -> None:
    await arena.run(thread, "charging", command={"resume": CLARIFIED})


async def by_replaying(arena: Arena, thread: str) -> None:
    before = await head(arena, thread)
    assert (await arena.run(thread, "inquiring", command={"resume": CLARIFIED})).status_code == 200
    await arena.run(thread, "charging", checkpoint={"checkpoint_id": before})


async def by_asking_again(arena: Arena, thread: str) -> None:
    """The second answer is to a question that the other graph has been told to go on from."""
    await by_going_on(arena, thread)
    await by_answering(arena, thread)


ANOTHER_GRAPH = (by_going_on, by_answering, by_replaying, by_asking_again)


@pytest.mark.parametrize("attack", ANOTHER_GRAPH)
async def test_question_of_another_graph_does_not_pass_the_breakpoint(
    arena: Arena, attack: Callable[[Arena, str], Awaitable[None]]
) -> None:
    """Its node has the name of the one behind the breakpoint."""
    thread = await arena.stopped("inquiring")
    await attack(arena, thread)
    await arena.rests(thread)
    assert arena.effects == []


@pytest.mark.parametrize("attack", ANOTHER_GRAPH)
async def test_control_question_of_another_graph_passes_an_advisory_breakpoint(
    dev_arena: Arena, attack: Callable[[Arena, str], Awaitable[None]]
) -> None:
    """The control."""
    thread = await dev_arena.stopped("inquiring")
    await attack(dev_arena, thread)
    await dev_arena.rests(thread)
    assert dev_arena.effects == ["asked"]


async def test_answer_before_a_nested_breakpoint_does_not_pass_it(arena: Arena) -> None:
    """The node around both has asked, and stands before the breakpoint now."""
    thread = await arena.stopped("asked_first")
    for _ in range(2):
        await arena.run(thread, "asked_first", command={"resume": CLARIFIED})
        await arena.run(thread, "asked_first", multitask_strategy="interrupt")
    assert arena.effects == []
    [stop] = [item for item in await arena.items(thread) if item["dialect"] == "breakpoint"]
    assert (await arena.decide(stop, "approve")).status_code == 200
    await arena.rests(thread)
    assert arena.effects == ["asked"]


async def with_config(arena: Arena, thread: str) -> None:
    await arena.run(thread, "configured", command={"resume": CLARIFIED}, **EVIL)


async def with_context(arena: Arena, thread: str) -> None:
    await arena.run(thread, "configured", command={"resume": CLARIFIED}, context={"account": "EVIL"})


async def with_metadata(arena: Arena, thread: str) -> None:
    await arena.run(thread, "configured", command={"resume": CLARIFIED}, metadata={"account": "EVIL"})


async def with_metadata_of_the_config(arena: Arena, thread: str) -> None:
    told = {"metadata": {"account": "EVIL"}}
    await arena.run(thread, "configured", command={"resume": CLARIFIED}, config=told)


async def with_an_assistant(arena: Arena, thread: str) -> None:
    own = await arena.agent.post("/assistants", json={"graph_id": "configured", **EVIL})
    assert own.status_code == 200, own.text
    await arena.run(thread, own.json()["assistant_id"], command={"resume": CLARIFIED})


async def with_a_second_try(arena: Arena, thread: str) -> None:
    """The run that was refused is no measure for the next one."""
    await with_config(arena, thread)
    await with_config(arena, thread)


async def with_a_question_asked_again(arena: Arena, thread: str) -> None:
    await arena.run(thread, "configured", multitask_strategy="interrupt", **EVIL)
    await with_config(arena, thread)


OTHER_ARGUMENTS = (
    with_config,
    with_context,
    with_metadata,
    with_metadata_of_the_config,
    with_an_assistant,
    with_a_second_try,
    with_a_question_asked_again,
)


@pytest.mark.promise("P5")
@pytest.mark.parametrize("attack", OTHER_ARGUMENTS)
async def test_answer_behind_a_breakpoint_cannot_change_the_config(
    arena: Arena, attack: Callable[[Arena, str], Awaitable[None]]
) -> None:
    thread, _ = await approved(arena, "configured")
    await attack(arena, thread)
    await arena.rests(thread)
    assert arena.effects == []
    if attack is not with_a_question_asked_again:  # there nobody knows any more what was approved
        assert (await arena.run(thread, "configured", command={"resume": CLARIFIED})).status_code == 200
        assert arena.effects == ["asked to payroll"]


@pytest.mark.parametrize("attack", OTHER_ARGUMENTS)
async def test_control_answer_behind_an_advisory_breakpoint_changes_the_config(
    dev_arena: Arena, attack: Callable[[Arena, str], Awaitable[None]]
) -> None:
    """The control."""
    thread, _ = await approved(dev_arena, "configured")
    await attack(dev_arena, thread)
    await dev_arena.rests(thread)
    assert "asked to EVIL" in dev_arena.effects


@pytest.mark.promise("P5")
@pytest.mark.parametrize(("more", "effects"), [(EVIL, []), ({}, ["asked to payroll"])])
async def test_other_agent_on_a_shared_thread_cannot_change_the_config(
    arena: Arena, more: dict[str, Any], effects: list[str]
) -> None:
    thread = await arena.thread(visibility="shared")
    await arena.run(thread, "configured", input={"log": str(arena.log), "tag": "asked"})
    assert (await arena.decide(await arena.item(thread), "approve")).status_code == 200
    await arena.rests(thread)
    await arena.run(thread, "configured", arena.other, command={"resume": CLARIFIED}, **more)
    assert arena.effects == effects


async def test_answer_with_the_same_config_is_the_same_call(arena: Arena) -> None:
    """As clients send it that name their config with every request."""
    thread = await arena.thread()
    own: dict[str, Any] = {"config": {"configurable": {"account": "savings"}}}
    await arena.run(thread, "configured", input={"log": str(arena.log), "tag": "asked"}, **own)
    assert (await arena.decide(await arena.item(thread), "approve")).status_code == 200
    await arena.rests(thread)
    assert (await arena.run(thread, "configured", command={"resume": CLARIFIED}, **own)).status_code == 200
    assert arena.effects == ["asked to savings"]


async def test_question_behind_a_breakpoint_is_answered_in_the_inbox(arena: Arena) -> None:
    thread, _ = await approved(arena, "configured")
    decided = await arena.decide(await arena.item(thread), "respond", message="this one")
    assert decided.status_code == 200, decided.text
    await arena.rests(thread)
    assert arena.effects == ["asked to payroll"]
