"""People who work on items together, over REST: owners, mentions, saved reasons."""

import httpx
import pytest

from assent.identity.model.access import Role
from tests.api.house import Builder
from tests.api.reviewing import Office, open_office, problem


@pytest.fixture
async def office(build: Builder) -> Office:
    return await open_office(build)


async def _owner(office: Office, item_id: str, person: str, client: httpx.AsyncClient | None = None) -> httpx.Response:
    return await (client or office.ana).put(f"/api/inbox/items/{item_id}/owner", json={"owner": person})


async def _found(office: Office, filter: str, client: httpx.AsyncClient | None = None) -> list[str]:
    return [item["title"] for item in (await office.page(f"is:pending {filter}", client))["items"]]


async def test_owner_is_set_found_and_removed(office: Office) -> None:
    first, second = await office.request(title="one"), await office.request(title="two")
    assigned = (await _owner(office, first["id"], "BEN")).json()
    assert assigned["owner"].startswith("reviewer:")
    assert assigned["owner_name"] == "ben"
    assert assigned["updated_at"] == first["updated_at"]
    assert await _found(office, "owner:me", office.ben) == ["one"]
    assert await _found(office, "owner:me") == []
    assert await _found(office, "owner:ben") == ["one"]
    assert await _found(office, "owner:none") == ["two"]
    assert await _found(office, "owner:none,ben") == ["two", "one"]
    mine = (await _owner(office, second["id"], "me")).json()
    assert mine["owner_name"] == "ana"
    assert (await office.ana.delete(f"/api/inbox/items/{first['id']}/owner")).json()["owner"] is None
    assert await _found(office, "owner:none") == ["one"]
    timeline = (await office.ana.get(f"/api/inbox/items/{first['id']}/timeline")).json()
    assert [(event["kind"], event["payload"]) for event in timeline[1:]] == [
        ("item.assigned", {"owner": assigned["owner"]}),
        ("item.unassigned", {"from": assigned["owner"]}),
    ]
    await office.verified()


async def test_owner_decides_nothing(office: Office) -> None:
    """An item with an owner is decided by anyone who may decide."""
    item = await office.request()
    await _owner(office, item["id"], "ben")
    assert (await office.decided(item, "approve"))["status"] == "APPROVED"
    problem(await _owner(office, item["id"], "me"), 409, "conflict")


async def test_only_reviewers_assign_and_are_assigned(office: Office) -> None:
    item = await office.request()
    viewer = office.house.client(await office.house.person("vera", Role.VIEWER))
    problem(await _owner(office, item["id"], "me", office.agent), 403, "not_allowed")
    problem(await _owner(office, item["id"], "me", viewer), 403, "not_allowed")
    for name in ("vera", "nobody", "agent", "reviewer:"):
        problem(await _owner(office, item["id"], name), 422, "invalid_request")
    assert (await office.get(item["id"]))["owner"] is None


async def test_items_of_a_disabled_person_have_no_owner(office: Office) -> None:
    item = await office.request()
    await _owner(office, item["id"], "ben")
    admin = office.house.client(await office.house.person("root", Role.ADMIN))
    changed = await admin.patch("/api/users/ben", json={"disabled": True})
    assert changed.status_code == 200, changed.text
    assert (await office.get(item["id"]))["owner"] is None


async def test_mentioned_person_finds_the_item(office: Office) -> None:
    item = await office.request(title="one")
    await office.request(title="two")
    said = await office.post(item, "comments", text="@Ben, and mail@ana or @nobody: is this right? @agent")
    assert said.status_code == 201, said.text
    ben = next(person for person in (await office.ana.get("/api/inbox/people?q=be")).json() if person["name"] == "ben")
    assert said.json()["mentions"] == [f"reviewer:{ben['id']}"]
    [comment] = (await office.ana.get(f"/api/inbox/items/{item['id']}/comments")).json()
    assert comment["mentions"] == said.json()["mentions"]
    assert await _found(office, "mentions:me", office.ben) == ["one"]
    assert await _found(office, "mentions:ben") == ["one"]
    assert await _found(office, "mentions:me") == []


async def test_mentions_stay_in_their_tenant(office: Office, build: Builder) -> None:
    house = office.house
    stranger = house.client(await house.person("zoe", Role.REVIEWER, tenant="acme"))
    item = await office.request()
    said = await office.post(item, "comments", text="@zoe look")
    assert said.json()["mentions"] == []
    assert (await stranger.get("/api/inbox/items?filter=mentions:me")).json()["items"] == []
    assert [person["name"] for person in (await stranger.get("/api/inbox/people")).json()] == ["zoe"]
    problem(await stranger.put(f"/api/inbox/items/{item['id']}/owner", json={"owner": "me"}), 404, "not_found")
    problem(await office.agent.get("/api/inbox/people"), 403, "not_allowed")


async def test_reasons_are_saved_changed_and_removed(office: Office) -> None:
    admin = office.house.client(await office.house.person("root", Role.ADMIN))
    made = await admin.post("/api/reasons", json={"name": "Too much", "text": "Over the limit.", "use": "reject"})
    assert made.status_code == 201, made.text
    reason = made.json()
    assert (await office.ana.get("/api/reasons")).json() == [reason]
    path = f"/api/reasons/{reason['id']}"
    problem(await admin.post("/api/reasons", json={"name": "Too much", "text": "x"}), 409, "already_exists")
    problem(await admin.post("/api/reasons", json={"name": "\n", "text": "x"}), 422, "invalid_request")
    problem(await admin.post("/api/reasons", json={"name": "x", "text": "x", "use": "approve"}), 422, "invalid_request")
    other = (await admin.post("/api/reasons", json={"name": "Other", "text": "x"})).json()
    problem(
        await admin.put(f"/api/reasons/{other['id']}", json={"name": "Too much", "text": "x"}), 409, "already_exists"
    )
    assert [kept["name"] for kept in (await office.ana.get("/api/reasons")).json()] == ["Other", "Too much"]
    changed = (await admin.put(path, json={"name": "Too much", "text": "Over.", "use": "both"})).json()
    assert (changed["id"], changed["text"], changed["use"]) == (reason["id"], "Over.", "both")
    for client in (office.ana, office.agent):
        problem(await client.delete(path), 403, "not_allowed")
    assert (await admin.delete(path)).json()["name"] == "Too much"
    problem(await admin.delete(path), 404, "not_found")
    await office.verified()


async def test_reasons_of_another_tenant_are_not_found(office: Office) -> None:
    admin = office.house.client(await office.house.person("root", Role.ADMIN))
    reason = (await admin.post("/api/reasons", json={"name": "Ours", "text": "x"})).json()
    other = office.house.client(await office.house.person("zoe", Role.ADMIN, tenant="acme"))
    assert (await other.get("/api/reasons")).json() == []
    problem(await other.put(f"/api/reasons/{reason['id']}", json={"name": "x", "text": "x"}), 404, "not_found")
    problem(await other.delete(f"/api/reasons/{reason['id']}"), 404, "not_found")
