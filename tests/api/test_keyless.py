"""Without a key: on loopback in dev and demo one is `local-agent`, who never decides; in production nobody."""

import pytest

from assent.identity.model.access import Kind, Scope, local_agent
from assent.settings import Mode
from tests.api.house import Builder, House

LANGSMITH = "lsv2_pt_0123456789abcdef"


@pytest.mark.promise("P6")
@pytest.mark.parametrize("mode", [Mode.DEV, Mode.DEMO])
async def test_keyless_caller_on_loopback_is_an_agent_that_cannot_decide(build: Builder, mode: Mode) -> None:
    house = await build(mode)
    me = (await house.client().get("/api/me")).json()
    assert me == {
        "kind": "agent",
        "id": "local-agent",
        "name": "local-agent",
        "tenant": "default",
        "scopes": ["items:read", "runs:write"],
    }
    assert not local_agent().may(Scope.DECIDE)


async def test_keyless_caller_cannot_manage_anything(dev_house: House) -> None:
    for path in ("/api/keys", "/api/users", "/api/audit/events", "/api/audit/export", "/api/audit/verification"):
        response = await dev_house.client().get(path)
        assert (response.status_code, response.json()["code"]) == (403, "not_allowed")
        assert response.json()["missing"]


async def test_keyless_caller_in_production_is_refused(house: House) -> None:
    assert (await house.client().get("/api/me")).status_code == 401


@pytest.mark.parametrize("peer", ["192.168.1.7", "10.0.0.1", "::ffff:127.0.0.1", "testclient", ""])
async def test_keyless_caller_from_another_machine_is_refused(dev_house: House, peer: str) -> None:
    assert (await dev_house.client(peer=peer).get("/api/me")).status_code == 401


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.0.0.2", "::1"])
async def test_keyless_caller_from_loopback_is_accepted(dev_house: House, peer: str) -> None:
    assert (await dev_house.client(peer=peer).get("/api/me")).status_code == 200


@pytest.mark.parametrize("header", ["x-forwarded-for", "forwarded", "x-real-ip", "via", "x-forwarded-host"])
async def test_keyless_caller_through_a_proxy_or_tunnel_is_refused(dev_house: House, header: str) -> None:
    """The tunnel runs here, but who is at its other end does not."""
    assert (await dev_house.client().get("/api/me", headers={header: "127.0.0.1"})).status_code == 401


@pytest.mark.parametrize("origin", ["https://evil.example", "http://192.168.1.7:3000", "null"])
async def test_keyless_caller_from_a_page_of_another_origin_is_refused(dev_house: House, origin: str) -> None:
    response = await dev_house.client().post("/api/users", json={"name": "eve"}, headers={"origin": origin})
    assert response.status_code == 401


async def test_a_key_for_another_service_is_ignored(dev_house: House) -> None:
    """Clients send LANGSMITH_API_KEY along by themselves."""
    for headers in ({"x-api-key": LANGSMITH}, {"authorization": f"Bearer {LANGSMITH}"}):
        me = (await dev_house.client().get("/api/me", headers=headers)).json()
        assert me["id"] == "local-agent"


async def test_invalid_own_key_is_refused_and_not_treated_as_keyless(dev_house: House) -> None:
    response = await dev_house.client("asnt_agent_wrong").get("/api/me")
    assert (response.status_code, response.json()["code"]) == (401, "unauthenticated")


async def test_key_for_another_service_in_production_is_refused(house: House) -> None:
    assert (await house.client(LANGSMITH).get("/api/me")).status_code == 401


@pytest.mark.parametrize("mode", [Mode.DEV, Mode.SERVE])
async def test_own_key_is_used_beside_a_key_for_another_service(build: Builder, mode: Mode) -> None:
    house = await build(mode)
    both = {"x-api-key": LANGSMITH, "authorization": f"Bearer {await house.key(Kind.SERVICE)}"}
    assert (await house.client().get("/api/me", headers=both)).json()["kind"] == "service"


async def test_a_scheme_of_another_product_is_never_honoured(house: House) -> None:
    headers = {"x-auth-scheme": "langsmith", "x-api-key": LANGSMITH, "x-user-id": "admin", "x-tenant-id": "default"}
    assert (await house.client().get("/api/me", headers=headers)).status_code == 401


async def test_a_person_who_opens_a_page_is_asked_to_sign_in(dev_house: House) -> None:
    """Pages are for people: nobody sees them as `local-agent`."""
    response = await dev_house.client().get("/inbox?filter=is:pending", headers={"accept": "text/html"})
    assert response.status_code == 303
    assert response.headers["location"] == "/login?next=/inbox%3Ffilter%3Dis%3Apending"
    assert (await dev_house.client().get("/inbox")).status_code == 401
