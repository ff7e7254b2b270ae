"""Runs that are stopped after a person has agreed: in the middle of the call, or after an answer has arrived."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from assent.kernel.store.transaction import Tx
from assent.review.model.grants import Passage, Passing
from assent.review.rows import policies
from assent.runs.project.gate_keeper import ServerKeeper
from assent.settings import Mode
from tests.api.house import Builder
from tests.api.reviewing import GRAPHS, problem
from tests.contract.stores import both_databases, database, folder
from tests.gate.test_server import CONFIG, Desk
from tests.waiting import until

__all__ = ["database", "folder"]

CALL = ("hold", {"to": "bob"})


@pytest.fixture(params=["gates"])
async def desk(
    request: pytest.FixtureRequest, database: str, tmp_path: Path, migrated_file: Path
) -> AsyncIterator[Desk]:
    config = {"gates": CONFIG, "asking": GRAPHS}[request.param]
    async with AsyncExitStack() as stack:
        house = await Builder(tmp_path, migrated_file, stack)(Mode.SERVE, config=config, database=database)
        agent, ana = house.client(await house.key()), house.client(await house.person("ana"))
        yield Desk(house, agent, ana, tmp_path / f"effects-{uuid.uuid4().hex}")


async def begun(desk: Desk) -> tuple[str, dict[str, Any]]:
    """A thread whose approved call is being made, and the item that allowed it."""
    thread = await desk.start("ours", CALL)
    [item] = await desk.items()
    await desk.decide(item)
    await until(lambda: seen(desk))
    return thread, item


async def seen(desk: Desk) -> bool:
    return desk.log.exists()


async def cancel(desk: Desk, thread: str, action: str = "interrupt") -> None:
    [run] = [run for run in await runs(desk, thread) if run["status"] == "running"]
    path = f"/threads/{thread}/runs/{run['run_id']}/cancel"
    response = await desk.ana.post(path, params={"action": action, "wait": True})
    assert response.status_code < 300, response.text
    await desk.settled(thread)


async def runs(desk: Desk, thread: str) -> list[dict[str, Any]]:
    body: list[dict[str, Any]] = (await desk.agent.get(f"/threads/{thread}/runs")).json()
    return body


async def get(desk: Desk, item: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = (await desk.ana.get(f"/api/inbox/items/{item['id']}")).json()
    return body


async def kinds(desk: Desk, item: dict[str, Any]) -> list[str]:
    return [
        pending_item["kind"] for pending_item in (await desk.ana.get(f"/api/inbox/items/{item['id']}/timeline")).json()
    ]


@both_databases
@pytest.mark.promise("P2")
@pytest.mark.parametrize("action", ["interrupt", "rollback"])
async def test_a_run_stopped_in_the_middle_of_a_call_leaves_it_in_doubt(desk: Desk, action: str) -> None:
    thread, item = await begun(desk)
    assert (await get(desk, item))["execution"] == "started", "while it is being made, nothing is in doubt"
    await cancel(desk, thread, action)
    assert (await get(desk, item))["execution"] == "in_doubt"
    assert (await kinds(desk, item)).count("grant.in_doubt") == 1
    assert [item["id"] for item in await desk.items("is:in-doubt")] == [item["id"]]
    assert desk.ran == ["bob"]


@both_databases
async def test_control_finished_call_is_not_in_doubt(desk: Desk) -> None:
    """The control: the same run, not stopped."""
    thread, item = await begun(desk)
    Path(f"{desk.log}.go").touch()
    await desk.settled(thread)
    assert (await get(desk, item))["execution"] == "done"
    assert await desk.items("is:in-doubt") == []


class Consumption:
    """Every consumption of a grant waits behind its commit, until `go` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.committed, self.go = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[Any] | None = None
        arun = ServerKeeper.arun

        def slow(keeper: ServerKeeper, function: Callable[[Tx], Any]) -> Any:
            return self._slow(arun(keeper, function), asyncio.current_task())

        monkeypatch.setattr(ServerKeeper, "arun", slow)

    async def _slow(self, running: Awaitable[Any], task: asyncio.Task[Any] | None) -> Any:
        result = await running
        if isinstance(result, Passage) and result.passing is Passing.GO:
            self._task = task
            self.committed.set()
            await self.go.wait()
        return result

    async def is_cancelled(self) -> bool:
        """Whether the task that is about to make the call was told to stop."""
        return self._task is not None and self._task.cancelling() > 0


@both_databases
@pytest.mark.promise("P2")
async def test_run_stopped_before_its_call_was_made_leaves_nothing_in_doubt(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The grant was consumed, and the tool was not entered. The call can be approved again, and is made once."""
    consumption = Consumption(monkeypatch)
    thread = await desk.start("ours", CALL)
    [item] = await desk.items()
    await desk.decide(item)
    await asyncio.wait_for(consumption.committed.wait(), 30)
    cancelling = asyncio.create_task(cancel(desk, thread))
    await until(consumption.is_cancelled)
    consumption.go.set()
    await cancelling
    assert (desk.ran, await desk.items("is:in-doubt")) == ([], [])
    assert (await get(desk, item))["execution"] == "granted"
    assert (await kinds(desk, item))[-2:] == ["grant.started", "grant.granted"]
    [again] = await desk.items()
    assert again["doubts"] == []
    Path(f"{desk.log}.go").touch()
    assert (await approve(desk, again)).status_code == 200
    assert (await desk.settled(thread))["status"] == "idle"
    assert desk.ran == ["bob"]


@both_databases
@pytest.mark.promise("P2")
async def test_call_that_a_shutdown_left_unmade_is_made_after_the_restart(
    database: str, tmp_path: Path, migrated_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without another question: nothing is in doubt."""
    log, before = tmp_path / "effects", AsyncExitStack()
    settings: dict[str, Any] = {"config": CONFIG, "database": database, "run_patience": 0.1}
    house = await Builder(tmp_path, migrated_file, before)(**settings)
    agent, ana = await house.key(), await house.person("ana")
    desk = Desk(house, house.client(agent), house.client(ana), log)
    with monkeypatch.context() as patched:
        consumption = Consumption(patched)
        thread = await desk.start("ours", CALL)
        [item] = await desk.items()
        await desk.decide(item)
        await asyncio.wait_for(consumption.committed.wait(), 30)
        closing = asyncio.create_task(before.aclose())
        await until(consumption.is_cancelled)
        consumption.go.set()
        await closing
    assert desk.ran == []
    Path(f"{log}.go").touch()
    async with AsyncExitStack() as after:
        house = await Builder(tmp_path, migrated_file, after)(**settings)
        desk = Desk(house, house.client(agent), house.client(ana), log)
        assert (await desk.settled(thread))["status"] == "idle"
        assert desk.ran == ["bob"]
        assert (await get(desk, item))["execution"] == "done"
        assert "grant.in_doubt" not in await kinds(desk, item)


@both_databases
@pytest.mark.parametrize("desk", ["asking"], indirect=True)
async def test_rolled_back_answer_is_asked_again(desk: Desk) -> None:
    """The question is there again, as a new item that follows the one that was answered."""
    question = {"question": {"ask": "may I?"}, "log": str(desk.log)}
    thread = await desk.run("waiting", question)
    [item] = await desk.items()
    answer = {"revision": item["revision"], "hash": item["hash"], "verb": "respond", "message": "yes"}
    response = await desk.ana.post(f"/api/inbox/items/{item['id']}/decision", json=answer)
    assert response.status_code == 200, response.text
    await until(lambda: seen(desk))
    assert await desk.items() == []
    await cancel(desk, thread, "rollback")
    [again] = await desk.items()
    assert (again["follows"], again["source"]["interrupt_id"]) == (item["id"], item["source"]["interrupt_id"])
    assert (await desk.agent.get(f"/threads/{thread}")).json()["status"] == "interrupted"
    Path(f"{desk.log}.go").touch()
    response = await desk.ana.post(
        f"/api/inbox/items/{again['id']}/decision", json={**answer, "hash": again["hash"], "message": "now"}
    )
    assert response.status_code == 200, response.text
    done = await desk.settled(thread)
    assert (done["status"], done["values"]["answer"]) == ("idle", "now")


@both_databases
@pytest.mark.parametrize("desk", ["asking"], indirect=True)
async def test_control_answer_of_a_stopped_run_is_kept(desk: Desk) -> None:
    """The control: its answer has arrived and stays."""
    thread = await desk.run("waiting", {"question": {"ask": "may I?"}, "log": str(desk.log)})
    [item] = await desk.items()
    answer = {"revision": item["revision"], "hash": item["hash"], "verb": "respond", "message": "yes"}
    await desk.ana.post(f"/api/inbox/items/{item['id']}/decision", json=answer)
    await until(lambda: seen(desk))
    await cancel(desk, thread)
    assert await desk.items() == []
    assert (await desk.agent.get(f"/threads/{thread}")).json()["values"]["answer"] == "yes"


@both_databases
@pytest.mark.promise("P2")
async def test_agent_cannot_remove_a_thread_with_a_call_in_doubt(desk: Desk) -> None:
    thread, item = await begun(desk)
    await cancel(desk, thread)
    refusal = (await desk.agent.delete(f"/threads/{thread}")).json()
    assert (refusal["code"], refusal["items"]) == ("thread_waits", [item["id"]])
    pruned = await desk.agent.post("/threads/prune", json={"thread_ids": [thread], "strategy": "delete"})
    assert pruned.json() == {"pruned_count": 0}
    assert (await desk.agent.get(f"/threads/{thread}")).status_code == 200
    assert (await kinds(desk, item))[-1] == "item.attempt_refused"
    assert (await desk.ana.delete(f"/threads/{thread}")).status_code == 204, "who may decide may do that"
    assert (await get(desk, item))["execution"] == "in_doubt", "and has still to say what is true"
    path = f"/api/inbox/items/{item['id']}/in-doubt"
    problem(await desk.ana.post(path, json={"outcome": "run_again"}), 409, "conflict")
    assert (await desk.ana.post(path, json={"outcome": "done"})).status_code == 200
    assert (await get(desk, item))["execution"] == "done"


async def test_agent_cannot_remove_an_assistant_whose_thread_has_a_call_in_doubt(desk: Desk) -> None:
    made = (await desk.agent.post("/assistants", json={"graph_id": "ours"})).json()["assistant_id"]
    thread = await desk.start(made, CALL)
    [item] = await desk.items()
    await desk.decide(item)
    await until(lambda: seen(desk))
    await cancel(desk, thread)
    path = f"/assistants/{made}?delete_threads=true"
    response = await desk.agent.delete(path)
    assert (response.status_code, response.json().get("items")) == (409, [item["id"]])
    assert (await desk.agent.get(f"/threads/{thread}")).status_code == 200
    assert (await desk.ana.delete(f"/threads/{thread}")).status_code == 204
    assert (await desk.agent.delete(path)).status_code == 204


@both_databases
@pytest.mark.promise("P2")
async def test_control_agent_removes_a_thread_without_a_doubt(desk: Desk) -> None:
    """The control."""
    thread, _ = await begun(desk)
    Path(f"{desk.log}.go").touch()
    await desk.settled(thread)
    assert (await desk.agent.delete(f"/threads/{thread}")).status_code == 204


async def asked_again(desk: Desk) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """A call in doubt, and the item in which the same call is asked for once more."""
    thread, first = await begun(desk)
    await cancel(desk, thread, "rollback")
    [again] = await desk.items()
    return thread, first, again


async def approve(desk: Desk, item: dict[str, Any]) -> Any:
    body = {"revision": item["revision"], "hash": item["hash"], "verb": "approve"}
    return await desk.ana.post(f"/api/inbox/items/{item['id']}/decision", json=body)


@both_databases
@pytest.mark.promise("P2")
@pytest.mark.parametrize("outcome", ["done", "abandon"])
async def test_call_in_doubt_is_settled_before_it_is_approved_again(desk: Desk, outcome: str) -> None:
    thread, first, again = await asked_again(desk)
    assert [doubt["item_id"] for doubt in again["doubts"]] == [first["id"]], "the item says so"
    refusal = problem(await approve(desk, again), 409, "in_doubt")
    assert [doubt["item_id"] for doubt in refusal["doubts"]] == [first["id"]]
    named = {"id": again["id"], "revision": again["revision"], "hash": again["hash"]}
    bulk = {"items": [named], "verb": "approve", "dry_run": True}
    [foreseen] = (await desk.ana.post("/api/inbox/bulk", json=bulk)).json()["results"]
    assert (foreseen["ok"], foreseen["error"]["code"]) == (False, "in_doubt")
    assert desk.ran == ["bob"]
    Path(f"{desk.log}.go").touch()
    settled = await desk.ana.post(f"/api/inbox/items/{first['id']}/in-doubt", json={"outcome": outcome})
    assert settled.status_code == 200, settled.text
    assert (await get(desk, again))["doubts"] == []
    assert (await approve(desk, again)).status_code == 200
    assert (await desk.settled(thread))["status"] == "idle"
    assert desk.ran == ["bob", "bob"], "twice, and both times a person knew"


@both_databases
async def test_call_in_doubt_can_be_rejected(desk: Desk) -> None:
    thread, first, again = await asked_again(desk)
    await desk.decide(again, "reject", message="it was sent")
    assert (await desk.settled(thread))["status"] == "idle"
    assert desk.ran == ["bob"]
    assert (await get(desk, first))["execution"] == "in_doubt", "which is for a person to say"


@both_databases
async def test_control_another_call_can_be_approved_beside_one_in_doubt(desk: Desk) -> None:
    """The control: only the same tool with the same arguments is held back, also where an edit leads to it."""
    thread, _, again = await asked_again(desk)
    body = {"revision": again["revision"], "hash": again["hash"]}
    same, other = ({"to": to, "log": str(desk.log)} for to in ("bob", "eve"))
    path = f"/api/inbox/items/{again['id']}/decision"
    edit = {"key": again["actions"][0]["key"], "verb": "edit"}
    problem(await desk.ana.post(path, json={**body, "actions": [{**edit, "args": same}]}), 409, "in_doubt")
    Path(f"{desk.log}.go").touch()
    response = await desk.ana.post(path, json={**body, "actions": [{**edit, "args": other}]})
    assert response.status_code == 200, response.text
    await desk.settled(thread)
    assert desk.ran == ["bob", "eve"]


def stand(tx: Tx) -> None:
    until = tx.now() + timedelta(hours=1)
    policies.insert_approval(tx, approval_id="a", tool="hold", actor="ana", expires_at=until, uses_left=5)


@both_databases
@pytest.mark.promise("P2")
async def test_standing_approval_does_not_run_a_call_in_doubt(desk: Desk) -> None:
    thread, first = await begun(desk)
    await cancel(desk, thread)
    await desk.house.services.store.write("default", stand)
    Path(f"{desk.log}.go").touch()
    for to in ("eve", "bob"):  # another call is the control: that one is answered by it
        made = json.dumps([{"name": "hold", "args": {"to": to, "log": str(desk.log)}}])
        body = {"assistant_id": "ours", "input": {"messages": [{"role": "user", "content": made}]}}
        chosen = {**body, "multitask_strategy": "interrupt"}
        response = await desk.ana.post(f"/threads/{thread}/runs/wait", json=chosen, timeout=30)
        assert response.status_code == 200, response.text
    assert desk.ran == ["bob", "eve"]
    [again] = await desk.items()
    assert [doubt["item_id"] for doubt in again["doubts"]] == [first["id"]]
    assert "may have run already" in again["asked"]["reason"]
