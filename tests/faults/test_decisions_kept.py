"""A decision that can still be taken back is not brought to nothing by removing its thread: not by another agent, nor
by the agent that asked."""

from __future__ import annotations

import httpx
import pytest

from assent.review.threads import answers, open_items
from assent.threads.rows import threads as rows
from tests.faults.arena import Arena, Json

pytestmark = pytest.mark.promise("P3")

SOON = {"ttl": 0.0000001, "strategy": "delete"}


async def decided(arena: Arena, grace: float = 60) -> Json:
    """An item that was approved and can still be taken back."""
    thread = await arena.thread(visibility="shared")
    await arena.run(thread, "stopping", input={"log": str(arena.log), "tag": "asked"})
    item = await arena.item(thread)
    said = await arena.decide(item, "approve", grace_seconds=grace)
    assert said.status_code == 200, said.text
    return item


async def removed(arena: Arena, client: httpx.AsyncClient, item: Json, way: str) -> httpx.Response:
    thread = item["source"]["thread_id"]
    match way:
        case "prune":
            return await client.post("/threads/prune", json={"thread_ids": [thread], "strategy": "delete"})
        case "run":
            return await client.delete(f"/threads/{thread}/runs/{item['source']['run_id']}")
        case "ttl":
            limited = await client.patch(f"/threads/{thread}", json={"ttl": SOON})
            await arena.house.engine.threads.delete_expired()
            return limited
        case _:
            return await client.delete(f"/threads/{thread}")


async def is_there(arena: Arena, item: Json) -> bool:
    return (await arena.ana.get(f"/threads/{item['source']['thread_id']}")).status_code == 200


async def current(arena: Arena, item: Json) -> Json:
    body: Json = (await arena.ana.get(f"/api/inbox/items/{item['id']}")).json()
    return body


@pytest.mark.parametrize("way", ["delete", "prune", "run", "ttl"])
@pytest.mark.parametrize("mode", ["serve", "dev"])
async def test_program_cannot_remove_a_thread_with_an_undelivered_decision(
    arena: Arena, dev_arena: Arena, mode: str, way: str
) -> None:
    """Also where the question was only advice: whoever decided was told that it counts."""
    place = arena if mode == "serve" else dev_arena
    item = await decided(place)
    for client in (place.other, place.agent):
        refused = await removed(place, client, item, way)
        if way == "prune":
            assert refused.json() == {"pruned_count": 0}
        else:
            assert refused.status_code == 403, refused.text
        assert ("item.attempt_refused", await place.actor(client)) in await place.events(item)
    assert await is_there(place, item)
    assert (await current(place, item))["resolution"] != "thread_ended"
    undone = await place.ana.delete(f"/api/inbox/items/{item['id']}/decision")
    assert undone.status_code == 200, undone.text
    assert (await place.decide(await current(place, item), "approve", grace_seconds=0)).status_code == 200
    await place.rests(item["source"]["thread_id"])
    assert place.effects == ["asked"]
    assert (await removed(place, place.agent, item, "delete")).status_code == 204, "it has taken effect"


async def test_a_time_to_live_from_before_the_decision_waits_for_it(arena: Arena) -> None:
    thread = await arena.thread(visibility="shared")
    await arena.run(thread, "stopping", input={"log": str(arena.log), "tag": "asked"})
    assert (await arena.agent.patch(f"/threads/{thread}", json={"ttl": SOON})).status_code == 200
    item = await arena.item(thread)
    assert (await arena.decide(item, "approve", grace_seconds=60)).status_code == 200
    await arena.house.engine.threads.delete_expired()
    assert await is_there(arena, item)


async def test_a_person_who_may_decide_removes_the_thread(arena: Arena) -> None:
    item = await decided(arena)
    assert (await arena.ben.delete(f"/threads/{item['source']['thread_id']}")).status_code == 204
    assert not await is_there(arena, item)


async def test_person_not_named_by_the_rule_cannot_remove_the_thread(arena: Arena) -> None:
    await arena.policy({"default": {"name": "ana's", "then": "ask", "by": {"people": ["ana"]}}})
    item = await decided(arena)
    assert (await arena.ben.delete(f"/threads/{item['source']['thread_id']}")).status_code == 403
    assert (await arena.ana.delete(f"/threads/{item['source']['thread_id']}")).status_code == 204


async def test_control_without_the_defence_the_decision_is_lost(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_require_arrived", lambda *_: None)
    monkeypatch.setattr(open_items, "are_unsettled", lambda *_: False)
    monkeypatch.setattr(rows, "_EXPIRED", rows._DUE)
    for client, way in ((arena.other, "delete"), (arena.other, "prune"), (arena.agent, "ttl")):
        item = await decided(arena)
        assert (await removed(arena, client, item, way)).is_success
        assert not await is_there(arena, item)
        assert (await current(arena, item))["resolution"] == "thread_ended"
    assert arena.effects == []
