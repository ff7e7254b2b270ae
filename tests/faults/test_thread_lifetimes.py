"""A time to live removes a thread later than a deletion does, and no more than a deletion may."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from assent.identity.model.access import Kind, Role
from assent.kernel.store import tables
from assent.kernel.store.transaction import Tx
from assent.review import thread_items
from assent.review.threads import open_items
from assent.runs.threads import threads
from assent.threads.rows import threads as rows
from tests.faults.arena import Arena, Json
from tests.waiting import until

pytestmark = pytest.mark.promise("P10")

AT_ONCE = {"ttl": 0.0000001, "strategy": "delete"}


async def shared(arena: Arena) -> Json:
    thread = await arena.thread(visibility="shared")
    await arena.run(thread, "stopping", input={"log": str(arena.log), "tag": "asked"})
    return await arena.item(thread)


async def limit(client: httpx.AsyncClient, thread: str, ttl: Any = AT_ONCE) -> httpx.Response:
    return await client.patch(f"/threads/{thread}", json={"ttl": ttl})


async def expire(arena: Arena) -> None:
    await arena.house.engine.threads.delete_expired()


async def is_there(arena: Arena, thread: str) -> bool:
    return (await arena.ana.get(f"/threads/{thread}")).status_code == 200


async def doubt(arena: Arena, item: Json, execution: str | None) -> None:
    def cut_off(tx: Tx) -> None:
        this = (tables.items.c.tenant_id == tables.TENANT, tables.items.c.item_id == item["id"])
        tx.change(update(tables.items).where(*this).values(execution=execution))

    await arena.house.services.store.write("default", cut_off)


@pytest.mark.parametrize("strategy", ["delete", "keep_latest"])
async def test_other_agent_does_not_limit_a_shared_thread(arena: Arena, strategy: str) -> None:
    item = await shared(arena)
    thread = item["source"]["thread_id"]
    assert (await limit(arena.other, thread, {"ttl": 60, "strategy": strategy})).status_code == 403
    assert (await arena.other.patch(f"/threads/{thread}", json={"metadata": {"a": 1}})).status_code == 200
    refused = ("item.attempt_refused", await arena.actor(arena.other)) in await arena.events(item)
    assert refused == (strategy == "delete"), "the other strategy ends nothing"


async def test_only_owner_and_administrator_limit_a_thread_that_asks_nothing(arena: Arena) -> None:
    thread = await arena.thread(visibility="shared")
    admin = arena.house.client(await arena.house.person(f"admin-{thread}", Role.ADMIN))
    service_key = arena.house.client(await arena.house.key(Kind.SERVICE))
    assert (await limit(service_key, thread)).status_code == 403
    assert (await limit(admin, thread, {"ttl": 60})).status_code == 200
    assert (await limit(arena.agent, thread)).status_code == 200
    await expire(arena)
    assert not await is_there(arena, thread)


async def test_expired_thread_stays_until_its_gated_question_is_decided(arena: Arena) -> None:
    item = await shared(arena)
    thread = item["source"]["thread_id"]
    assert (await limit(arena.agent, thread)).status_code == 200, "its owner may also delete it"
    await expire(arena)
    assert (await arena.item(thread))["status"] == "PENDING"
    assert (await arena.decide(item, "approve")).status_code == 200
    await arena.rests(thread)
    await expire(arena)
    assert not await is_there(arena, thread)
    assert len(arena.effects) == 1


async def test_time_to_live_does_not_remove_a_call_in_doubt(arena: Arena) -> None:
    item = await shared(arena)
    thread = item["source"]["thread_id"]
    assert (await limit(arena.agent, thread)).status_code == 200
    assert (await arena.decide(item, "approve")).status_code == 200
    await arena.rests(thread)
    await doubt(arena, item, "in_doubt")
    assert (await arena.agent.delete(f"/threads/{thread}")).status_code == 409
    assert (await limit(arena.agent, thread)).status_code == 409
    await expire(arena)
    assert await is_there(arena, thread)
    await doubt(arena, item, None)
    await expire(arena)
    assert not await is_there(arena, thread)


async def test_control_without_the_defence_the_time_to_live_ends_the_question_of_another(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = await shared(arena)
    thread = item["source"]["thread_id"]
    monkeypatch.setattr(threads, "_require_lifetime", lambda *_: None)
    monkeypatch.setattr(open_items, "are_unsettled", lambda *_: False)
    monkeypatch.setattr(rows, "_EXPIRED", rows._DUE)
    assert (await limit(arena.other, thread)).status_code == 200
    await expire(arena)
    assert not await is_there(arena, thread)
    assert ("item.cancelled", "system") in await arena.events(item)


async def removed_during_its_call(arena: Arena) -> Json:
    """The item of an approved call that runs while the agent removes its thread."""
    thread = await arena.thread()
    script = json.dumps([{"name": "act", "args": {"log": str(arena.log), "tag": "paid", "pause": 0.5}}])
    await arena.run(thread, "gated", input={"messages": [{"role": "user", "content": script}]})
    item = await arena.item(thread)
    assert (await arena.decide(item, "approve")).status_code == 200

    async def has_begun() -> bool:
        return Path(f"{arena.log}.calls").exists()

    await until(has_begun, "the call does not begin")
    assert (await arena.agent.delete(f"/threads/{thread}")).status_code == 204
    return dict((await arena.ana.get(f"/api/inbox/items/{item['id']}")).json())


async def settled(arena: Arena, item: Json) -> int:
    sent = await arena.ana.post(f"/api/inbox/items/{item['id']}/in-doubt", json={"outcome": "done"})
    return sent.status_code


@pytest.mark.promise("P2")
async def test_call_whose_thread_is_removed_is_in_doubt(arena: Arena) -> None:
    item = await removed_during_its_call(arena)
    assert item["execution"] == "in_doubt"
    assert "grant.in_doubt" in [kind for kind, _ in await arena.events(item)]
    assert await settled(arena, item) == 200


async def test_control_unmarked_the_call_stays_started_for_ever(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_items, "cut_off", lambda tx, begun, actor: list(begun))
    item = await removed_during_its_call(arena)
    assert item["execution"] == "started"
    assert await settled(arena, item) == 409
