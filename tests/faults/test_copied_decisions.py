"""A decision on a copy of a thread arrives whatever becomes of the original, and goes on with what the copy had when it
was made. A decision that can never arrive is asked for again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from assent.identity.model.access import Role
from assent.kernel.store.transaction import Tx
from assent.outbox.model import Failure
from assent.review.threads import decided
from assent.runs import continuation as continuing
from assent.runs import resumption as resuming
from assent.runs.threads import copying
from assent.threads.model.runs import Run
from assent.threads.rows import runs
from tests.faults.arena import Arena, Json
from tests.waiting import until

GRAPHS = ("stopping", "approving", "wiring")
"""A breakpoint, a question that approves a call, and a call before our gate."""
TWO_SECONDS = {"grace_seconds": 2}


async def copied(client: httpx.AsyncClient, thread: str) -> str:
    made = await client.post(f"/threads/{thread}/copy")
    assert made.status_code == 200, made.text
    return str(made.json()["thread_id"])


async def approved(arena: Arena, thread: str, **more: Any) -> Json:
    item = await arena.item(thread)
    said = await arena.decide(item, "approve", **more)
    assert said.status_code == 200, said.text
    return item


async def first_run(client: httpx.AsyncClient, thread: str) -> str:
    return f"/threads/{thread}/runs/{(await client.get(f'/threads/{thread}/runs')).json()[-1]['run_id']}"


async def lose_original(arena: Arena, thread: str, what: str) -> None:
    gone = await arena.agent.delete(f"/threads/{thread}" if what == "thread" else await first_run(arena.agent, thread))
    assert gone.status_code == 204, gone.text


@pytest.mark.promise("P3")
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("what", ["thread", "run"])
async def test_decision_on_a_copy_arrives_after_the_original_was_deleted(arena: Arena, graph: str, what: str) -> None:
    thread = await arena.stopped(graph)
    copy = await copied(arena.agent, thread)
    await lose_original(arena, thread, what)
    await approved(arena, copy)
    assert (await arena.rests(copy))["status"] == "idle"
    assert len(arena.effects) == 1


@pytest.mark.promise("P3")
async def test_decision_on_a_copy_of_a_copy_arrives_after_both_others_were_deleted(arena: Arena) -> None:
    thread = await arena.stopped("approving")
    middle = await copied(arena.agent, thread)
    copy = await copied(arena.agent, middle)
    for thread_id in (thread, middle):
        await lose_original(arena, thread_id, "thread")
    await approved(arena, copy)
    assert (await arena.rests(copy))["status"] == "idle"
    assert len(arena.effects) == 1


@pytest.mark.promise("P3")
async def test_control_without_a_run_of_its_own_the_decision_on_a_copy_does_not_arrive(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "copy_asker", lambda tx, source, copy, maker: runs.last_begun(tx, source.id))
    thread = await arena.stopped("approving")
    copy = await copied(arena.agent, thread)
    await lose_original(arena, thread, "thread")
    await approved(arena, copy)
    assert (await arena.rests(copy))["status"] == "interrupted"
    assert arena.effects == []


@pytest.mark.promise("P3")
@pytest.mark.parametrize("maker", ["agent", "other"])
async def test_decision_on_a_copy_arrives_that_was_made_while_the_original_ran(arena: Arena, maker: str) -> None:
    hold, client = arena.log.parent / "hold", getattr(arena, maker)
    thread = await arena.stopped("holding", hold=str(hold))
    await arena.agent.patch(f"/threads/{thread}", json={"visibility": "shared"})
    await approved(arena, thread)

    async def runs_now() -> bool:
        return Path(f"{hold}.started").exists()

    await until(runs_now, "the original does not run")
    copy = await copied(client, thread)
    Path(f"{hold}.go").touch()
    item = await approved(arena, copy)
    assert item["requester"] == await arena.actor(client)
    assert (await arena.rests(copy))["status"] == "idle"
    assert (await arena.rests(thread))["status"] == "idle"
    assert len(arena.effects) == 2, "one of each"


async def test_copy_of_a_thread_that_runs_and_asks_nothing_has_no_run(arena: Arena) -> None:
    hold = arena.log.parent / "hold"
    thread = await arena.thread()
    await arena.run(thread, "free", input={"log": str(arena.log), "tag": "t", "hold": str(hold)}, how="")

    async def runs_now() -> bool:
        return Path(f"{hold}.started").exists()

    await until(runs_now, "the original does not run")
    copy = await copied(arena.agent, thread)
    Path(f"{hold}.go").touch()
    assert (await arena.agent.get(f"/threads/{copy}/runs")).json() == []
    await arena.rests(thread)


@pytest.mark.promise("P3")
async def test_run_by_which_a_copy_asks_is_not_deleted_before_the_decision(arena: Arena) -> None:
    copy = await copied(arena.agent, await arena.stopped("approving"))
    refused = await arena.agent.delete(await first_run(arena.agent, copy))
    assert (refused.status_code, refused.json()["code"]) == (409, "thread_waits")
    await approved(arena, copy)
    await arena.rests(copy)
    assert len(arena.effects) == 1
    assert (await arena.agent.delete(await first_run(arena.agent, copy))).status_code == 204


async def without_runs(arena: Arena, graph: str) -> str:
    """A thread that asks, and whose runs are gone: as a bug or an operator may leave it."""
    thread = await arena.stopped(graph)
    [run] = (await arena.agent.get(f"/threads/{thread}/runs")).json()
    await arena.house.services.store.write("default", runs.remove, run["run_id"])
    return thread


@pytest.mark.promise("P3")
@pytest.mark.parametrize(
    ("graph", "verb"), [*((graph_name, "approve") for graph_name in GRAPHS), ("approving", "reject")]
)
async def test_decision_that_can_never_arrive_is_asked_for_again(arena: Arena, graph: str, verb: str) -> None:
    thread = await without_runs(arena, graph)
    item = await arena.item(thread)
    for _ in range(2):
        assert (await arena.decide(item, verb)).status_code == 200
        await arena.rests(thread)
        again = await arena.item(thread)
        assert (again["id"], again["status"], again["execution"]) == (item["id"], "PENDING", None)
    told = (await arena.ana.get(f"/api/inbox/items/{item['id']}/timeline")).json()
    undelivered = [event for event in told if event["kind"] == "item.undeliverable"]
    assert [delivery["actor"] for delivery in undelivered] == ["system"] * 2
    assert undelivered[0]["payload"]["reason"] == "the thread has no run to continue"
    assert arena.effects == []


@pytest.mark.promise("P3")
async def test_control_without_asking_again_the_thread_cannot_be_decided(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decided, "fail", lambda tx, delivery, asked, reason: Failure(reason, final=True))
    thread = await without_runs(arena, "approving")
    await approved(arena, thread)
    assert (await arena.rests(thread))["status"] == "interrupted"
    assert await arena.items(thread) == []


async def stands(arena: Arena, graph: str) -> tuple[str, str]:
    """Another agent's copy of a thread, and its own assistant that ran there."""
    made = await arena.other.post("/assistants", json={"graph_id": graph, "name": "theirs"})
    assistant = str(made.json()["assistant_id"])
    thread = await arena.stopped(assistant)
    await arena.agent.patch(f"/threads/{thread}", json={"visibility": "shared"})
    return await copied(arena.other, thread), assistant


async def swap(arena: Arena, copy: str, assistant: str, what: str) -> None:
    path = f"/threads/{copy}" if what == "metadata" else f"/assistants/{assistant}"
    body: Json = {"account": "evil"}
    body = {"metadata": body} if what == "metadata" else {"config": {"configurable": body}}
    changed = await arena.other.patch(path, json=body)
    assert changed.status_code == 200, changed.text


@pytest.mark.promise("P5")
@pytest.mark.parametrize("graph", ["paying_to", "approving"])
@pytest.mark.parametrize("what", ["metadata", "config"])
async def test_change_after_the_approval_of_a_copy_has_no_effect(arena: Arena, graph: str, what: str) -> None:
    copy, assistant = await stands(arena, graph)
    await approved(arena, copy, **TWO_SECONDS)
    await swap(arena, copy, assistant, what)
    await arena.rests(copy)
    assert arena.effects == ["asked to payroll"]


@pytest.mark.promise("P5")
@pytest.mark.parametrize("what", ["metadata", "config"])
async def test_change_before_the_approval_of_a_copy_has_no_effect(arena: Arena, what: str) -> None:
    copy, assistant = await stands(arena, "approving")
    await swap(arena, copy, assistant, what)
    await approved(arena, copy)
    await arena.rests(copy)
    assert arena.effects == ["asked to payroll"]


@pytest.mark.promise("P5")
@pytest.mark.parametrize("what", ["metadata", "config"])
async def test_control_config_read_at_delivery_changes_the_payment(
    arena: Arena, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def at_delivery(tx: Tx, thread: Any, run_id: str | None) -> Run | None:
        before = continuing.run_before(tx, thread, run_id)
        assert before is not None
        setting, metadata = continuing._of_assistant(tx, thread, before, before.actor)
        return replace(before, kwargs={**before.kwargs, **setting}, metadata=metadata)

    monkeypatch.setattr(resuming, "run_before", at_delivery)
    copy, assistant = await stands(arena, "approving")
    await approved(arena, copy, **TWO_SECONDS)
    await swap(arena, copy, assistant, what)
    await arena.rests(copy)
    assert arena.effects == ["asked to evil"]


@pytest.mark.promise("P6")
async def test_editor_of_the_assistant_is_no_second_approver_of_the_copy(arena: Arena) -> None:
    await arena.policy({"default": {"name": "two", "then": "ask", "separate_duties": True}})
    carl = arena.house.client(await arena.house.person(f"carl-{uuid4().hex[:6]}", Role.ADMIN))
    made = await arena.other.post("/assistants", json={"graph_id": "approving", "name": "theirs"})
    assistant = str(made.json()["assistant_id"])
    thread = await arena.stopped(assistant)
    await arena.agent.patch(f"/threads/{thread}", json={"visibility": "shared"})
    body: Json = {"config": {"configurable": {"account": "carl"}}}
    assert (await carl.patch(f"/assistants/{assistant}", json=body)).status_code == 200
    item = await arena.item(await copied(arena.other, thread))
    assert (await arena.decide(item, "approve", carl)).status_code == 403
    control = await arena.item(await copied(arena.agent, thread))
    assert (await arena.decide(control, "approve", carl)).status_code == 200, (
        "control: this one runs as it was asked for"
    )
