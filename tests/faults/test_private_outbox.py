"""The outbox tells a program nothing about the private threads of other programs, and shows receivers' credentials only
to the program that named them and to administrators."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from sqlalchemy import update

from assent.identity.model.access import Kind, Role
from assent.kernel.store.tables import TENANT, deliveries
from assent.kernel.store.transaction import Tx
from assent.outbox.model import DeliveryStatus
from assent.threads.model.runs import Run
from tests.faults.arena import Arena, Json
from tests.waiting import until

pytestmark = pytest.mark.promise("P10")

HOST = "https://hooks.invalid:8443"
TARGET = f"{HOST}/services/PATH-TOKEN?token=QUERY-TOKEN"
VALUE = "private-value"


async def told(arena: Arena, **thread: Any) -> Json:
    """The failed delivery of a run's webhook, on a thread of the first agent."""
    made = await arena.thread(**thread)
    run = await arena.run(made, "asking", how="", input={"tag": VALUE, "log": str(arena.log)}, webhook=TARGET)
    assert run.status_code == 200, run.text
    return await failed(arena, f"run:{run.json()['run_id']}")


async def requested(arena: Arena, **more: Any) -> Json:
    """The failed delivery of a request's callback."""
    said = {"type": "approval", "title": "Raise the limit", "callback": TARGET, **more}
    made = await arena.agent.post("/api/inbox/items", json=said)
    assert made.status_code == 201, made.text
    assert (await arena.decide(made.json(), "approve")).status_code == 200
    return await failed(arena, f"item:{made.json()['id']}")


async def failed(arena: Arena, subject: str) -> Json:
    """The delivery about it, after its last attempt."""

    async def is_there() -> bool:
        return bool(await seen(arena.ana, subject))

    await until(is_there, f"there is no delivery about {subject}")
    await arena.house.services.store.write("default", _fail, subject)
    [delivery] = await seen(arena.ana, subject)
    return delivery


def _fail(tx: Tx, subject: str) -> None:
    over = {"status": DeliveryStatus.FAILED, "due_at": None}
    tx.change(
        update(deliveries).where(deliveries.c.tenant_id == TENANT, deliveries.c.subject == subject).values(**over)
    )


async def seen(client: httpx.AsyncClient, subject: str) -> list[Json]:
    response = await client.get("/api/deliveries", params={"subject": subject})
    assert response.status_code == 200, response.text
    listed: list[Json] = response.json()["items"]
    return listed


async def opened(client: httpx.AsyncClient, delivery: Json) -> tuple[int, int]:
    response = await client.get(f"/api/deliveries/{delivery['id']}")
    again = await client.post(f"/api/deliveries/{delivery['id']}/retry")
    return response.status_code, again.status_code


async def test_a_delivery_about_a_private_thread_is_missing_for_other_programs(arena: Arena) -> None:
    service = arena.house.client(await arena.house.key(Kind.SERVICE))
    for delivery in (await told(arena), await requested(arena)):
        for stranger in (arena.other, service):
            assert await seen(stranger, delivery["subject"]) == []
            assert await opened(stranger, delivery) == (404, 404)
        assert len(await seen(arena.agent, delivery["subject"])) == 1
        assert await opened(arena.agent, delivery) == (200, 200)


async def test_a_decision_on_its_way_to_a_private_thread_is_missing_for_other_programs(arena: Arena) -> None:
    thread = await arena.stopped()
    item = await arena.item(thread)
    assert (await arena.decide(item, "approve")).status_code == 200
    await arena.rests(thread)
    [delivery] = await seen(arena.agent, f"item:{item['id']}")
    assert await seen(arena.other, delivery["subject"]) == []
    assert await opened(arena.other, delivery) == (404, 404)
    assert (await arena.agent.get(f"/api/deliveries/{delivery['id']}")).json()["target"] == f"thread:{thread}"


async def test_pages_are_full_despite_hidden_deliveries(arena: Arena) -> None:
    own = await told(arena)
    for _ in range(2):
        await requested(arena)
    thread = await arena.thread(arena.other)
    run = await arena.run(thread, "asking", arena.other, "", input={"log": str(arena.log)}, webhook=TARGET)
    theirs = await failed(arena, f"run:{run.json()['run_id']}")
    page = (await arena.other.get("/api/deliveries", params={"limit": 1})).json()
    assert ([item["id"] for item in page["items"]], page["next"]) == ([theirs["id"]], None)
    assert own["id"] in {item["id"] for item in (await arena.agent.get("/api/deliveries")).json()["items"]}


async def test_control_other_programs_see_deliveries_about_a_shared_thread(arena: Arena) -> None:
    delivery = await told(arena, visibility="shared")
    assert [item["id"] for item in await seen(arena.other, delivery["subject"])] == [delivery["id"]]
    response = await arena.other.get(f"/api/deliveries/{delivery['id']}")
    assert response.status_code == 200
    assert VALUE in response.text


async def test_only_its_owner_and_administrators_see_more_than_the_host_of_a_target(arena: Arena) -> None:
    admin = arena.house.client(await arena.house.person("ada", Role.ADMIN))
    for delivery in (await told(arena, visibility="shared"), await requested(arena)):
        for client in (arena.agent, admin):
            assert [one["target"] for one in await seen(client, delivery["subject"])] == [TARGET]
            assert (await client.get(f"/api/deliveries/{delivery['id']}")).json()["target"] == TARGET
        for client in (arena.ben, arena.other):
            listed = await client.get("/api/deliveries", params={"subject": delivery["subject"]})
            response = await client.get(f"/api/deliveries/{delivery['id']}")
            again = await client.post(f"/api/deliveries/{delivery['id']}/retry")
            assert "TOKEN" not in listed.text + response.text + again.text
        assert [one["target"] for one in await seen(arena.ben, delivery["subject"])] == [HOST]
        assert "TOKEN" not in (await arena.ben.get("/settings/notifications")).text


async def test_a_run_shows_the_host_of_its_webhook_to_others_and_the_whole_to_its_owner(arena: Arena) -> None:
    thread = await arena.thread(visibility="shared")
    run = await arena.run(thread, "asking", how="", input={"log": str(arena.log)}, webhook=TARGET)
    for path in ("", f"/{run.json()['run_id']}"):
        for client in (arena.ben, arena.other):
            shown = (await client.get(f"/threads/{thread}/runs{path}")).text
            assert "TOKEN" not in shown
            assert HOST in shown
        assert TARGET in (await arena.agent.get(f"/threads/{thread}/runs{path}")).text, "control"


ANSWER = {"responses": [{"call_id": "1", "response": "this one"}]}


async def test_the_webhook_that_an_answer_names_is_shown_to_no_other_agent(arena: Arena) -> None:
    """The run belongs to the agent that asked, which has not named it."""
    admin = arena.house.client(await arena.house.person(f"ada-{arena.log.parent.name}", Role.ADMIN))
    thread = await arena.thread(visibility="shared")
    await arena.run(thread, "asking", input={"log": str(arena.log)})
    made = await arena.run(thread, "asking", arena.other, "", command={"resume": ANSWER}, webhook=TARGET)
    assert made.status_code == 200, made.text
    run = made.json()["run_id"]
    delivery = await failed(arena, f"run:{run}")
    paths = [f"/threads/{thread}/runs", f"/threads/{thread}/runs/{run}", f"/api/deliveries/{delivery['id']}"]
    for path in [*paths, f"/api/deliveries?subject=run:{run}"]:
        for client in (arena.agent, arena.ben):
            assert "TOKEN" not in (await client.get(path)).text
        assert TARGET in (await admin.get(path)).text, "control"


async def test_control_checking_only_the_actor_of_the_run_shows_the_webhook(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Run, "named_by", property(lambda run: run.actor))
    thread = await arena.thread(visibility="shared")
    await arena.run(thread, "asking", input={"log": str(arena.log)})
    await arena.run(thread, "asking", arena.other, "", command={"resume": ANSWER}, webhook=TARGET)
    assert TARGET in (await arena.agent.get(f"/threads/{thread}/runs")).text
