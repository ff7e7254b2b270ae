"""An assistant belongs to the agent or person that made it: nobody else changes what the runs of others are made with.
Everybody in the tenant reads and runs it."""

from __future__ import annotations

from dataclasses import dataclass

import httpx
import pytest

from assent.identity.model.access import Kind, Role
from assent.threads.model.assistants import own_id
from tests.faults.arena import Arena, Json

pytestmark = pytest.mark.promise("P10")

EVIL = {"payee": "mallory"}


@dataclass
class Changes:
    """What a caller can do to an assistant."""

    client: httpx.AsyncClient
    path: str

    async def statuses(self) -> list[int]:
        patched = await self.client.patch(self.path, json={"context": EVIL})
        restored = await self.client.post(f"{self.path}/latest", json={"version": 1})
        deleted = await self.client.delete(self.path, params={"delete_threads": "true"})
        return [patched.status_code, restored.status_code, deleted.status_code]


async def made(client: httpx.AsyncClient) -> Json:
    body = {"graph_id": "stopping", "name": "mine", "context": {"payee": "alice"}}
    matching_assistants: Json = (await client.post("/assistants", json=body)).json()
    return matching_assistants


def path_of(assistant: Json) -> str:
    return f"/assistants/{assistant['assistant_id']}"


async def admin_service(arena: Arena) -> httpx.AsyncClient:
    return arena.house.client(await arena.house.key(Kind.SERVICE, "runs:write", "admin"))


@pytest.mark.parametrize("who", ["other", "ana"])
async def test_change_of_anothers_assistant_is_refused_with_its_owner(arena: Arena, who: str) -> None:
    mine = await made(arena.agent)
    client: httpx.AsyncClient = getattr(arena, who)
    assert await Changes(client, path_of(mine)).statuses() == [403, 403, 403]
    assert (await arena.agent.get(path_of(mine))).json() == mine
    refused = (await client.patch(path_of(mine), json={"context": EVIL})).json()
    assert refused["code"] == "not_allowed"
    assert "create another assistant" in refused["hint"]


@pytest.mark.parametrize("who", ["agent", "ana"])
async def test_assistant_is_changed_by_its_owner(arena: Arena, who: str) -> None:
    client: httpx.AsyncClient = getattr(arena, who)
    mine = await made(client)
    assert mine["owner"] == await arena.actor(client)
    assert await Changes(client, path_of(mine)).statuses() == [200, 200, 204]


@pytest.mark.parametrize("who", ["agent", "ana"])
async def test_graphs_own_assistant_is_not_changed_without_the_right_to_administer(arena: Arena, who: str) -> None:
    path = f"/assistants/{own_id('stopping')}"
    before = (await arena.agent.get(path)).json()
    assert before["owner"] is None
    assert await Changes(getattr(arena, who), path).statuses() == [403, 403, 403]
    assert (await arena.agent.get(path)).json() == before


async def test_administrators_change_every_assistant(arena: Arena) -> None:
    thread = await arena.thread()
    person = arena.house.client(await arena.house.person(f"admin-{thread}", Role.ADMIN))
    for client in (person, await admin_service(arena)):
        for path in (path_of(await made(arena.agent)), f"/assistants/{own_id('asking')}"):
            assert await Changes(client, path).statuses() == [200, 200, 204]
            await arena.run(
                await arena.thread(), "asking", input={"tag": "x"}, how=""
            )  # the graph's own is there again


async def test_agent_cannot_recreate_a_deleted_default_assistant(arena: Arena) -> None:
    """It would be the agent's word under the graph's name."""
    path = f"/assistants/{own_id('asking')}"
    assert (await (await admin_service(arena)).delete(path)).status_code == 204
    body = {"graph_id": "asking", "assistant_id": own_id("asking"), "context": EVIL}
    assert (await arena.other.post("/assistants", json=body)).status_code == 409
    kept = (await arena.other.post("/assistants", json={**body, "if_exists": "do_nothing"})).json()
    assert (kept["context"], kept["owner"]) == ({}, None)
    assert (await arena.agent.get(path)).json()["context"] == {}


async def test_assistant_of_another_is_read_and_run(arena: Arena) -> None:
    mine = await made(arena.agent)
    assert (await arena.other.get(path_of(mine))).json() == mine
    thread = await arena.thread(arena.other)
    done = await arena.run(thread, mine["assistant_id"], arena.other, input={"log": str(arena.log), "tag": "x"})
    assert done.status_code == 200


async def test_control_in_dev_everybody_changes_assistants(dev_arena: Arena) -> None:
    """The control: the same requests, on a developer's own machine."""
    mine = await made(dev_arena.agent)
    for path in (path_of(mine), f"/assistants/{own_id('stopping')}"):
        assert await Changes(dev_arena.other, path).statuses() == [200, 200, 204]
