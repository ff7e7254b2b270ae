"""A thread belongs to the agent or person that made it: other programs of the tenant neither read nor steer a private
one, and nobody but its agent or a person ends what it asks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import httpx
import pytest

from assent.identity.model.access import Kind, Role, operator
from assent.runs.events import streams
from tests.api.test_routes import operations, plain
from tests.faults.arena import Arena, Json
from tests.graphs_gated.attempts import ATTEMPTS, Target

pytestmark = pytest.mark.promise("P10")

NOWHERE = "0197c5a0-0000-7000-8000-000000000000"
EVENTS = "POST /threads/{thread_id}/stream/events"
"""Clients open it before their thread exists: then it is silent, as for a thread that they may not read."""


def routes_of_threads(arena: Arena) -> Iterator[tuple[str, str]]:
    for method, path in sorted({(method, plain(path)) for method, path in operations(arena.house.app)}):
        about_thread = "{thread_id}" in path or path.startswith("/runs/{run_id}")
        if about_thread and method not in ("HEAD", "OPTIONS"):
            yield method, path


def body_of(method: str, path: str, target: Target) -> Json:
    bodies = ATTEMPTS.get(f"{method} {path}")
    return next(iter(bodies(target)), {}) if bodies else {}


async def target_of(arena: Arena, graph: str = "stopping") -> Target:
    thread = await arena.stopped(graph)
    item = await arena.item(thread)
    run = item["source"]["run_id"]
    message = {"type": "ai", "content": "", "tool_calls": [{"name": "act", "args": {}, "id": "call"}]}
    seen = (item["source"]["interrupt_id"], item["id"], item["revision"], item["hash"])
    return Target(graph, str(arena.log), "asked", thread, run, graph, *seen, message, (NOWHERE,))


async def status(client: httpx.AsyncClient, method: str, path: str, **sent: Any) -> int:
    """Of the answer; the rest of a stream is not waited for. A command is answered with 200, and names its status."""
    async with client.stream(method, path, **sent) as response:
        if path.endswith("/commands"):
            return int(json.loads(await response.aread()).get("status", response.status_code))
        return response.status_code


async def test_private_thread_reads_as_missing_to_other_programs_on_every_route(arena: Arena) -> None:
    target, tried = await target_of(arena), 0
    service = arena.house.client(await arena.house.key(Kind.SERVICE))
    for method, path in routes_of_threads(arena):
        ids = {**target.ids, "checkpoint_id": NOWHERE}
        here, nowhere = path.format(**ids), path.format(**{**ids, "thread_id": NOWHERE, "run_id": NOWHERE})
        for client in (arena.other, service):
            sent = body_of(method, path, target)
            status_code = await status(client, method, here, **sent)
            assert status_code == await status(client, method, nowhere, **sent), f"{method} {path}"
            assert status_code >= 400 or f"{method} {path}" == EVENTS
            tried += 1
    assert tried > 40
    assert [item["status"] for item in await arena.items(target.thread_id)] == ["PENDING"]
    assert arena.effects == []


async def test_events_of_a_private_thread_are_not_told_to_other_programs(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "IDLE_SECONDS", 0.2)
    target = await target_of(arena)
    other = await arena.house.services.access.by_key(await arena.house.key(Kind.AGENT))
    told: list[Any] = []
    opened = arena.house.engine.events.open(other, target.thread_id, lambda event: True)
    async with asyncio.timeout(90):
        async for event in opened:
            told.append(event)
            if len(told) == 3:
                break
    assert told == [None, None, None]
    await arena.agent.patch(f"/threads/{target.thread_id}", json={"visibility": "shared"})
    async with asyncio.timeout(90):
        async for event in opened:  # the control: told once it is shared
            if event is not None:
                return


async def test_control_shared_thread_is_found_by_other_programs(dev_arena: Arena) -> None:
    """The control, in `dev`, where threads are shared."""
    target = await target_of(dev_arena)
    for path in ("", "/state", "/runs", f"/runs/{target.run_id}"):
        assert await status(dev_arena.other, "GET", f"/threads/{target.thread_id}{path}") == 200


async def test_searches_and_counts_leave_out_private_threads_of_others(arena: Arena) -> None:
    thread = await arena.stopped()
    for body in ({}, {"ids": [thread]}, {"status": "interrupted"}):
        threads = (await arena.other.post("/threads/search", json={**body, "limit": 1000})).json()
        assert thread not in [thread["thread_id"] for thread in threads]
        count = (await arena.other.post("/threads/count", json=body)).json()
        assert count == len(threads)
    mine = (await arena.agent.post("/threads/search", json={"ids": [thread]})).json()
    assert [thread["thread_id"] for thread in mine] == [thread]


async def test_cancelling_all_runs_leaves_those_of_private_threads(arena: Arena) -> None:
    thread = await arena.stopped()
    queued = await arena.run(thread, "stopping", how="", input={"tag": "x"}, after_seconds=600)
    run = queued.json()["run_id"]
    await arena.other.post("/runs/cancel", json={"status": "all"})
    await arena.other.post("/runs/cancel", json={"thread_id": thread, "run_ids": [run]})
    assert (await arena.agent.get(f"/threads/{thread}/runs/{run}")).json()["status"] == "pending"
    assert (await arena.agent.post("/runs/cancel", json={"status": "all"})).is_success
    assert (await arena.agent.get(f"/threads/{thread}/runs/{run}")).json()["status"] == "interrupted"


async def test_deleting_an_assistant_leaves_private_threads_of_others(arena: Arena) -> None:
    made = (await arena.agent.post("/assistants", json={"graph_id": "stopping", "name": "shared"})).json()
    thread = await arena.thread(arena.other)
    given = {"log": str(arena.log), "tag": "asked"}
    assert (await arena.run(thread, made["assistant_id"], arena.other, input=given)).is_success
    path = f"/assistants/{made['assistant_id']}"
    assert (await arena.agent.delete(path, params={"delete_threads": "true"})).is_success
    assert (await arena.state(thread))["status"] == "interrupted"


async def test_owner_shares_a_thread_and_others_cannot(arena: Arena) -> None:
    thread = await arena.stopped()
    path, shared, private = f"/threads/{thread}", {"visibility": "shared"}, {"visibility": "private"}
    assert (await arena.other.patch(path, json=shared)).status_code == 404
    assert (await arena.ana.patch(path, json=shared)).status_code == 403
    assert (await arena.agent.patch(path, json=shared)).json()["visibility"] == "shared"
    assert (await arena.other.get(path)).status_code == 200
    assert (await arena.other.patch(path, json=private)).status_code == 403
    admin = arena.house.client(await arena.house.person(f"admin-{thread}", Role.ADMIN))
    assert (await admin.patch(path, json=private)).json()["visibility"] == "private"
    assert (await arena.other.get(path)).status_code == 404
    assert (await arena.agent.patch(path, json={"visibility": "public"})).status_code == 422


async def test_people_see_every_thread(arena: Arena) -> None:
    thread = await arena.stopped()
    viewer = arena.house.client(await arena.house.person(f"val-{thread}", Role.VIEWER))
    for client in (arena.ana, viewer):
        assert (await client.get(f"/threads/{thread}")).status_code == 200


async def test_agent_does_not_answer_a_question_on_a_private_thread_of_another(arena: Arena) -> None:
    thread = await arena.stopped("asking")
    item = await arena.item(thread)
    said = [{"key": item["actions"][0]["key"], "verb": "respond", "message": "this"}]
    refused = await arena.decide(item, "respond", arena.other, actions=said)
    assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed")
    assert (await arena.decide(item, "respond", arena.agent, actions=said)).status_code == 200  # the control
    await arena.rests(thread)


async def shared(arena: Arena) -> Json:
    thread = await arena.stopped()
    assert (await arena.agent.patch(f"/threads/{thread}", json={"visibility": "shared"})).is_success
    return await arena.item(thread)


def removals(item: Json) -> list[tuple[str, str, Json]]:
    thread, run = item["source"]["thread_id"], item["source"]["run_id"]
    return [
        ("DELETE", f"/threads/{thread}/runs/{run}", {}),
        ("DELETE", f"/threads/{thread}", {}),
        ("POST", "/threads/prune", {"thread_ids": [thread]}),
    ]


@pytest.mark.promise("P9")
@pytest.mark.parametrize("way", range(3))
async def test_other_agent_does_not_end_what_an_agent_asks_and_the_attempt_is_recorded(arena: Arena, way: int) -> None:
    item = await shared(arena)
    method, path, body = removals(item)[way]
    refused = await arena.other.request(method, path, json=body)
    assert refused.status_code == 403 or refused.json() == {"pruned_count": 0}
    assert (await arena.item(item["source"]["thread_id"]))["status"] == "PENDING"
    events = await arena.events(item)
    assert ("item.attempt_refused", await arena.actor(arena.other)) in events
    assert not any(kind == "item.cancelled" for kind, _ in events)


@pytest.mark.promise("P9")
@pytest.mark.parametrize("who", ["agent", "ana"])
@pytest.mark.parametrize("way", range(3))
async def test_agent_or_person_who_ends_the_question_is_named(arena: Arena, way: int, who: str) -> None:
    item = await shared(arena)
    client: httpx.AsyncClient = getattr(arena, who)
    method, path, body = removals(item)[way]
    assert (await client.request(method, path, json=body)).is_success
    assert ("item.cancelled", await arena.actor(client)) in await arena.events(item)


async def test_owner_keeps_the_thread_when_its_key_is_rotated(arena: Arena) -> None:
    keys = arena.house.services.keys
    first = await keys.create(operator(), kind=Kind.AGENT, name="billing", scopes=())
    thread = await arena.thread(arena.house.client(first.secret))
    second = await keys.rotate(operator(), first.key.id, overlap=timedelta(hours=1))
    assert (await arena.house.client(second.secret).get(f"/threads/{thread}")).status_code == 200
    namesake = await keys.create(operator(), kind=Kind.AGENT, name="billing", scopes=())
    assert (await arena.house.client(namesake.secret).get(f"/threads/{thread}")).status_code == 404
