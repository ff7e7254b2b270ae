"""A decision that a run carries and that has not taken effect: no program stops it, a person who may decide takes it
back, and it is taken back where its author loses the right to decide. In none of these cases is the question lost.

The server executes one run at a time, and another thread keeps its place."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import update

from assent.identity.model.access import operator
from assent.kernel.store import tables
from assent.kernel.store.tables import TENANT
from assent.kernel.store.transaction import Tx
from assent.review.threads import retraction, withdrawal
from tests.faults.arena import Arena, Json, open_arena, swept
from tests.graphs_gated.attempts import script
from tests.waiting import until

pytestmark = pytest.mark.promise("P6")

NARROW = Path(__file__).parent.parent / "graphs_narrow" / "langgraph.json"
ASKING = ("confirming", "stopping", "gated")
WAYS = ("interrupt", "rollback", "delete", "many", "pending ones")


@pytest.fixture(scope="module")
async def one_place(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Arena]:
    folder = tmp_path_factory.mktemp("narrow")
    async with open_arena(folder, module_database, config=NARROW, run_concurrency=1) as arena:
        yield arena


@pytest.fixture
async def narrow(one_place: Arena, folder: Path) -> Arena:
    """With an `ana` of its own: a test may take her rights."""
    arena = await swept(one_place, folder)
    return replace(arena, ana=arena.house.client(await arena.house.person(f"ana-{folder.name}-{uuid4().hex[:6]}")))


async def asked(arena: Arena, graph: str, client: httpx.AsyncClient | None = None) -> Json:
    thread = await arena.thread(client, visibility="shared")
    given = {"log": str(arena.log), "tag": "pay"}
    done = await arena.run(thread, graph, client, input=script(given) if graph == "gated" else given)
    assert done.status_code == 200, done.text
    return await arena.item(thread)


async def approved(arena: Arena, item: Json) -> str:
    """Decides the item, and waits for the run that carries it: it waits for its place. Returns its path."""
    respond: Json = {"actions": [{"key": "0", "verb": "respond", "message": "yes"}]}
    said = await arena.decide(item, "approve", **({} if "approve" in item["actions"][0]["allowed"] else respond))
    assert said.status_code == 200, said.text
    thread = item["source"]["thread_id"]
    found: list[str] = []

    async def carried() -> bool:
        listed = (await arena.ben.get(f"/threads/{thread}/runs", params={"status": "pending"})).json()
        sent = (await arena.ben.get("/api/deliveries")).json()["items"]
        found[:] = [run["run_id"] for run in listed]
        under_way = [row for row in sent if row["status"] in ("pending", "sending") and thread in row["target"]]
        return bool(found) and not under_way

    await until(carried, "no run carries the decision")
    return f"/threads/{thread}/runs/{found[0]}"


@asynccontextmanager
async def place_taken(arena: Arena) -> AsyncIterator[None]:
    hold = Path(f"{arena.log}.hold-{uuid4().hex[:6]}")
    thread = await arena.thread()
    await arena.run(thread, "holding", how="", input={"hold": str(hold)})

    async def started() -> bool:
        return hold.with_name(f"{hold.name}.started").exists()

    await until(started, "the place is not taken")
    try:
        yield
    finally:
        hold.with_name(f"{hold.name}.go").touch()
        await until(lambda: _is_idle(arena, thread), "the place stays taken")


async def _is_idle(arena: Arena, thread: str) -> bool:
    body: Json = (await arena.ben.get(f"/threads/{thread}")).json()
    return bool(body["status"] == "idle")


async def stop(client: httpx.AsyncClient, run: str, way: str) -> httpx.Response:
    _, _, thread, _, run_id = run.split("/")
    match way:
        case "delete":
            return await client.delete(run)
        case "many":
            return await client.post("/runs/cancel", json={"thread_id": thread, "run_ids": [run_id]})
        case "pending ones":
            return await client.post("/runs/cancel", json={"status": "pending"})
        case _:
            return await client.post(f"{run}/cancel", params={"action": way})


async def current(arena: Arena, item: Json) -> Json:
    body: Json = (await arena.ben.get(f"/api/inbox/items/{item['id']}")).json()
    return body


async def kinds(arena: Arena, item: Json) -> list[tuple[str, str]]:
    told = (await arena.ben.get(f"/api/inbox/items/{item['id']}/timeline")).json()
    return [(entry["kind"], entry["actor"]) for entry in told]


async def rests(arena: Arena, item: Json) -> Json:
    return await replace(arena, ana=arena.ben).rests(item["source"]["thread_id"])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("graph", ASKING)
async def test_no_program_stops_the_unbegun_run_of_a_decision(narrow: Arena, graph: str, way: str) -> None:
    item = await asked(narrow, graph)
    async with place_taken(narrow):
        run = await approved(narrow, item)
        for client in (narrow.other, narrow.agent):
            refused = await stop(client, run, way)
            assert refused.status_code == 403, refused.text
            assert refused.json()["items"] == [item["id"]]
            assert ("item.attempt_refused", await narrow.actor(client)) in await kinds(narrow, item)
    await rests(narrow, item)
    assert len(narrow.effects) == 1


@pytest.mark.promise("P3")
async def test_no_program_removes_the_thread_of_a_decision_whose_run_has_not_begun(narrow: Arena) -> None:
    item = await asked(narrow, "stopping")
    thread = item["source"]["thread_id"]
    async with place_taken(narrow):
        await approved(narrow, item)
        for client in (narrow.other, narrow.agent):
            refused = await client.delete(f"/threads/{thread}")
            assert refused.status_code == 403, refused.text
            pruned = await client.post("/threads/prune", json={"thread_ids": [thread], "strategy": "delete"})
            assert pruned.json() == {"pruned_count": 0}
    await rests(narrow, item)
    assert len(narrow.effects) == 1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("graph", ASKING)
async def test_a_decision_whose_run_a_person_stops_is_asked_again(narrow: Arena, graph: str, way: str) -> None:
    item = await asked(narrow, graph)
    async with place_taken(narrow):
        run = await approved(narrow, item)
        stopped = await stop(narrow.ben, run, way)
        assert stopped.status_code < 300, stopped.text
        assert (await current(narrow, item))["status"] == "PENDING"
        assert ("item.decision_stopped", await narrow.actor(narrow.ben)) in await kinds(narrow, item)
        assert (await narrow.state(item["source"]["thread_id"]))["status"] == "interrupted"
    assert narrow.effects == []
    again = await narrow.item(item["source"]["thread_id"])
    assert again["id"] == item["id"]
    async with place_taken(narrow):
        await approved(narrow, again)
    await rests(narrow, item)
    assert len(narrow.effects) == 1


@pytest.mark.parametrize("graph", ["confirming", "stopping"])
async def test_an_answer_through_the_agent_api_is_asked_again_when_its_run_is_stopped(
    narrow: Arena, graph: str
) -> None:
    item = await asked(narrow, graph)
    thread, question = item["source"]["thread_id"], item["source"]["interrupt_id"]
    body = {"input": None} if graph == "stopping" else {"command": {"resume": {question: "yes"}}}
    async with place_taken(narrow):
        given = await narrow.run(thread, graph, narrow.ana, how="", **body)
        assert given.status_code == 200, given.text
        run = f"/threads/{thread}/runs/{given.json()['run_id']}"
        assert (await stop(narrow.agent, run, "interrupt")).status_code == 403
        assert (await stop(narrow.ana, run, "interrupt")).status_code < 300
        assert (await current(narrow, item))["status"] == "PENDING"
    assert narrow.effects == []
    assert (await narrow.run(thread, graph, narrow.ana, **body)).status_code == 200
    assert len(narrow.effects) == 1


async def supersede(arena: Arena, item: Json, client: httpx.AsyncClient, strategy: str) -> httpx.Response:
    """Starts a run with other input in place of the one that carries the decision."""
    graph, given = item["source"]["graph_id"], {"log": str(arena.log), "tag": "other"}
    input = script(given) if graph == "gated" else given
    thread = item["source"]["thread_id"]
    return await arena.run(thread, graph, client, how="", input=input, multitask_strategy=strategy)


@pytest.mark.parametrize("strategy", ["interrupt", "rollback"])
@pytest.mark.parametrize("graph", ASKING)
async def test_no_program_supersedes_the_unbegun_run_of_a_decision(narrow: Arena, graph: str, strategy: str) -> None:
    item = await asked(narrow, graph)
    async with place_taken(narrow):
        await approved(narrow, item)
        for client in (narrow.other, narrow.agent):
            refused = await supersede(narrow, item, client, strategy)
            assert refused.status_code == 403, refused.text
            assert ("item.attempt_refused", await narrow.actor(client)) in await kinds(narrow, item)
    await rests(narrow, item)
    assert len(narrow.effects) == 1


@pytest.mark.parametrize("strategy", ["interrupt", "rollback"])
@pytest.mark.parametrize("graph", ASKING)
async def test_person_who_supersedes_the_run_of_a_decision_is_named_and_the_thread_asks_anew(
    narrow: Arena, graph: str, strategy: str
) -> None:
    item = await asked(narrow, graph)
    async with place_taken(narrow):
        await approved(narrow, item)
        done = await supersede(narrow, item, narrow.ben, strategy)
        assert done.status_code == 200, done.text
        ben, told = await narrow.actor(narrow.ben), await kinds(narrow, item)
        assert told[-2:] == [("item.decision_stopped", ben), ("item.cancelled", ben)]
        assert (await current(narrow, item))["status"] == "CANCELLED"
    await rests(narrow, item)
    assert narrow.effects == []
    assert len(await narrow.items(item["source"]["thread_id"])) == 1


@pytest.mark.parametrize("graph", ["confirming", "stopping"])
async def test_control_without_the_defence_a_superseding_run_loses_the_decision(
    narrow: Arena, graph: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(withdrawal, "stop", lambda *_: None)
    item = await asked(narrow, graph)
    async with place_taken(narrow):
        await approved(narrow, item)
        assert (await supersede(narrow, item, narrow.agent, "interrupt")).status_code == 200
    await rests(narrow, item)
    assert narrow.effects == []
    assert (await current(narrow, item))["status"] == "APPROVED"


def _hand_back(tx: Tx, run_id: str) -> None:
    """The row as a worker leaves it that began the run and was stopped before the first step."""
    this = update(tables.runs).where(tables.runs.c.tenant_id == TENANT, tables.runs.c.run_id == run_id)
    tx.change(this.values(attempt=1, started_at=tx.now()))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("graph", ["confirming", "gated"])
async def test_no_program_stops_the_run_of_a_decision_that_a_worker_handed_back(
    narrow: Arena, graph: str, way: str
) -> None:
    item = await asked(narrow, graph)
    async with place_taken(narrow):
        run = await approved(narrow, item)
        await narrow.house.services.store.write("default", _hand_back, run.rpartition("/")[2])
        for client in (narrow.other, narrow.agent):
            refused = await stop(client, run, way)
            assert refused.status_code == 403, refused.text
    await rests(narrow, item)
    assert len(narrow.effects) == 1


async def test_control_without_the_defence_a_program_removes_the_decision_that_a_worker_handed_back(
    narrow: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(withdrawal, "require_stoppable", lambda *_: None)
    item = await asked(narrow, "confirming")
    async with place_taken(narrow):
        run = await approved(narrow, item)
        await narrow.house.services.store.write("default", _hand_back, run.rpartition("/")[2])
        assert (await stop(narrow.other, run, "delete")).status_code < 300
    await rests(narrow, item)
    assert narrow.effects == []


@pytest.mark.parametrize("way", ["delete", "rollback"])
@pytest.mark.parametrize("graph", ASKING)
async def test_decision_is_asked_again_when_a_person_removes_its_run_that_a_worker_handed_back(
    narrow: Arena, graph: str, way: str
) -> None:
    item = await asked(narrow, graph)
    thread = item["source"]["thread_id"]
    async with place_taken(narrow):
        run = await approved(narrow, item)
        await narrow.house.services.store.write("default", _hand_back, run.rpartition("/")[2])
        assert (await stop(narrow.ben, run, way)).status_code < 300

    async def asks_again() -> bool:
        return bool(await narrow.items(thread))

    await until(asks_again, "the question is lost")
    assert narrow.effects == []
    assert (await narrow.ben.get(run)).status_code == 404


async def test_control_a_program_still_stops_runs_that_carry_no_decision(narrow: Arena) -> None:
    thread = await narrow.thread()
    async with place_taken(narrow):
        waiting = await narrow.run(thread, "stopping", how="", input={"log": str(narrow.log), "tag": "pay"})
        run = f"/threads/{thread}/runs/{waiting.json()['run_id']}"
        assert (await stop(narrow.agent, run, "interrupt")).status_code < 300


async def test_control_without_the_defence_another_program_loses_the_decision(
    narrow: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(withdrawal, "stop", lambda *_: None)
    item = await asked(narrow, "confirming")
    async with place_taken(narrow):
        run = await approved(narrow, item)
        assert (await stop(narrow.other, run, "interrupt")).status_code < 300
    await rests(narrow, item)
    assert narrow.effects == []
    assert await narrow.items(item["source"]["thread_id"]) == []


async def disable(arena: Arena) -> None:
    actor = await arena.actor(arena.ana)
    people = (await arena.house.services.users.list(operator(), limit=100)).items
    [ana] = [user for user in people if user.actor == actor]
    await arena.house.services.users.change(operator(), ana.name, disabled=True)
    arena.house.forget()


@pytest.mark.parametrize("graph", ASKING)
async def test_an_approval_whose_run_has_not_begun_is_retracted_with_the_right_to_give_it(
    narrow: Arena, graph: str
) -> None:
    item = await asked(narrow, graph)
    async with place_taken(narrow):
        await approved(narrow, item)
        await disable(narrow)
        assert (await current(narrow, item))["status"] == "PENDING"
    await rests(narrow, item)
    assert narrow.effects == []
    assert [kind for kind, _ in await kinds(narrow, item)].count("item.approval_retracted") == 1
    other = replace(narrow, ana=narrow.ben)
    async with place_taken(other):
        await approved(other, await current(narrow, item))
    await rests(narrow, item)
    assert len(narrow.effects) == 1


@pytest.mark.parametrize("graph", ["confirming", "stopping"])
async def test_control_without_the_defence_the_approval_of_a_disabled_person_takes_effect(
    narrow: Arena, graph: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retraction, "delivering_run", lambda *_: None)
    item = await asked(narrow, graph)
    async with place_taken(narrow):
        await approved(narrow, item)
        await disable(narrow)
    await rests(narrow, item)
    assert len(narrow.effects) == 1
