"""The people of a tenant over REST."""

import pytest

from assent.identity.model.access import Kind, Role
from tests.api.house import House


async def test_user_is_created_listed_changed_and_erased(house: House) -> None:
    admin = await house.admin()
    ana = (await admin.post("/api/users", json={"name": " ana ", "role": "viewer", "email": "ana@example.org"})).json()
    assert (ana["name"], ana["role"], ana["disabled_at"]) == ("ana", "viewer", None)
    assert [user["name"] for user in (await admin.get("/api/users")).json()["items"]] == ["admin", "ana"]
    changed = (await admin.patch("/api/users/ana", json={"role": "reviewer", "disabled": True})).json()
    assert changed["role"] == "reviewer"
    assert changed["disabled_at"]
    assert (await admin.delete("/api/users/ana")).json()["payloads"] >= 2
    everyone = (await admin.get("/api/users")).json()["items"]
    assert "ana" not in [user["name"] for user in everyone]
    assert all(user["email"] is None for user in everyone)
    assert (await admin.get("/api/audit/verification")).json()["ok"]


async def test_second_user_with_the_same_name_is_refused(house: House) -> None:
    admin = await house.admin()
    response = await admin.post("/api/users", json={"name": "admin"})
    assert (response.status_code, response.json()["code"]) == (409, "already_exists")


@pytest.mark.parametrize("name", ["", " ", "a" * 201, "two\nlines", "a/b", "\u202eana", "nul\x00"])
async def test_empty_or_unreadable_name_is_refused(house: House, name: str) -> None:
    assert (await (await house.admin()).post("/api/users", json={"name": name})).status_code == 422


@pytest.mark.parametrize("path", ["/api/users/nobody", "/api/users/nobody/login-link"])
async def test_unknown_user_is_404(house: House, path: str) -> None:
    admin = await house.admin()
    method = "POST" if path.endswith("link") else "PATCH"
    response = await admin.request(method, path, json={})
    assert (response.status_code, response.json()["code"]) == (404, "not_found")


async def test_disabled_user_gets_no_login_link(house: House) -> None:
    admin = await house.admin()
    await admin.post("/api/users", json={"name": "ana"})
    await admin.patch("/api/users/ana", json={"disabled": True})
    assert (await admin.post("/api/users/ana/login-link")).json()["code"] == "conflict"


@pytest.mark.parametrize("role", [Role.VIEWER, Role.REVIEWER])
async def test_only_administrators_manage_people(house: House, role: Role) -> None:
    person = house.client(await house.person("ana", role))
    agent = house.client(await house.key(Kind.AGENT))
    for client in (person, agent):
        for method, path, body in (
            ("GET", "/api/users", None),
            ("POST", "/api/users", {"name": "eve", "role": "admin"}),
            ("PATCH", "/api/users/ana", {"role": "admin"}),
            ("POST", "/api/users/ana/login-link", None),
            ("DELETE", "/api/users/ana", None),
        ):
            response = await client.request(method, path, json=body)
            assert (response.status_code, response.json()["missing"]) == (403, ["admin"])


async def test_repeated_change_is_recorded_once(house: House) -> None:
    admin = await house.admin()
    ana = (await admin.post("/api/users", json={"name": "ana"})).json()
    for body in ({"role": "viewer"}, {"role": "viewer"}, {"disabled": True}, {"disabled": True}, {}):
        assert (await admin.patch("/api/users/ana", json=body)).status_code == 200
    events = (await admin.get(f"/api/audit/events?subject=reviewer:{ana['id']}")).json()["items"]
    assert [event["kind"] for event in events] == ["user.disabled", "user.role_changed", "user.created"]
