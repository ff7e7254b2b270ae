"""Only a decision passes a gated breakpoint: no delay, queue, copy, fork, steer or crash does.

The control runs the same attempts in `dev`, where the policy only advises: there the payment is made.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from assent.kernel.store import tables
from assent.kernel.store.transaction import Tx
from assent.review.model.items import Revision
from assent.review.rows import items
from assent.runs import admission
from assent.runs.bus.memory import MemoryBus
from assent.runs.checkpoints.backlog import Backlog
from assent.runs.engine import breakpoints
from assent.runs.engine.feed import Feed
from assent.runs.engine.runner import Runner
from assent.threads.model.runs import Run
from assent.threads.rows import runs
from assent.threads.rows.state import checkpoints
from tests.faults.arena import Arena
from tests.waiting import until

pytestmark = pytest.mark.promise("P1")

Attack = Callable[[Arena], Awaitable[str]]
"""Tries to get a thread past its breakpoint, and returns the thread that it got to."""


async def delayed(arena: Arena) -> str:
    thread = await arena.stopped()
    made = await arena.run(thread, "stopping", how="", input=None, after_seconds=0.01)
    assert made.status_code == 200, made.text
    run = made.json()["run_id"]

    async def awake() -> bool:
        body = (await arena.ana.get(f"/threads/{thread}/runs/{run}")).json()
        held = await arena.house.services.store.read("default", _wakes, run)
        return body["status"] != "pending" or held

    await until(awake, "the delayed run does not wake")
    return thread


def _wakes(tx: Tx, run_id: str) -> bool:
    run = runs.get(tx, run_id)
    return run is None or run.wake_at is None


async def enqueued(arena: Arena) -> str:
    """Behind the run that is about to stop."""
    thread, hold = await arena.thread(), arena.log.parent / "hold"
    given = {"log": str(arena.log), "tag": "asked", "hold": str(hold)}
    assert (await arena.run(thread, "stopping", how="", input=given)).status_code == 200
    await until(_is_there(Path(f"{hold}.started")), "the run does not begin")
    behind = await arena.run(thread, "stopping", how="", input=None, multitask_strategy="enqueue")
    assert behind.status_code == 200, behind.text
    Path(f"{hold}.go").touch()
    return thread


def _is_there(path: Path) -> Callable[[], Awaitable[bool]]:
    async def there() -> bool:
        return path.exists()

    return there


async def copied(arena: Arena) -> str:
    thread = await arena.stopped()
    copy = (await arena.agent.post(f"/threads/{thread}/copy")).json()["thread_id"]
    await arena.run(copy, "stopping", input=None)
    return str(copy)


async def copied_while_running(arena: Arena) -> str:
    thread, hold = await arena.thread(), arena.log.parent / "hold"
    given = {"log": str(arena.log), "tag": "asked"}
    assert (await arena.run(thread, "stopping", input=given)).status_code == 200
    again = await arena.run(
        thread, "stopping", arena.ana, "", input={**given, "hold": str(hold)}, multitask_strategy="interrupt"
    )
    assert again.status_code == 200, again.text
    await until(_is_there(Path(f"{hold}.started")), "the run does not begin")
    copy = (await arena.agent.post(f"/threads/{thread}/copy")).json()["thread_id"]
    Path(f"{hold}.go").touch()
    await arena.run(copy, "stopping", input=None)
    return str(copy)


async def steered(arena: Arena) -> str:
    """On a thread that stands before nothing."""
    ended = [{"updates": [{"values": {"log": str(arena.log)}, "as_node": "pay"}]}]
    thread = await arena.thread(metadata={"graph_id": "stopping"}, supersteps=ended)
    command = {"update": {"log": str(arena.log), "tag": "steered"}, "goto": "pay"}
    await arena.run(thread, "stopping", input=None, command=command)
    return thread


async def updated(arena: Arena) -> str:
    """By a state that stands before the node, which no run has stopped at."""
    thread = await arena.thread(metadata={"graph_id": "stopping"})
    values = {"log": str(arena.log), "tag": "updated"}
    set_to = await arena.agent.post(f"/threads/{thread}/state", json={"values": values, "as_node": "prepare"})
    assert set_to.status_code == 200, set_to.text
    await arena.run(thread, "stopping", input=None)
    return thread


async def forked(arena: Arena) -> str:
    """From the checkpoint of a breakpoint that a person has rejected."""
    thread = await arena.stopped()
    past = (await arena.agent.post(f"/threads/{thread}/history", json={"limit": 1})).json()
    checkpoint = past[0]["checkpoint"]["checkpoint_id"]
    if (await arena.items(thread))[0]["gated"]:
        assert (await arena.decide(await arena.item(thread), "reject")).status_code == 200
        await arena.rests(thread)
    await arena.run(thread, "stopping", input=None, checkpoint_id=checkpoint)
    return thread


async def retried(arena: Arena) -> str:
    """After the node has failed that a decision had let the thread enter."""
    thread = await arena.stopped(fails=True)
    assert (await arena.decide(await arena.item(thread), "approve")).status_code == 200
    await arena.rests(thread)
    await arena.run(thread, "stopping", input=None, multitask_strategy="interrupt")
    mended = {"values": {"fails": False}, "as_node": "prepare"}
    await arena.agent.post(f"/threads/{thread}/state", json=mended)
    await arena.run(thread, "stopping", input=None, multitask_strategy="interrupt")
    return thread


async def in_a_subgraph(arena: Arena) -> str:
    thread = await arena.stopped("nested")
    copy = (await arena.agent.post(f"/threads/{thread}/copy")).json()["thread_id"]
    await arena.run(copy, "nested", input=None)
    return str(copy)


async def after_a_node(arena: Arena) -> str:
    thread = await arena.stopped("after")
    copy = (await arena.agent.post(f"/threads/{thread}/copy")).json()["thread_id"]
    await arena.run(copy, "after", input=None)
    return str(copy)


async def paired(arena: Arena) -> str:
    """An update as a list of pairs names the engine's channel."""
    ended = [{"updates": [{"values": {"log": str(arena.log)}, "as_node": "pay"}]}]
    thread = await arena.thread(metadata={"graph_id": "stopping"}, supersteps=ended)
    await arena.run(thread, "stopping", command={"update": [["branch:to:pay", None], ["tag", "paired"]]})
    return thread


async def in_a_namespace(arena: Arena) -> str:
    """A run that names the namespace of a graph inside resumes the graph around it."""
    thread = await arena.thread(metadata={"graph_id": "stopping"})
    values = {"log": str(arena.log), "tag": "inside"}
    await arena.agent.post(f"/threads/{thread}/state", json={"values": values, "as_node": "prepare"})
    await arena.run(thread, "stopping", input=None, checkpoint={"checkpoint_ns": "inner:1"})
    return thread


async def beside_a_question(arena: Arena) -> str:
    """An answer that nobody has to approve, while another node stands before a breakpoint."""
    thread = await arena.stopped("beside")
    await arena.run(thread, "beside", command={"resume": CLARIFIED})
    return thread


async def sent_past_a_stop_after(arena: Arena) -> str:
    ended = [{"updates": [{"values": {"log": str(arena.log)}, "as_node": "pay"}]}]
    thread = await arena.thread(metadata={"graph_id": "after"}, supersteps=ended)
    await arena.run(thread, "after", command={"update": {"tag": "sent"}, "goto": "pay"})
    return thread


JOIN = "join:a+b:pay"


async def half_joined(arena: Arena) -> str:
    """A thread on which one of the two nodes before `pay` has ended."""
    values = {"log": str(arena.log), "tag": "joined"}
    past = [{"updates": [{"values": values, "as_node": "a"}]}]
    return await arena.thread(metadata={"graph_id": "joined"}, supersteps=past)


async def joined(arena: Arena) -> str:
    """By the channel that waits for both nodes."""
    thread = await half_joined(arena)
    for given in ({JOIN: "b"}, [[JOIN, "b"]]):
        await arena.run(thread, "joined", command={"update": given})
    return thread


async def joined_by_an_edit(arena: Arena) -> str:
    thread = await half_joined(arena)
    for edit in ({"values": {JOIN: "b"}}, {"values": {JOIN: "b", "tag": "x"}, "as_node": "a"}):
        await arena.agent.post(f"/threads/{thread}/state", json=edit)
        await arena.run(thread, "joined", input=None)
    return thread


async def joined_by_a_past(arena: Arena) -> str:
    values = {"log": str(arena.log), "tag": "joined", JOIN: "b"}
    for change in ({"values": values}, {"command": {"update": values}}):
        past = [{"updates": [{**change, "as_node": "a"}]}]
        made = await arena.agent.post("/threads", json={"metadata": {"graph_id": "joined"}, "supersteps": past})
        if made.status_code == 200:
            await arena.run(made.json()["thread_id"], "joined", input=None)
    return await half_joined(arena)


async def joined_by_input(arena: Arena) -> str:
    thread = await half_joined(arena)
    await arena.run(thread, "joined", input={JOIN: "b", "tag": "x"})
    return thread


CLARIFIED = {"responses": [{"call_id": "1", "response": "this one"}]}
ATTACKS: tuple[Attack, ...] = (
    joined,
    joined_by_an_edit,
    joined_by_a_past,
    joined_by_input,
    paired,
    in_a_namespace,
    beside_a_question,
    sent_past_a_stop_after,
    delayed,
    enqueued,
    copied,
    copied_while_running,
    steered,
    updated,
    forked,
    retried,
    in_a_subgraph,
    after_a_node,
)


@pytest.mark.parametrize("attack", ATTACKS)
async def test_agent_cannot_pass_gated_breakpoint(arena: Arena, attack: Attack) -> None:
    thread = await attack(arena)
    await arena.rests(thread)
    assert arena.effects == []


REFUSED_EVERYWHERE = (copied_while_running, paired, joined, joined_by_an_edit, joined_by_a_past, joined_by_input)


@pytest.mark.parametrize("attack", [attack for attack in ATTACKS if attack not in REFUSED_EVERYWHERE])
async def test_control_agent_passes_an_advisory_breakpoint(dev_arena: Arena, attack: Attack) -> None:
    """The control."""
    thread = await attack(dev_arena)
    await dev_arena.rests(thread)
    assert len(dev_arena.effects) == 1


async def test_agent_gets_409_when_it_continues_past_gated_breakpoint(arena: Arena) -> None:
    thread = await arena.stopped()
    item = await arena.item(thread)
    for body in ({"input": None}, {"input": {"tag": "x"}}, {"command": {"goto": "pay"}}):
        refused = await arena.run(thread, "stopping", **body)
        assert (refused.status_code, refused.json()["code"]) == (409, "thread_waits")
    assert ("item.attempt_refused", await arena.actor(arena.agent)) in await arena.events(item)


async def test_enqueued_run_waits_for_the_decision_and_then_runs(arena: Arena) -> None:
    thread = await enqueued(arena)
    await until(_asks(arena, thread), "the thread does not ask")
    [waiting] = (await arena.ana.get(f"/threads/{thread}/runs", params={"status": "pending"})).json()
    assert (await arena.decide(await arena.item(thread), "approve")).status_code == 200

    async def ended() -> bool:
        run = (await arena.ana.get(f"/threads/{thread}/runs/{waiting['run_id']}")).json()
        return bool(run["status"] == "success")

    await until(ended, "the enqueued run does not run after the decision")
    assert arena.effects == ["asked"]


def _asks(arena: Arena, thread: str) -> Callable[[], Awaitable[bool]]:
    async def asks() -> bool:
        return bool(await arena.items(thread))

    return asks


async def test_enqueued_run_runs_after_a_rejection(arena: Arena) -> None:
    thread = await enqueued(arena)
    await until(_asks(arena, thread), "the thread does not ask")
    assert (await arena.decide(await arena.item(thread), "reject")).status_code == 200

    async def none_waits() -> bool:
        return not (await arena.ana.get(f"/threads/{thread}/runs", params={"status": "pending"})).json()

    await until(none_waits, "the enqueued run waits for ever")
    await arena.rests(thread)
    assert arena.effects == []


async def test_delayed_run_is_held_during_the_grace_of_a_decision(arena: Arena) -> None:
    thread = await arena.stopped()
    assert (await arena.decide(await arena.item(thread), "approve", grace_seconds=60)).status_code == 200
    refused = await arena.run(thread, "stopping", how="", input=None)
    assert refused.status_code == 409
    made = await arena.run(thread, "stopping", how="", input={"tag": "late"}, after_seconds=0.01)
    run = made.json()["run_id"]

    async def awake() -> bool:
        return bool(await arena.house.services.store.read("default", _wakes, run))

    await until(awake, "the delayed run does not wake")
    assert (await arena.ana.get(f"/threads/{thread}/runs/{run}")).json()["status"] == "pending"
    assert arena.effects == []


async def test_copy_keeps_the_gated_question_and_a_decision_lets_it_pass(arena: Arena) -> None:
    thread = await arena.stopped()
    copy = (await arena.agent.post(f"/threads/{thread}/copy")).json()["thread_id"]
    item = await arena.item(copy)
    assert (item["gated"], item["dialect"], item["requester"]) == (True, "breakpoint", await arena.actor(arena.agent))
    assert (await arena.decide(item, "approve")).status_code == 200
    await arena.rests(copy)
    assert arena.effects == ["asked"]
    assert len(await arena.items(thread)) == 1


async def test_edited_state_asks_anew_and_the_earlier_approval_is_stale(arena: Arena) -> None:
    """The decision names the checkpoint that was seen."""
    thread = await arena.stopped()
    seen = await arena.item(thread)
    changed = await arena.ben.post(
        f"/threads/{thread}/state", json={"values": {"tag": "changed"}, "as_node": "prepare"}
    )
    assert changed.status_code == 200, changed.text
    stale = await arena.decide(seen, "approve")
    assert (stale.status_code, stale.json()["code"]) == (409, "stale_revision")
    assert (await arena.decide(await arena.item(thread), "approve")).status_code == 200
    await arena.rests(thread)
    assert arena.effects == ["changed"]


@pytest.mark.promise("P6")
async def test_person_who_moves_the_thread_does_not_pass_its_breakpoint(arena: Arena) -> None:
    """Only a decision does, under all of the policy's rules."""
    await arena.policy({"default": {"name": "two", "then": "ask", "approvals": 2}})
    thread = await arena.stopped()
    alone = await arena.run(thread, "stopping", arena.ana, input=None)
    assert alone.status_code == 409
    await arena.run(thread, "stopping", arena.ana, command={"goto": "pay"}, multitask_strategy="interrupt")
    await arena.rests(thread)
    assert arena.effects == []


async def test_person_continues_past_gated_breakpoint_and_the_item_is_approved(arena: Arena) -> None:
    thread = await arena.stopped()
    item = await arena.item(thread)
    assert (await arena.run(thread, "stopping", arena.ana, input=None)).status_code == 200
    assert arena.effects == ["asked"]
    assert ("item.approved", await arena.actor(arena.ana)) in await arena.events(item)


async def test_person_who_sends_other_input_is_named_on_the_cancelled_item(arena: Arena) -> None:
    thread = await arena.stopped()
    item = await arena.item(thread)
    other = await arena.run(thread, "stopping", arena.ana, input={"tag": "other"}, multitask_strategy="interrupt")
    assert other.status_code == 200, other.text
    assert ("item.cancelled", await arena.actor(arena.ana)) in await arena.events(item)
    assert (await arena.item(thread))["id"] != item["id"]
    assert arena.effects == []


async def test_update_of_an_engine_channel_is_422(arena: Arena) -> None:
    thread = await arena.thread()
    for key in ("branch:to:pay", JOIN, "__pregel_tasks"):
        for given in ({key: None, "log": str(arena.log)}, [["log", str(arena.log)], [key, None]]):
            refused = await arena.run(thread, "stopping", command={"update": given})
            assert refused.status_code == 422, refused.text
    assert arena.effects == []


async def test_update_of_a_channel_that_starts_a_node_is_gated(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    """With any name of the channel, also where names are not refused."""
    monkeypatch.setattr(admission, "CHANNELS", ("__",))
    thread = await joined(arena)
    assert arena.effects == []
    monkeypatch.setattr(breakpoints, "stop", _never)
    await arena.run(thread, "joined", command={"update": {JOIN: "b"}})
    assert arena.effects == ["joined"]  # the control


async def test_attempt_after_a_crash_stops_at_the_breakpoint(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first attempt has stored the step before the breakpoint and died before it stopped there."""
    thread = await arena.stopped()
    item = await arena.item(thread)
    runner = _Again(arena)
    await runner.attempt(item["source"]["run_id"])
    assert arena.effects == []
    monkeypatch.setattr(breakpoints, "stop", _never)
    await runner.attempt(item["source"]["run_id"])
    assert arena.effects == ["asked"]  # the control


async def _never(*_: Any) -> None:
    return None


class _Again:
    """Streams the next attempt of a run, as a worker does that finds it left behind."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena

    async def attempt(self, run_id: str) -> None:
        store = self._arena.house.services.store
        run = await store.write("default", _left_behind, run_id)
        bus = MemoryBus(store)
        worker = Runner(store, self._arena.house.engine.project, bus, timeout=timedelta(seconds=30))
        await worker._begun("default", run, Feed(bus, "default", run), Backlog(store, "default"))


def _left_behind(tx: Tx, run_id: str) -> Run:
    """The run, as if a worker had begun another attempt of it."""
    this = update(tables.runs).where(tables.runs.c.tenant_id == tables.TENANT, tables.runs.c.run_id == run_id)
    tx.change(this.values(status="running", attempt=tables.runs.c.attempt + 1))
    run = runs.get(tx, run_id)
    assert run is not None
    return run


async def test_question_beside_a_breakpoint_is_answered_after_the_decision(arena: Arena) -> None:
    thread = await arena.stopped("beside")
    by_dialect = {item["dialect"]: item for item in await arena.items(thread)}
    assert by_dialect.keys() == {"clarification", "breakpoint"}
    early = await arena.run(thread, "beside", command={"resume": CLARIFIED})
    assert early.status_code == 409
    assert (await arena.decide(by_dialect["breakpoint"], "approve")).status_code == 200
    await arena.rests(thread)
    assert arena.effects == ["asked"]
    assert (await arena.run(thread, "beside", command={"resume": CLARIFIED})).status_code == 200
    assert (await arena.state(thread))["status"] == "idle"
    assert arena.effects == ["asked"]


@pytest.mark.promise("P5")
async def test_answer_behind_an_approved_breakpoint_does_not_swap_the_state(arena: Arena) -> None:
    """The person approved the state that was seen, and the node asks something before it pays."""
    thread = await arena.stopped("inside")
    assert (await arena.decide(await arena.item(thread), "approve")).status_code == 200
    await arena.rests(thread)
    swapped = {"resume": CLARIFIED, "update": {"tag": "evil"}}
    await arena.run(thread, "inside", command=swapped)
    await arena.rests(thread)
    assert arena.effects == []
    assert (await arena.run(thread, "inside", command={"resume": CLARIFIED})).status_code == 200  # the control
    assert arena.effects == ["asked"]


@pytest.mark.promise("P5")
async def test_edited_state_inside_of_a_subgraph_asks_anew(arena: Arena) -> None:
    thread = await arena.stopped("nested")
    seen = await arena.item(thread)
    state = (await arena.ben.get(f"/threads/{thread}/state", params={"subgraphs": True})).json()
    inside = state["tasks"][0]["state"]["checkpoint"]
    edit = {"values": {"tag": "changed"}, "checkpoint": {"checkpoint_ns": inside["checkpoint_ns"]}}
    changed = await arena.ben.post(f"/threads/{thread}/state", json=edit)
    assert changed.status_code == 200, changed.text
    stale = await arena.decide(seen, "approve")
    assert (stale.status_code, stale.json()["code"]) == (409, "stale_revision")
    assert arena.effects == []


@pytest.mark.promise("P5")
async def test_run_without_input_does_not_approve_a_revision_that_it_was_not_shown(arena: Arena) -> None:
    thread = await arena.stopped()
    edit = {"values": {"tag": "changed"}, "as_node": "prepare"}
    assert (await arena.ben.post(f"/threads/{thread}/state", json=edit)).is_success
    stale = await arena.run(thread, "stopping", arena.ana, input=None)
    assert (stale.status_code, stale.json()["code"]) == (409, "stale_revision")
    assert arena.effects == []


@pytest.mark.promise("P5")
@pytest.mark.parametrize("more", [{"context": {"tag": "ana"}}, {"config": {"configurable": {"tag": "ana"}}}])
async def test_run_that_approves_a_breakpoint_with_other_changes_is_refused(arena: Arena, more: dict[str, Any]) -> None:
    thread = await arena.stopped()
    refused = await arena.run(thread, "stopping", arena.ana, input=None, **more)
    assert (refused.status_code, refused.json()["code"]) == (409, "thread_waits")
    other = await arena.run(thread, "after", arena.ana, input=None)
    assert other.status_code == 409
    assert arena.effects == []


@pytest.mark.promise("P2")
async def test_attempt_after_a_crash_does_not_use_the_decision_again(arena: Arena) -> None:
    """The first attempt may have begun the node, so the thread asks."""
    thread = await arena.stopped()
    assert (await arena.decide(await arena.item(thread), "approve")).status_code == 200
    await arena.rests(thread)
    assert arena.effects == ["asked"]
    run = (await arena.ana.get(f"/threads/{thread}/runs")).json()[0]["run_id"]
    again = await arena.house.services.store.read("default", runs.get, run)
    assert again is not None
    decided = breakpoints.Decided(arena.house.services.store, "default", again)
    assert not await breakpoints.Decided(arena.house.services.store, "default", replace(again, attempt=2)).lets_pass()
    assert not await decided.lets_pass()  # the thread has moved on as well
    stood = replace(again, passes=await arena.house.services.store.read("default", checkpoints.heads, thread))
    assert await breakpoints.Decided(arena.house.services.store, "default", stood).lets_pass()  # the control


def _as_before_heads(tx: Tx, item_id: str) -> None:
    """The rows as the release stored them whose breakpoints did not name where the thread stands."""
    item = items.get(tx, item_id)
    assert item is not None
    asked = {"next": items.revision(tx, item_id, item.revision).asked["next"]}
    hash = Revision(1, asked).hash
    for table, values in ((tables.item_revisions, {"asked": asked, "hash": hash}), (tables.items, {"hash": hash})):
        tx.change(update(table).where(table.c.tenant_id == tables.TENANT, table.c.item_id == item_id).values(**values))


def _edit_state(tx: Tx, thread_id: str) -> None:
    """The row of the thread as an edit of its state leaves it, which made no revision in that release."""
    this = update(tables.threads).where(tables.threads.c.tenant_id == tables.TENANT)
    tx.change(this.where(tables.threads.c.thread_id == thread_id).values(state_updated_at=tx.now()))


def _edit_checkpoints(tx: Tx, thread_id: str) -> None:
    """The newest checkpoint as an edit of the state stores it."""
    this = update(tables.checkpoints).where(tables.checkpoints.c.tenant_id == tables.TENANT)
    tx.change(this.where(tables.checkpoints.c.thread_id == thread_id).values(run_id=None))


async def old_item(arena: Arena, graph: str) -> str:
    thread = await arena.stopped(graph)
    await arena.house.services.store.write("default", _as_before_heads, (await arena.item(thread))["id"])
    return thread


@pytest.mark.parametrize("way", ["inbox", "run"])
@pytest.mark.parametrize("graph", ["stopping", "nested", "after"])
async def test_breakpoint_of_an_earlier_release_is_approved_once(arena: Arena, graph: str, way: str) -> None:
    thread = await old_item(arena, graph)
    if way == "inbox":
        assert (await arena.decide(await arena.item(thread), "approve")).status_code == 200
    else:
        assert (await arena.run(thread, graph, arena.ana, input=None)).status_code == 200
    await arena.rests(thread)
    assert arena.effects == ["asked"]
    assert await arena.items(thread) == []


@pytest.mark.parametrize("edit", [_edit_state, _edit_checkpoints])
async def test_control_breakpoint_of_an_earlier_release_whose_state_was_edited_is_asked_again(
    arena: Arena, edit: Callable[[Tx, str], None]
) -> None:
    thread = await old_item(arena, "stopping")
    await arena.house.services.store.write("default", edit, thread)
    assert (await arena.decide(await arena.item(thread), "approve")).status_code == 200
    await arena.rests(thread)
    assert arena.effects == []
    assert (await arena.decide(await arena.item(thread), "approve")).status_code == 200
    await arena.rests(thread)
    assert arena.effects == ["asked"]
