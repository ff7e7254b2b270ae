"""Tenants stay apart: the tenant comes from the credential, and another tenant's ids read as nothing."""

import pytest

from assent.identity.model.access import Role
from tests.api.house import House


@pytest.mark.promise("P10")
async def test_resource_of_another_tenant_is_404(house: House) -> None:
    ours, theirs = await house.admin(), await house.admin(tenant="acme")
    foreign = (await theirs.post("/api/keys", json={"kind": "agent", "name": "theirs"})).json()
    await theirs.post("/api/users", json={"name": "bob"})
    for method, path, body in (
        ("DELETE", f"/api/keys/{foreign['key']['id']}", None),
        ("PATCH", "/api/users/bob", {"role": "viewer"}),
        ("POST", "/api/users/bob/login-link", None),
        ("DELETE", "/api/users/bob", None),
        ("POST", "/api/keys", {"kind": "reviewer", "name": "key", "user": "bob"}),
    ):
        response = await ours.request(method, path, json=body)
        assert (response.status_code, response.json()["code"]) == (404, "not_found"), path
    assert (await house.client(foreign["secret"]).get("/api/me")).json()["tenant"] == "acme"


@pytest.mark.promise("P10")
async def test_control_the_tenant_itself_finds_it(house: House) -> None:
    theirs = await house.admin(tenant="acme")
    key = (await theirs.post("/api/keys", json={"kind": "agent", "name": "theirs"})).json()["key"]
    assert (await theirs.delete(f"/api/keys/{key['id']}")).status_code == 200


@pytest.mark.promise("P10")
async def test_no_list_shows_another_tenant(house: House) -> None:
    ours, theirs = await house.admin(), await house.admin(tenant="acme")
    await theirs.post("/api/users", json={"name": "bob"})
    await theirs.post("/api/keys", json={"kind": "agent", "name": "theirs"})
    everything = ""
    for path in ("/api/users", "/api/keys", "/api/audit/events", "/api/audit/export"):
        everything += (await ours.get(path)).text
    assert "bob" not in everything
    assert "theirs" not in everything
    assert "acme" not in everything


async def test_two_tenants_may_use_the_same_name(house: House) -> None:
    await house.person("ana", Role.ADMIN)
    theirs = house.client(await house.person("ana", Role.VIEWER, tenant="acme"))
    me = (await theirs.get("/api/me")).json()
    assert (me["tenant"], me["scopes"]) == ("acme", ["items:read"])


async def test_tenant_cannot_be_changed_by_headers_or_query(house: House) -> None:
    client = house.client(await house.key(), headers={"x-tenant-id": "acme"})
    assert (await client.get("/api/me?tenant=acme&tenant_id=acme")).json()["tenant"] == "default"


@pytest.mark.promise("P10")
async def test_erasure_in_one_tenant_keeps_the_rows_of_another(house: House) -> None:
    ours, theirs = await house.admin(), await house.admin(tenant="acme")
    bob = (await theirs.post("/api/users", json={"name": "bob"})).json()
    response = await ours.post("/api/audit/erasures", json={"subject": f"reviewer:{bob['id']}"})
    assert response.json()["payloads"] == 0
    (event,) = (await theirs.get(f"/api/audit/events?subject=reviewer:{bob['id']}")).json()["items"]
    assert event["payload"]
