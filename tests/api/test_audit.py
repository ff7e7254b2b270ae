"""The timeline over REST: who may read it, what it shows, and that it verifies."""

import json

import pytest

from assent.domain.access import Kind, Role
from assent.services.audit import verify_export
from assent.store.tables import event_payloads
from tests.api.house import House


@pytest.mark.promise("P9")
async def test_every_change_over_rest_is_told_with_who_and_what(house: House) -> None:
    admin = await house.admin()
    me = (await admin.get("/api/me")).json()
    await admin.post("/api/users", json={"name": "ana"})
    await admin.patch("/api/users/ana", json={"role": "viewer"})
    await admin.patch("/api/users/ana", json={"disabled": True})
    await admin.patch("/api/users/ana", json={"disabled": False})
    await admin.post("/api/users/ana/login-link")
    key = (await admin.post("/api/keys", json={"kind": "agent", "name": "bot"})).json()["key"]
    await admin.delete(f"/api/keys/{key['id']}")
    await admin.delete("/api/users/ana")
    events = (await admin.get(f"/api/audit/events?actor=reviewer:{me['id']}")).json()["items"]
    assert [event["kind"] for event in reversed(events)] == [
        "user.created",
        "user.role_changed",
        "user.disabled",
        "user.enabled",
        "user.login_link_created",
        "key.created",
        "key.revoked",
        "payload.erased",
    ]


@pytest.mark.promise("P9")
async def test_an_export_is_checked_without_the_server(house: House) -> None:
    admin = await house.admin()
    response = await admin.get("/api/audit/export")
    assert response.headers["content-type"].startswith("application/x-ndjson")
    lines = response.text.splitlines()
    assert not verify_export(lines).breaks
    head = json.loads(lines[-1])["head"]
    verdict = (await admin.get("/api/audit/verification", params={"seq": head["seq"], "hash": head["hash"]})).json()
    assert verdict == {"ok": True, "seq": head["seq"], "hash": head["hash"], "breaks": []}
    wrong = (await admin.get("/api/audit/verification", params={"seq": head["seq"], "hash": "0" * 64})).json()
    assert not wrong["ok"]


async def test_secrets_are_in_no_event(house: House) -> None:
    admin = await house.admin()
    secret = (await admin.post("/api/keys", json={"kind": "agent", "name": "bot"})).json()["secret"]
    token = (await admin.post("/api/users/admin/login-link")).json()["token"]
    text = (await admin.get("/api/audit/export")).text
    assert secret not in text
    assert token not in text


@pytest.mark.parametrize("path", ["/api/audit/events", "/api/audit/verification", "/api/audit/export"])
async def test_only_those_with_the_right_read_it(house: House, path: str) -> None:
    for secret in (await house.key(), await house.person("ana", Role.REVIEWER)):
        response = await house.client(secret).get(path)
        assert (response.status_code, response.json()["missing"]) == (403, ["audit:read"])
    service = house.client(await house.key(Kind.SERVICE, "audit:read"))
    assert (await service.get(path)).status_code == 200


async def test_only_administrators_erase(house: House) -> None:
    service = house.client(await house.key(Kind.SERVICE, "audit:read"))
    assert (await service.post("/api/audit/erasures", json={"subject": "key:1"})).status_code == 403


@pytest.mark.parametrize("query", ["seq=0", "hash=xyz", "seq=x", "limit=0"])
async def test_a_wrong_question_is_422(house: House, query: str) -> None:
    path = "events" if "limit" in query else "verification"
    assert (await (await house.admin()).get(f"/api/audit/{path}?{query}")).status_code == 422


async def test_half_a_head_is_refused_and_not_ignored(house: House) -> None:
    admin = await house.admin()
    for query in ("seq=1", f"hash={'0' * 64}"):
        response = await admin.get(f"/api/audit/verification?{query}")
        assert (response.status_code, response.json()["code"]) == (422, "invalid_request")


@pytest.mark.parametrize("subject", ["ben", "user:", "", "user: ben"])
async def test_an_erasure_needs_something_that_events_are_about(house: House, subject: str) -> None:
    refused = await (await house.admin()).post("/api/audit/erasures", json={"subject": subject})
    assert refused.status_code == 422


async def test_an_erasure_of_a_person_says_how_it_is_done(house: House) -> None:
    refused = await (await house.admin()).post("/api/audit/erasures", json={"subject": "user:ben"})
    assert refused.status_code == 422
    assert "/api/users/" in refused.json()["hint"]


async def test_a_payload_that_belongs_to_no_event_is_found(house: House) -> None:
    admin = await house.admin()
    await house.services.store.write("default", lambda tx: tx.insert(event_payloads, seq=99, payload="{}"))
    verdict = (await admin.get("/api/audit/verification")).json()
    assert verdict["breaks"] == [{"seq": 99, "reason": "a payload that belongs to no event"}]
