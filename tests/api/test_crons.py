"""Crons: fired at their due times, with the rights that their author has then, and seen by those who may."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from assent.errors import Forbidden
from assent.identity.mandates import Mandates
from assent.identity.model.access import DEFAULT_TENANT, Kind, Role, operator
from assent.kernel.store.tables import TENANT, runs
from assent.kernel.store.transaction import Tx
from assent.runs.crons.firing import Firing
from assent.settings import Mode
from assent.threads.rows import crons
from tests.api.house import Builder, House
from tests.waiting import until

STORE = Path(__file__).parents[1] / "graphs_store" / "langgraph.json"
GRAPHS = Path(__file__).parents[1] / "graphs" / "langgraph.json"
CRONS = "/runs/crons"
NOTHING = "0197c5a0-0000-7000-8000-000000000000"
HOURLY = {"assistant_id": "echo", "schedule": "0 * * * *", "input": {"text": "x"}, "on_run_completed": "keep"}
Json = dict[str, Any]

_RUNS = select(runs).where(runs.c.tenant_id == TENANT).order_by(runs.c.created_at)


@pytest.fixture
async def served(build_on_both: Builder) -> House:
    return await quiet(await build_on_both(Mode.SERVE, config=GRAPHS))


async def quiet(house: House) -> House:
    """Crons are fired when a test says so."""
    await house.engine.firing.close()
    return house


async def create(client: httpx.AsyncClient, thread_id: str | None = None, **more: Any) -> Json:
    path = f"/threads/{thread_id}/runs/crons" if thread_id else CRONS
    response = await client.post(path, json={**HOURLY, **more})
    assert response.status_code == 200, response.text
    made: Json = response.json()
    return made


async def get(client: httpx.AsyncClient, made: Json) -> Json:
    response = await client.get(f"{CRONS}/{made['cron_id']}")
    assert response.status_code == 200, response.text
    present: Json = response.json()
    return present


async def change(client: httpx.AsyncClient, made: Json, **wanted: Any) -> httpx.Response:
    return await client.patch(f"{CRONS}/{made['cron_id']}", json=wanted)


async def listed(client: httpx.AsyncClient, **wanted: Any) -> list[str]:
    response = await client.post(f"{CRONS}/search", json=wanted)
    assert response.status_code == 200, response.text
    return [cron["cron_id"] for cron in response.json()]


async def fire(house: House, after: timedelta = timedelta(hours=1)) -> None:
    """Lets the time pass, and whatever is due then is fired."""
    house.pass_time(after)
    await house.engine.firing.look()


async def started(house: House, tenant: str = DEFAULT_TENANT) -> list[Any]:
    def rows(tx: Tx) -> list[Any]:
        return list(tx.all(_RUNS))

    return await house.services.store.read(tenant, rows)


async def thread_of(client: httpx.AsyncClient, **more: Any) -> str:
    thread: str = (await client.post("/threads", json=more)).json()["thread_id"]
    return thread


async def test_due_cron_starts_a_run_of_its_author(served: House) -> None:
    agent = served.client(await served.key())
    made = await create(agent, metadata={"team": "red"}, config={"tags": ["t"]}, on_run_completed="keep")
    assert made["next_run_date"] > made["created_at"]
    assert made["payload"]["config"] == {"tags": ["t"], "configurable": {"cron_id": made["cron_id"]}}
    await fire(served)
    [run] = await started(served)
    assert (run.actor, run.metadata["cron_id"], run.metadata["team"]) == (made["owner"], made["cron_id"], "red")
    assert run.kwargs["config"]["configurable"]["cron_id"] == made["cron_id"]
    assert (run.kwargs["input"], run.kwargs["config"]["tags"]) == ({"text": "x"}, ["t"])
    present = await get(agent, made)
    assert (present["last_run_id"], present["missed"], present["problem"]) == (run.run_id, 0, None)
    assert run.metadata["cron_due"] == present["last_run_date"] == made["next_run_date"]
    assert present["next_run_date"] > made["next_run_date"]
    await served.engine.firing.look()
    assert len(await started(served)) == 1
    joined = await agent.get(f"/threads/{run.thread_id}/runs/{run.run_id}/join")
    assert joined.json()["text"] == "x"
    await fire(served)
    assert len({run.thread_id for run in await started(served)}) == 2


async def test_null_in_a_change_is_the_same_as_absent(served: House) -> None:
    """Clients send null for what they do not change: a cron must not lose its input by that."""
    agent = served.client(await served.key())
    made = await create(agent, metadata={"team": "red"}, webhook="https://hooks.example/x", on_run_completed="keep")
    nothing = dict.fromkeys(("schedule", "timezone", "input", "metadata", "config", "webhook", "on_run_completed"))
    changed = (await change(agent, made, enabled=True, **nothing)).json()
    assert changed == {**made, "payload": {**made["payload"], "enabled": True}, "updated_at": changed["updated_at"]}
    assert (await change(agent, made, **nothing)).status_code == 400


async def test_thread_without_a_keeper_is_deleted_after_the_run(served: House) -> None:
    agent = served.client(await served.key())
    made = await create(agent, on_run_completed="delete")
    assert (made["on_run_completed"], made["thread_id"]) == ("delete", None)
    await fire(served)
    assert (await get(agent, made))["last_run_id"]

    async def nothing_is_left() -> bool:
        threads = (await agent.post("/threads/count", json={})).json()
        return bool(threads == 0) and await started(served) == []

    await until(nothing_is_left, "the thread stays")


async def test_cron_of_a_thread_continues_it(served: House) -> None:
    agent = served.client(await served.key())
    thread = await thread_of(agent)
    made = await create(agent, thread, multitask_strategy="enqueue", on_run_completed="keep")
    assert (made["thread_id"], made["on_run_completed"]) == (thread, None)
    for _ in range(2):
        await fire(served)
    assert [run.thread_id for run in await started(served)] == [thread, thread]
    assert (await agent.delete(f"/threads/{thread}")).status_code == 204
    assert (await agent.get(f"{CRONS}/{made['cron_id']}")).status_code == 404


async def test_run_that_is_refused_is_reported_as_missed(served: House) -> None:
    """The run goes through the admission of its thread, as any other."""
    agent = served.client(await served.key())
    thread = await thread_of(agent)
    body = {"assistant_id": "twice", "input": {"text": "x"}}
    assert (await agent.post(f"/threads/{thread}/runs/wait", json=body)).status_code == 200
    made = await create(agent, thread)
    await fire(served)
    present = await get(agent, made)
    assert (present["missed"], present["last_run_id"]) == (1, None)
    assert "question" in present["problem"] or "waits" in present["problem"], present["problem"]
    assert present["next_run_date"] > made["next_run_date"]
    await fire(served)
    assert (await get(agent, made))["missed"] == 2
    assert await kinds(served, made) == ["cron.created", "cron.missed"]  # the same reason is told once


async def kinds(house: House, made: Json) -> list[str]:
    admin = await house.admin()
    events = (await admin.get("/api/audit/events")).json()["items"]
    told = [event for event in events if event["subject"] == f"cron:{made['cron_id']}"]
    return [event["kind"] for event in sorted(told, key=lambda event: event["seq"])]


@pytest.mark.parametrize(("catch_up", "fired", "missed"), [("latest", 1, 4), ("skip", 0, 5)])
async def test_catching_up_after_downtime(build_on_both: Builder, catch_up: str, fired: int, missed: int) -> None:
    house = await quiet(await build_on_both(Mode.SERVE, config=GRAPHS, cron_catch_up=catch_up))
    agent = house.client(await house.key())
    made = await create(agent, schedule="0 * * * *")
    due = datetime.fromisoformat(made["next_run_date"])
    until_due = due - datetime.fromisoformat(made["created_at"])
    await fire(house, until_due + timedelta(hours=4, minutes=30))  # four and a half hours after it was due
    present = await get(agent, made)
    assert (len(await started(house)), present["missed"]) == (fired, missed)
    assert "no server was there" in present["problem"]
    assert datetime.fromisoformat(present["next_run_date"]) == due + timedelta(hours=5)
    await fire(house, timedelta(minutes=30, seconds=10))
    present = await get(agent, made)
    assert (len(await started(house)), present["missed"]) == (fired + 1, missed)
    assert present["problem"] is None


async def test_disabled_and_ended_crons_do_not_fire(served: House) -> None:
    agent = served.client(await served.key())
    disabled = await create(agent, enabled=False)
    soon = datetime.fromisoformat(disabled["next_run_date"]) + timedelta(minutes=1)
    ending = await create(agent, end_time=soon.isoformat())
    over = await create(agent, end_time="2020-01-01T00:00:00Z")
    assert over["next_run_date"] is None
    for _ in range(3):
        await fire(served)
    [run] = await started(served)
    assert run.metadata["cron_id"] == ending["cron_id"]
    assert (await get(agent, ending))["next_run_date"] is None
    enabled = (await change(agent, disabled, enabled=True)).json()
    assert (enabled["missed"], enabled["enabled"]) == (0, True)
    assert enabled["next_run_date"] > disabled["next_run_date"]
    assert (await change(agent, ending, end_time=None)).json()["next_run_date"] == enabled["next_run_date"]
    await fire(served)
    assert len(await started(served)) == 3


async def test_changes_replace_fields_and_keep_the_rest(served: House) -> None:
    agent = served.client(await served.key())
    made = await create(agent, metadata={"a": 1}, config={"configurable": {"model": "x"}})
    changed = (await change(agent, made, schedule="30 9 * * *", timezone="America/New_York")).json()
    assert (changed["schedule"], changed["timezone"]) == ("30 9 * * *", "America/New_York")
    assert changed["next_run_date"][11:16] in ("13:30", "14:30")
    changed = (await change(agent, made, metadata={"b": 2}, input={"text": "y"}, on_run_completed="keep")).json()
    assert (changed["metadata"], changed["on_run_completed"]) == ({"a": 1, "b": 2}, "keep")
    assert changed["payload"]["input"] == {"text": "y"}
    assert changed["payload"]["config"]["configurable"] == {"model": "x", "cron_id": made["cron_id"]}
    assert (await change(agent, made, assistant_id="slow")).json()["assistant_id"] == made["assistant_id"]
    assert (await get(agent, made))["payload"]["assistant_id"] == made["assistant_id"]
    assert (await agent.delete(f"{CRONS}/{made['cron_id']}")).status_code == 204
    assert (await agent.delete(f"{CRONS}/{made['cron_id']}")).status_code == 404


@pytest.mark.parametrize(
    ("change", "status", "text"),
    [
        ({"schedule": "bad"}, 422, "Invalid cron schedule: 'bad'"),
        ({"schedule": "0 0 30 2 *"}, 422, "never due"),
        ({"schedule": None}, 422, "schedule"),
        ({"timezone": "Mars/X"}, 422, "Invalid timezone: 'Mars/X'"),
        ({"end_time": "tomorrow"}, 422, "end_time"),
        ({"assistant_id": "nope"}, 404, "Assistant 'nope' not found"),
        ({"assistant_id": NOTHING}, 404, f"Assistant '{NOTHING}' not found"),
        ({"on_run_completed": "burn"}, 422, "on_run_completed"),
        ({"enabled": "yes"}, 422, "enabled"),
        ({"metadata": []}, 422, "metadata"),
        ({"stream_mode": "bad"}, 422, "stream_mode"),
        ({"multitask_strategy": "bad"}, 422, "multitask_strategy"),
        ({"webhook": "ftp://example.com"}, 422, ""),
        ({"context": {"a": 1}, "config": {"configurable": {"a": 1}}}, 400, "configurable and context"),
        ({"metadata": {"a": "x" * 300_000}}, 413, "max_document_bytes"),
    ],
)
async def test_invalid_crons_are_refused(build: Builder, change: Json, status: int, text: str) -> None:
    house = await build(Mode.SERVE, config=GRAPHS)
    response = await house.client(await house.key()).post(CRONS, json={**HOURLY, **change})
    assert (response.status_code, text in response.text) == (status, True), response.text


async def test_wrong_ids_and_empty_changes_are_refused(served: House) -> None:
    agent = served.client(await served.key())
    made = await create(agent)
    answers = [
        (await agent.get(f"{CRONS}/x"), 422),
        (await agent.get(f"{CRONS}/{NOTHING}"), 404),
        (await agent.patch(f"{CRONS}/{NOTHING}", json={"enabled": False}), 404),
        (await change(agent, made), 400),
        (await change(agent, made, schedule="x"), 422),
        (await agent.post(f"/threads/{NOTHING}/runs/crons", json=HOURLY), 404),
        (await agent.post("/threads/x/runs/crons", json=HOURLY), 422),
        (await agent.post(f"{CRONS}/search", json={"assistant_id": "echo"}), 422),
        (await agent.post(f"{CRONS}/search", json={"sort_by": "x"}), 422),
        (await agent.post(f"{CRONS}/count", json={"thread_id": "x"}), 422),
    ]
    assert [response.status_code for response, _ in answers] == [status for _, status in answers]


async def test_crons_are_searched_sorted_and_counted(served: House) -> None:
    agent = served.client(await served.key())
    thread = await thread_of(agent)
    late = await create(agent, schedule="0 0 1 1 *", metadata={"kind": "yearly"})
    soon = await create(agent, schedule="* * * * *", enabled=False)
    bound = await create(agent, thread)
    assert await listed(agent) == [made["cron_id"] for made in (bound, soon, late)]
    assert await listed(agent, sort_by="next_run_date", sort_order="asc", limit=1) == [soon["cron_id"]]
    assert await listed(agent, metadata={"kind": "yearly"}) == [late["cron_id"]]
    assert await listed(agent, thread_id=thread) == [bound["cron_id"]]
    assert await listed(agent, enabled=False) == [soon["cron_id"]]
    assert await listed(agent, assistant_id=NOTHING) == []
    assert await listed(agent, limit=1, offset=2) == [late["cron_id"]]
    page = await agent.post(f"{CRONS}/search", json={"limit": 2, "select": ["schedule"]})
    assert page.json() == [{"schedule": HOURLY["schedule"]}, {"schedule": "* * * * *"}]
    assert (page.headers["x-pagination-total"], page.headers["x-pagination-next"]) == ("3", "2")
    assert (await agent.post(f"{CRONS}/count", json={})).json() == 3
    assert (await agent.post(f"{CRONS}/count", json={"thread_id": thread})).json() == 1


async def test_agents_and_tenants_do_not_see_crons_of_others(served: House) -> None:
    owner, other = served.client(await served.key()), served.client(await served.key())
    stranger = served.client(await served.person("eve", Role.ADMIN, tenant="other"))
    viewer = served.client(await served.person("val", Role.VIEWER))
    made = await create(owner)
    for caller in (other, stranger):
        assert await listed(caller) == []
        assert (await caller.post(f"{CRONS}/count", json={})).json() == 0
        assert (await caller.get(f"{CRONS}/{made['cron_id']}")).status_code == 404
        assert (await change(caller, made, enabled=False)).status_code == 404
        assert (await caller.delete(f"{CRONS}/{made['cron_id']}")).status_code == 404
    thread = await thread_of(owner)
    assert (await other.post(f"/threads/{thread}/runs/crons", json=HOURLY)).status_code == 404
    assert (await viewer.post(CRONS, json=HOURLY)).status_code == 403
    assert (await viewer.post(f"{CRONS}/search", json={})).status_code == 403
    assert await listed(owner) == [made["cron_id"]]


async def test_people_stop_crons_of_agents_but_do_not_change_what_they_run(served: House) -> None:
    agent = served.client(await served.key())
    person = served.client(await served.person("ana"))
    made = await create(agent)
    assert await listed(person) == [made["cron_id"]]
    for wanted in ({"input": {"text": "evil"}}, {"schedule": "* * * * *"}, {"enabled": False, "config": {}}):
        refused = await change(person, made, **wanted)
        assert (refused.status_code, "owner" in refused.json()["detail"]) == (403, True)
    assert (await change(person, made, enabled=False)).status_code == 200
    assert (await change(person, made, end_time="2030-01-01T00:00:00Z")).status_code == 200
    assert (await change(person, made, enabled=True)).status_code == 403
    assert (await change(agent, made, enabled=True)).status_code == 200
    await fire(served)
    [run] = await started(served)
    assert (run.actor, run.kwargs["input"]) == (made["owner"], {"text": "x"})
    assert (await person.delete(f"{CRONS}/{made['cron_id']}")).status_code == 204


async def test_cron_of_a_revoked_key_does_not_fire_and_says_why(served: House) -> None:
    created = await served.services.keys.create(operator(), kind=Kind.AGENT, name="a", scopes=())
    agent = served.client(created.secret)
    made, person = await create(agent), served.client(await served.person("ana"))
    await served.services.keys.revoke(operator(), created.key.id)
    await fire(served)
    assert await started(served) == []
    present = await get(person, made)
    assert (present["missed"], present["problem"]) == (1, "the API key of its author was revoked")


async def test_control_cron_of_a_revoked_key_fires_where_nobody_looks(
    served: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = await served.services.keys.create(operator(), kind=Kind.AGENT, name="a", scopes=())
    await create(served.client(created.secret))
    await served.services.keys.revoke(operator(), created.key.id)
    firing = served.engine.firing
    monkeypatch.setattr(firing._mandates, "holder", lambda tx, mandate: operator(tx.tenant))
    await fire(served)
    assert len(await started(served)) == 1


async def test_cron_of_a_rotated_key_goes_on(served: House) -> None:
    created = await served.services.keys.create(operator(), kind=Kind.AGENT, name="a", scopes=())
    made = await create(served.client(created.secret))
    rotated = await served.services.keys.rotate(operator(), created.key.id, overlap=timedelta(minutes=1))
    await fire(served)
    [run] = await started(served)
    assert run.actor == made["owner"]
    agent = served.client(rotated.secret)
    assert (await get(agent, made))["missed"] == 0


async def test_cron_of_an_expired_key_does_not_fire(served: House) -> None:
    created = await served.services.keys.create(
        operator(), kind=Kind.AGENT, name="a", scopes=(), lifetime=timedelta(minutes=1)
    )
    made, person = await create(served.client(created.secret)), served.client(await served.person("ana"))
    await fire(served)
    assert await started(served) == []
    assert (await get(person, made))["problem"] == "the API key of its author has expired"


async def test_cron_of_a_disabled_person_does_not_fire(served: House) -> None:
    ben, ana = await served.signed_in("ben"), served.client(await served.person("ana"))
    response = await ben.post(CRONS, json=HOURLY)
    made = response.json()
    await fire(served)
    [run] = await started(served)
    assert run.actor == made["owner"]
    await served.services.users.change(operator(), "ben", role=Role.VIEWER)
    await fire(served)
    assert (await get(ana, made))["problem"] == "its author may no longer start runs"
    await served.services.users.change(operator(), "ben", disabled=True)
    await fire(served)
    assert (await get(ana, made))["problem"] == "its author was disabled"
    assert len(await started(served)) == 1


async def test_cron_of_a_caller_without_a_key_fires_only_where_such_are_accepted(build: Builder) -> None:
    dev = await quiet(await build(Mode.DEV, config=GRAPHS))
    made = await create(dev.client())
    await fire(dev)
    assert [run.actor for run in await started(dev)] == [made["owner"]]
    serving = Firing(dev.services.store, dev.engine.runs, Mandates(keyless=False))
    dev.pass_time(timedelta(hours=1))
    await serving.look()
    assert len(await started(dev)) == 1
    assert "had no key" in (await get(dev.client(), made))["problem"]


async def test_number_of_crons_is_limited(build_on_both: Builder) -> None:
    house = await build_on_both(Mode.SERVE, config=GRAPHS, quota_crons=2)
    agent, other = house.client(await house.key()), house.client(await house.key(tenant="other"))
    for _ in range(2):
        await create(agent)
    refused = await agent.post(CRONS, json=HOURLY)
    assert (refused.status_code, refused.json()["quota"]) == (429, "crons")
    await create(other)


async def test_deleted_assistant_has_no_crons(served: House) -> None:
    agent = served.client(await served.key())
    assistant = (await agent.post("/assistants", json={"graph_id": "echo"})).json()["assistant_id"]
    made = await create(agent, assistant_id=assistant)
    assert await listed(agent, assistant_id=assistant) == [made["cron_id"]]
    assert (await agent.delete(f"/assistants/{assistant}")).status_code == 204
    assert await listed(agent) == []


async def test_unexpected_errors_are_reported_and_do_not_stop_other_crons(
    served: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    agent = served.client(await served.key())
    broken, fine = await create(agent, metadata={"breaks": True}), await create(agent)
    create_if = served.engine.runs.create_if

    async def sometimes(caller: Any, thread_id: Any, request: Any, claim: Any) -> Any:
        if request.metadata.get("breaks"):
            raise RuntimeError("not foreseen")
        return await create_if(caller, thread_id, request, claim)

    monkeypatch.setattr(served.engine.runs, "create_if", sometimes)
    await fire(served)
    assert (await get(agent, fine))["last_run_id"]
    present = await get(agent, broken)
    assert (present["missed"], "log has the reason" in present["problem"]) == (1, True)


async def test_refusal_between_the_check_and_the_start_counts(served: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rights are checked again in the transaction of the run."""
    agent = served.client(await served.key())
    made = await create(agent)
    holder, asked = served.engine.firing._mandates.holder, []

    def revoked_meanwhile(tx: Tx, mandate: Json) -> Any:
        asked.append(mandate)
        if len(asked) > 1:
            raise Forbidden("revoked meanwhile")
        return holder(tx, mandate)

    monkeypatch.setattr(served.engine.firing._mandates, "holder", revoked_meanwhile)
    await fire(served)
    assert await started(served) == []
    assert (await get(agent, made))["problem"] == "revoked meanwhile"


async def test_handlers_decide_about_crons_of_their_users(build_on_both: Builder) -> None:
    house = await quiet(await build_on_both(Mode.SERVE, config=STORE))
    users = {name: house.client(headers={"authorization": f"Bearer open:{name}"}) for name in ("ada", "bob")}
    denied = house.client(headers={"authorization": "Bearer deny:ada"})
    body = {**HOURLY, "assistant_id": "remembering", "input": {}}
    made = (await users["ada"].post(CRONS, json=body)).json()
    assert (made["metadata"], made["user_id"]) == ({"owner": "ada"}, "ada")
    assert (await denied.post(CRONS, json=body)).status_code == 403
    assert await listed(users["ada"]) == [made["cron_id"]]
    assert await listed(users["bob"]) == []
    assert (await users["bob"].get(f"{CRONS}/{made['cron_id']}")).status_code == 404
    assert (await change(users["bob"], made, enabled=False)).status_code == 404
    assert (await change(users["ada"], made, input={"put": {"by": "ada"}})).status_code == 200
    await fire(house)
    [run] = await started(house)
    assert run.kwargs["config"]["configurable"]["langgraph_auth_user"]["identity"] == "ada"


async def test_cron_of_a_user_of_a_removed_auth_file_does_not_fire(build: Builder) -> None:
    house = await quiet(await build(Mode.SERVE, config=STORE))
    ada = house.client(headers={"authorization": "Bearer open:ada"})
    made = (await ada.post(CRONS, json={**HOURLY, "assistant_id": "remembering"})).json()
    house.pass_time(timedelta(hours=1))
    await Firing(house.services.store, house.engine.runs, Mandates(handlers=False)).look()
    assert await started(house) == []
    assert "auth file" in (await get(ada, made))["problem"]


async def test_two_processes_fire_a_cron_once(build_on_both: Builder) -> None:
    house = await quiet(await build_on_both(Mode.SERVE, config=GRAPHS))
    assert await race(house, monkeypatch=None) == 0


async def test_control_without_the_lock_both_fire_it(build_on_both: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    house = await quiet(await build_on_both(Mode.SERVE, config=GRAPHS))
    assert await race(house, monkeypatch=monkeypatch) > 0


async def race(house: House, monkeypatch: pytest.MonkeyPatch | None) -> int:
    """Both have seen that the crons are due before one of them fires; the number of runs too many."""
    agent = house.client(await house.key())
    made = [await create(agent) for _ in range(5)]
    firing, store = house.engine.firing, house.services.store
    house.pass_time(timedelta(hours=1))
    if monkeypatch is not None:
        monkeypatch.setattr("assent.runs.crons.firing._taken", lambda tx, read: read)
    read = [await store.read(DEFAULT_TENANT, crons.get, cron["cron_id"]) for cron in made]
    stale = dict(zip([cron["cron_id"] for cron in made], read, strict=True))
    await firing.look()
    monkey = pytest.MonkeyPatch()
    try:
        monkey.setattr("assent.runs.crons.firing.crons.get", lambda tx, cron_id: stale[cron_id])
        for cron in made:
            await firing._act((DEFAULT_TENANT, cron["cron_id"]))
    finally:
        monkey.undo()
    return len(await started(house)) - len(made)
