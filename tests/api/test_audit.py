"""The timeline over REST: who may read it, what it shows, and that it verifies."""

import json
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

from assent.audit.service import verify_export
from assent.audit.signatures import PublicKeys
from assent.identity.model.access import Kind, Role
from assent.kernel.store.tables import event_payloads
from assent.kernel.timeline import SignedHead
from tests.api.house import Builder, House
from tests.api.reviewing import SECRET_KEY
from tests.waiting import until


@pytest.mark.promise("P9")
async def test_every_change_over_rest_is_recorded_with_actor_and_subject(house: House) -> None:
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
    assert verdict == {
        "ok": True,
        "seq": head["seq"],
        "hash": head["hash"],
        "breaks": [],
        "signed": 0,
        "signed_until": 0,
    }
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
async def test_timeline_is_read_only_with_its_scope(house: House, path: str) -> None:
    for secret in (await house.key(), await house.person("ana", Role.REVIEWER)):
        response = await house.client(secret).get(path)
        assert (response.status_code, response.json()["missing"]) == (403, ["audit:read"])
    service = house.client(await house.key(Kind.SERVICE, "audit:read"))
    assert (await service.get(path)).status_code == 200


async def test_only_administrators_erase(house: House) -> None:
    service = house.client(await house.key(Kind.SERVICE, "audit:read"))
    assert (await service.post("/api/audit/erasures", json={"subject": "key:1"})).status_code == 403


@pytest.mark.parametrize("query", ["seq=0", "hash=xyz", "seq=x", "limit=0"])
async def test_invalid_query_is_422(house: House, query: str) -> None:
    path = "events" if "limit" in query else "verification"
    assert (await (await house.admin()).get(f"/api/audit/{path}?{query}")).status_code == 422


async def test_incomplete_head_is_refused(house: House) -> None:
    admin = await house.admin()
    for query in ("seq=1", f"hash={'0' * 64}"):
        response = await admin.get(f"/api/audit/verification?{query}")
        assert (response.status_code, response.json()["code"]) == (422, "invalid_request")


@pytest.mark.parametrize("subject", ["ben", "user:", "", "user: ben"])
async def test_erasure_of_an_invalid_subject_is_refused(house: House, subject: str) -> None:
    refused = await (await house.admin()).post("/api/audit/erasures", json={"subject": subject})
    assert refused.status_code == 422


async def test_erasure_of_a_person_refers_to_the_users_route(house: House) -> None:
    refused = await (await house.admin()).post("/api/audit/erasures", json={"subject": "user:ben"})
    assert refused.status_code == 422
    assert "/api/users/" in refused.json()["hint"]


async def test_a_payload_that_belongs_to_no_event_is_found(house: House) -> None:
    admin = await house.admin()
    await house.services.store.write("default", lambda tx: tx.insert(event_payloads, seq=99, payload="{}"))
    verdict = (await admin.get("/api/audit/verification")).json()
    assert verdict["breaks"] == [{"seq": 99, "reason": "a payload that belongs to no event"}]


@pytest.mark.promise("P9")
async def test_a_server_signs_heads_on_a_schedule_and_compares_the_chain_with_them(
    build: Builder, tmp_path: Path
) -> None:
    file = tmp_path / "heads.jsonl"
    every = timedelta(milliseconds=100)
    house = await build(secret_key=SECRET_KEY, audit_anchor_file=file, audit_anchor_every=every)
    admin = await house.admin()

    async def verdict() -> dict[str, object]:
        body: dict[str, object] = (await admin.get("/api/audit/verification")).json()
        return body

    async def covered() -> bool:
        verification = await verdict()
        return verification["signed_until"] == verification["seq"]

    await until(covered)
    assert (await verdict())["ok"]
    head = SignedHead.from_json((await admin.get("/api/audit/head")).json())
    pem = (await admin.get("/api/audit/public-key")).text
    assert PublicKeys([pem.encode()]).flaw(head) is None
    assert verify_export(
        (await admin.get("/api/audit/export")).text.splitlines(), keys=PublicKeys([pem.encode()])
    ).signed
    with sqlite3.connect(str(house.settings.database_file)) as connection:
        connection.execute("UPDATE event_heads SET seq = 0, hash = ?", ("0" * 64,))
        connection.execute("DELETE FROM events")
        connection.execute("DELETE FROM event_payloads")
    verification = await verdict()
    assert (verification["ok"], verification["breaks"]) == (
        False,
        [{"seq": head.seq, "reason": "events up to the signed head are missing"}],
    )


@pytest.mark.parametrize("path", ["head", "public-key"])
async def test_signed_heads_need_the_right_to_read_the_timeline(house: House, path: str) -> None:
    ana = house.client(await house.person("ana"))
    assert (await ana.get(f"/api/audit/{path}")).status_code == 403
    auditor = house.client(await house.key(Kind.SERVICE, "audit:read"))
    assert (await auditor.get(f"/api/audit/{path}")).status_code == (200 if path == "head" else 409)
