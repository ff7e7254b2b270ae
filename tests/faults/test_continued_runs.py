"""An answer, or a run that passes a breakpoint, goes on with the run that asked: with its graph, its configuration and
its metadata, whatever the assistant and the thread say by now."""

from __future__ import annotations

from typing import Any

import pytest

from assent.threads.rows import runs
from tests.faults.arena import Arena, Json

pytestmark = pytest.mark.promise("P5")

APPROVE = {"resume": {"decisions": [{"type": "approve"}]}}
ANSWER = {"resume": {"responses": [{"call_id": "1", "response": "this one"}]}}
EVIL = {"configurable": {"account": "EVIL"}}


async def assistant(arena: Arena, graph: str) -> str:
    made = await arena.agent.post("/assistants", json={"graph_id": graph, "name": "x"})
    assert made.status_code == 200, made.text
    return str(made.json()["assistant_id"])


async def by_graph(arena: Arena, thread: str, chosen: str) -> Any:
    return await arena.agent.patch(f"/assistants/{chosen}", json={"graph_id": "free"})


async def by_config(arena: Arena, thread: str, chosen: str) -> Any:
    return await arena.agent.patch(f"/assistants/{chosen}", json={"config": EVIL})


async def by_context(arena: Arena, thread: str, chosen: str) -> Any:
    return await arena.agent.patch(f"/assistants/{chosen}", json={"context": EVIL["configurable"]})


async def by_metadata(arena: Arena, thread: str, chosen: str) -> Any:
    return await arena.agent.patch(f"/assistants/{chosen}", json={"metadata": {"account": "EVIL"}})


async def by_thread(arena: Arena, thread: str, chosen: str) -> Any:
    return await arena.agent.patch(f"/threads/{thread}", json={"metadata": {"account": "EVIL"}})


CHANGES = [by_graph, by_config, by_context, by_metadata, by_thread]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("graph", "command"), [("paying_to", None), ("approving", APPROVE)])
async def test_approval_continues_with_the_config_of_the_run_that_asked(
    arena: Arena, graph: str, command: Any, change: Any
) -> None:
    chosen = await assistant(arena, graph)
    thread = await arena.stopped(chosen)
    assert (await arena.item(thread))["gated"]
    assert (await change(arena, thread, chosen)).is_success
    done = await arena.run(thread, chosen, arena.ana, command=command)
    assert done.status_code == 200, done.text
    assert arena.effects == ["asked to payroll"]


@pytest.mark.parametrize("change", CHANGES)
async def test_decision_in_the_inbox_continues_with_the_config_of_the_run_that_asked(arena: Arena, change: Any) -> None:
    chosen = await assistant(arena, "paying_to")
    thread = await arena.stopped(chosen)
    assert (await change(arena, thread, chosen)).is_success
    assert (await arena.decide(await arena.item(thread), "approve")).status_code == 200
    await arena.rests(thread)
    assert arena.effects == ["asked to payroll"]


@pytest.mark.parametrize("change", CHANGES)
async def test_control_new_turn_uses_the_changed_config(arena: Arena, change: Any) -> None:
    """The control: the changes are in force, and a person is asked about what they lead to."""
    chosen = await assistant(arena, "paying_to")
    thread = await arena.stopped(chosen)
    assert (await arena.decide(await arena.item(thread), "approve")).status_code == 200
    await arena.rests(thread)
    assert (await change(arena, thread, chosen)).is_success
    assert (await arena.run(thread, chosen, input={"tag": "next"})).status_code == 200
    for item in await arena.items(thread):
        assert (await arena.decide(item, "approve")).status_code == 200
        await arena.rests(thread)
    assert arena.effects == ["asked to payroll", "next" if change is by_graph else "next to EVIL"]


async def test_answer_continues_with_the_config_of_the_run_that_asked(arena: Arena) -> None:
    chosen = await assistant(arena, "telling")
    thread = await arena.stopped(chosen)
    assert (await by_config(arena, thread, chosen)).is_success
    assert (await arena.run(thread, chosen, command=ANSWER)).status_code == 200
    assert [line.split()[0] for line in arena.effects] == ["payroll"]


@pytest.mark.parametrize(("graph", "command"), [("paying_to", None), ("approving", APPROVE)])
async def test_gated_item_cannot_continue_after_its_run_was_deleted(arena: Arena, graph: str, command: Any) -> None:
    chosen = await assistant(arena, graph)
    thread = await arena.stopped(chosen)
    [run] = (await arena.agent.get(f"/threads/{thread}/runs")).json()
    assert await arena.house.services.store.write("default", runs.remove, run["run_id"])
    assert (await by_config(arena, thread, chosen)).is_success
    refused = await arena.run(thread, chosen, arena.ana, command=command)
    assert refused.status_code == 409, refused.text
    assert arena.effects == []


MORE: tuple[Json, ...] = (
    {"metadata": {"account": "EVIL"}},
    {"config": {"metadata": {"account": "EVIL"}}},
)


@pytest.mark.parametrize("more", MORE)
@pytest.mark.parametrize(("graph", "command"), [("paying_to", None), ("approving", APPROVE)])
async def test_approval_with_metadata_of_its_own_is_refused(arena: Arena, graph: str, command: Any, more: Json) -> None:
    thread = await arena.stopped(graph)
    refused = await arena.run(thread, graph, arena.ana, command=command, **more)
    assert refused.status_code == 409, refused.text
    assert arena.effects == []
    assert (await arena.run(thread, graph, arena.ana, command=command)).status_code == 200  # the control
    assert arena.effects == ["asked to payroll"]


async def test_approval_may_repeat_the_metadata_of_what_asked(arena: Arena) -> None:
    """As clients do that send the same with every request."""
    thread, metadata = await arena.thread(), {"account": "rent", "client": {"name": "ui"}}
    given = {"log": str(arena.log), "tag": "asked"}
    assert (await arena.run(thread, "approving", input=given, metadata=metadata)).status_code == 200
    assert (await arena.run(thread, "approving", arena.ana, command=APPROVE, metadata=metadata)).status_code == 200
    assert arena.effects == ["asked to rent"]


FORGED = {"langgraph_auth_user_id": "ana", "langgraph_auth_user": {"identity": "ana"}, "user_id": "ana"}


@pytest.mark.promise("P6")
@pytest.mark.parametrize("where", ["metadata", "config"])
async def test_answer_with_metadata_is_a_run_of_its_caller(arena: Arena, where: str) -> None:
    thread = await arena.thread(visibility="shared")
    await arena.run(thread, "telling", input={"log": str(arena.log), "tag": "asked"})
    told = {"account": "EVIL", **FORGED}
    more = {"metadata": told} if where == "metadata" else {"config": {"metadata": told}}
    made = await arena.run(thread, "telling", arena.other, "", command=ANSWER, **more)
    await arena.rests(thread)
    other = await arena.actor(arena.other)
    run = await arena.house.services.store.read("default", runs.get, made.json()["run_id"])
    assert run is not None
    assert run.actor == other
    id = other.partition(":")[2]
    assert arena.effects == [f"EVIL None {id} None"]


async def test_answer_may_set_the_limit_of_its_own_steps(arena: Arena) -> None:
    thread = await arena.stopped("approving")
    done = await arena.run(thread, "approving", arena.ana, command=APPROVE, config={"recursion_limit": 7})
    assert done.status_code == 200, done.text
    [run, _] = (await arena.ana.get(f"/threads/{thread}/runs")).json()
    assert run["kwargs"]["config"]["recursion_limit"] == 7
    assert arena.effects == ["asked to payroll"]


async def test_approval_with_tags_of_its_own_is_refused(arena: Arena) -> None:
    thread = await arena.stopped("approving")
    refused = await arena.run(thread, "approving", arena.ana, command=APPROVE, config={"tags": ["evil"]})
    assert refused.status_code == 409, refused.text
    assert arena.effects == []


@pytest.mark.promise("P6")
@pytest.mark.parametrize("where", ["run", "config", "thread", "assistant"])
async def test_identity_in_metadata_cannot_be_forged(arena: Arena, where: str) -> None:
    """Neither in what the graph sees nor in what its checkpoints say."""
    told: Json = {"metadata": FORGED}
    made = (await arena.agent.post("/assistants", json={"graph_id": "telling", **told})).json()["assistant_id"]
    chosen = made if where == "assistant" else "telling"
    thread = await arena.thread(**(told if where == "thread" else {}))
    given: dict[str, Json] = {"run": told, "config": {"config": told}}
    await arena.run(thread, chosen, input={"log": str(arena.log), "tag": "asked"}, **given.get(where, {}))
    assert (await arena.run(thread, chosen, command=ANSWER)).status_code == 200
    id = (await arena.actor(arena.agent)).partition(":")[2]
    assert arena.effects == [f"payroll None {id} None"]
    past = (await arena.agent.post(f"/threads/{thread}/history", json={"limit": 10})).json()
    assert {state["metadata"].get("langgraph_auth_user_id", id) for state in past} == {id}
    assert {state["metadata"].get("user_id", id) for state in past} == {id}


async def test_threads_may_be_labelled_with_a_user(arena: Arena) -> None:
    """As many clients do to find them again."""
    thread = await arena.thread(metadata={"user_id": "customer-7"})
    body = (await arena.agent.post("/threads/search", json={"metadata": {"user_id": "customer-7"}})).json()
    assert [thread["thread_id"] for thread in body] == [thread]
