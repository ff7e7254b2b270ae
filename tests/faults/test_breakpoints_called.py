"""A breakpoint of a graph that a node builds or looks up at run time is asked about, and only a decision passes it.

The control runs the same attempts in `dev`, where the policy only advises: there the payment is made.
"""

from __future__ import annotations

import pytest

from tests.faults.arena import Arena

pytestmark = pytest.mark.promise("P1")

CLARIFIED = {"responses": [{"call_id": "1", "response": "this one"}]}
CALLING = ("built", "looked_up", "built_deep")


@pytest.mark.parametrize("modes", [["values"], ["updates"], ["events"], ["messages-tuple"]])
@pytest.mark.parametrize("graph", CALLING)
async def test_stop_is_asked_about_and_passed_by_one_decision(arena: Arena, graph: str, modes: list[str]) -> None:
    thread = await arena.thread()
    await arena.run(thread, graph, input={"log": str(arena.log), "tag": "asked"}, stream_mode=modes)
    item = await arena.item(thread)
    assert (item["dialect"], item["gated"]) == ("breakpoint", True)
    assert (await arena.run(thread, graph, input=None)).status_code == 409
    assert arena.effects == []
    assert (await arena.decide(item, "approve")).status_code == 200
    assert (await arena.rests(thread))["status"] == "idle"
    assert arena.effects == ["asked"]


async def copied(arena: Arena, graph: str) -> None:
    thread = await arena.stopped(graph)
    copy = (await arena.agent.post(f"/threads/{thread}/copy")).json()["thread_id"]
    await arena.run(copy, graph, input=None)
    await arena.rests(copy)


async def rejected_and_forked(arena: Arena, graph: str) -> None:
    thread = await arena.stopped(graph)
    past = (await arena.agent.get(f"/threads/{thread}/state")).json()["checkpoint"]["checkpoint_id"]
    [item] = await arena.items(thread)
    if item["gated"]:
        assert (await arena.decide(item, "reject")).status_code == 200
        await arena.rests(thread)
    await arena.run(thread, graph, input=None, checkpoint={"checkpoint_id": past})
    await arena.run(thread, graph, input=None)
    await arena.rests(thread)


@pytest.mark.parametrize("attack", [copied, rejected_and_forked])
@pytest.mark.parametrize("graph", CALLING)
async def test_agent_does_not_pass_the_breakpoint_of_a_called_graph(arena: Arena, graph: str, attack: object) -> None:
    await attack(arena, graph)  # type: ignore[operator]
    assert arena.effects == []


@pytest.mark.parametrize("attack", [copied, rejected_and_forked])
@pytest.mark.parametrize("graph", CALLING)
async def test_control_agent_passes_an_advisory_breakpoint(dev_arena: Arena, graph: str, attack: object) -> None:
    """The control."""
    await attack(dev_arena, graph)  # type: ignore[operator]
    assert dev_arena.effects == ["asked"]


ASKING = (
    "built_asking",
    "called_second",
    "remembered_second",
    "remembered_after_a_question",
    "remembered",
    "remembered_node",
)
"""Ask what nobody has to approve, in one graph or another, and stop then; some of them remember where they stopped."""


@pytest.mark.parametrize("graph", ASKING)
async def test_answer_before_the_breakpoint_does_not_pass_it(arena: Arena, graph: str) -> None:
    thread = await arena.stopped(graph, moves=1)
    for _ in range(3):
        await arena.run(thread, graph, command={"resume": CLARIFIED})
        await arena.run(thread, graph, multitask_strategy="interrupt")
    assert arena.effects == []
    [stop] = [item for item in await arena.items(thread) if item["dialect"] == "breakpoint"]
    assert (await arena.decide(stop, "approve")).status_code == 200
    await arena.rests(thread)
    asks_again = graph == "remembered_after_a_question"  # LangGraph forgets the answer with the stop
    assert arena.effects == ([] if asks_again else ["asked"])


@pytest.mark.parametrize("graph", ASKING)
async def test_control_answer_before_an_advisory_breakpoint_passes_it(dev_arena: Arena, graph: str) -> None:
    """The control."""
    thread = await dev_arena.stopped(graph, moves=1)
    for _ in range(2):
        await dev_arena.run(thread, graph, command={"resume": CLARIFIED})
        await dev_arena.rests(thread)
    assert dev_arena.effects == ["asked"]


@pytest.mark.parametrize("graph", ASKING)
async def test_question_is_answered_once_and_asked_alone(arena: Arena, graph: str) -> None:
    """Also on the next thread, when it is known that the graph stops."""
    for _ in range(2):
        thread = await arena.stopped(graph, moves=1)
        assert (await arena.item(thread))["dialect"] == "clarification"
        assert (await arena.run(thread, graph, command={"resume": CLARIFIED})).status_code == 200
        assert "breakpoint" in [item["dialect"] for item in await arena.items(thread)]


async def remembered_and_asked(arena: Arena, thread: str) -> None:
    again = {"log": str(arena.log), "tag": "again", "moves": 1}
    await arena.run(thread, "remembered_second", input=again)
    for _ in range(2):
        await arena.run(thread, "remembered_second", command={"resume": CLARIFIED})
        await arena.run(thread, "remembered_second", multitask_strategy="interrupt")


async def remembered_and_sent(arena: Arena, thread: str) -> None:
    for _ in range(2):
        await arena.run(thread, "remembered_second", command={"goto": "work"})


@pytest.mark.parametrize("attack", [remembered_and_asked, remembered_and_sent])
async def test_rejected_breakpoint_of_a_graph_with_memory_is_not_passed(arena: Arena, attack: object) -> None:
    """Resuming the node that calls the graph resumes the graph at its breakpoint."""
    thread = await arena.stopped("remembered_second")
    assert (await arena.decide(await arena.item(thread), "reject")).status_code == 200
    await arena.rests(thread)
    await attack(arena, thread)  # type: ignore[operator]
    await arena.rests(thread)
    assert arena.effects == []


@pytest.mark.parametrize("attack", [remembered_and_asked, remembered_and_sent])
async def test_control_advisory_breakpoint_of_a_graph_with_memory_is_passed(dev_arena: Arena, attack: object) -> None:
    """The control."""
    thread = await dev_arena.stopped("remembered_second")
    assert (await dev_arena.decide(await dev_arena.item(thread), "reject")).status_code == 200
    await dev_arena.rests(thread)
    await attack(dev_arena, thread)  # type: ignore[operator]
    await dev_arena.rests(thread)
    assert dev_arena.effects


async def test_graph_that_remembers_and_has_ended_is_called_again(arena: Arena) -> None:
    thread = await arena.stopped("remembered_second")
    assert (await arena.decide(await arena.item(thread), "approve")).status_code == 200
    await arena.rests(thread)
    assert arena.effects == ["asked"]
    await arena.run(thread, "remembered_second", command={"goto": "work"})
    assert (await arena.rests(thread))["status"] == "idle"


async def test_graph_that_is_called_without_a_breakpoint_runs_through(arena: Arena) -> None:
    thread = await arena.thread()
    for _ in range(2):
        given = {"log": str(arena.log), "tag": "free"}
        assert (await arena.run(thread, "built_freely", input=given)).status_code == 200
    assert (await arena.state(thread))["status"] == "idle"
    assert arena.effects == ["free", "free"]
    assert await arena.items(thread, "") == []
