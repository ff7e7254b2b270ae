"""The registry of agents: written by administrators, read by reviewers, one notion with the agents that have keys."""

import asyncio
from typing import Any

import httpx
import pytest

from assent.identity.model.access import Kind, Role, operator
from tests.api.house import House
from tests.api.reviewing import problem


async def registered(admin: httpx.AsyncClient, name: str, **fields: Any) -> dict[str, Any]:
    made = await admin.post("/api/agents", json={"name": name, **fields})
    assert made.status_code == 201, made.text
    agent: dict[str, Any] = made.json()
    return agent


async def test_agent_is_registered_changed_and_removed(house: House) -> None:
    admin = await house.admin()
    await house.person("ana")
    await registered(admin, "lead", human="ana", source="system")
    agent = await registered(admin, "writer", parent="lead")
    assert (agent["parent"], agent["human"], agent["source"]) == ("lead", None, "user")
    changed = (await admin.patch("/api/agents/writer", json={"human": "ana", "parent": None})).json()
    assert (changed["parent"], changed["human"], changed["id"]) == (None, "ana", agent["id"])
    assert [row["name"] for row in (await admin.get("/api/agents")).json()["items"]] == ["lead", "writer"]
    assert (await admin.delete("/api/agents/writer")).status_code == 200
    problem(await admin.get("/api/agents/writer"), 404, "not_found")
    timeline = (await admin.get(f"/api/audit/events?subject=agent:{agent['id']}")).json()["items"]
    assert sorted(event["kind"] for event in timeline) == ["agent.changed", "agent.registered", "agent.removed"]


async def test_agents_are_listed_by_their_fields(house: House) -> None:
    admin = await house.admin()
    await house.person("ana")
    await registered(admin, "lead", human="ana", source="system")
    for name in ("Writer", "writer 2", "100%"):
        await registered(admin, name, parent="lead")

    async def names(**wanted: Any) -> list[str]:
        found, cursor = list[str](), None
        while True:
            page = (
                await admin.get("/api/agents", params={**wanted, "limit": 1} | ({"cursor": cursor} if cursor else {}))
            ).json()
            found += [row["name"] for row in page["items"]]
            if (cursor := page["next"]) is None:
                return found

    assert await names(text="WRITER") == ["Writer", "writer 2"]
    assert await names(text="%") == ["100%"]
    assert await names(parent="lead", text="2") == ["writer 2"]
    assert await names(human="ana", source="system") == ["lead"]
    assert await names(source="system", parent="lead") == []
    assert await names(human="nobody") == []
    problem(await admin.get("/api/agents?source=x"), 422, "invalid_request")
    problem(await admin.get("/api/agents", params={"text": "x" * 201}), 422, "invalid_request")


async def test_agent_with_a_key_is_in_the_registry(house: House) -> None:
    admin = await house.admin()
    made = (await admin.post("/api/keys", json={"kind": "agent", "name": "billing"})).json()["key"]
    [listed] = (await admin.get("/api/agents")).json()["items"]
    assert (listed["id"], listed["name"], listed["source"]) == (made["agent"], "billing", "user")
    problem(await admin.post("/api/agents", json={"name": "billing"}), 409, "already_exists")
    problem(await admin.delete("/api/agents/billing"), 409, "conflict")
    problem(await admin.patch("/api/agents/billing", json={"name": "other"}), 409, "conflict")
    assert (await admin.patch("/api/agents/billing", json={"source": "system"})).json()["source"] == "system"
    await admin.delete(f"/api/keys/{made['id']}")
    assert (await admin.delete("/api/agents/billing")).status_code == 200


async def test_registered_agent_gets_its_first_key(house: House) -> None:
    admin = await house.admin()
    agent = await registered(admin, "writer")
    made = await admin.post("/api/keys", json={"kind": "agent", "agent": "writer"})
    assert made.status_code == 201, made.text
    me = (await house.client(made.json()["secret"]).get("/api/me")).json()
    assert (me["id"], me["name"]) == (agent["id"], "writer")
    assert len((await admin.get("/api/agents")).json()["items"]) == 1


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"parent": "nobody"}, "nobody"),
        ({"human": "nobody"}, "nobody"),
        ({"human": "vic"}, "may not decide"),
        ({"parent": "writer"}, "works for"),
        ({"parent": "below"}, "works for"),
        ({"source": "robot"}, "source"),
        ({"role": "x"}, "role"),
    ],
)
async def test_wrong_field_is_refused_by_name(house: House, fields: dict[str, str], named: str) -> None:
    admin = await house.admin()
    await house.person("vic", Role.VIEWER)
    await registered(admin, "writer")
    await registered(admin, "below", parent="writer")
    refused = await admin.patch("/api/agents/writer", json=fields)
    assert refused.status_code == 422, refused.text
    assert named in refused.text


async def test_concurrent_changes_make_no_cycle(house: House) -> None:
    admin = await house.admin()
    for name in ("a", "b"):
        await registered(admin, name)
    sent = [admin.patch(f"/api/agents/{one}", json={"parent": other}) for one, other in (("a", "b"), ("b", "a"))]
    assert sorted(response.status_code for response in await asyncio.gather(*sent)) == [200, 422]


@pytest.mark.promise("P10")
async def test_only_administrators_of_the_tenant_write(house: House) -> None:
    admin, theirs = await house.admin(), await house.admin(tenant="acme")
    await registered(admin, "writer")
    reviewer = house.client(await house.person("ana"))
    agent = house.client(await house.key())
    for client in (reviewer, agent):
        assert (await client.get("/api/agents/writer")).status_code == 200
        problem(await client.post("/api/agents", json={"name": "x"}), 403, "not_allowed")
        problem(await client.patch("/api/agents/writer", json={"source": "system"}), 403, "not_allowed")
        problem(await client.delete("/api/agents/writer"), 403, "not_allowed")
    for method in ("GET", "PATCH", "DELETE"):
        problem(await theirs.request(method, "/api/agents/writer", json={}), 404, "not_found")
    assert "writer" not in (await theirs.get("/api/agents")).text
    refused = await theirs.post("/api/agents", json={"name": "spy", "parent": "writer"})
    assert refused.status_code == 422, "an agent of another tenant cannot be the parent"


async def test_name_of_several_agents_needs_the_id(house: House) -> None:
    admin = await house.admin()
    for _ in range(2):
        await house.services.keys.create(operator(), kind=Kind.AGENT, name="twin")
    problem(await admin.get("/api/agents/twin"), 409, "conflict")
    [first, second] = (await admin.get("/api/agents")).json()["items"]
    assert (await admin.get(f"/api/agents/{first['id']}")).json()["id"] == first["id"] != second["id"]
