"""The outbox over REST: seen by those who may read, tried again by those who may run, one tenant's never another's."""

import asyncio
from dataclasses import replace

import pytest

from assent.errors import Forbidden
from assent.identity.auth_users import read_user
from assent.identity.model.access import Kind, Role, operator
from assent.outbox import deliveries
from assent.outbox.model import WEBHOOK, DeliveryStatus
from tests.api.house import Builder, House
from tests.receiver import PATIENCE, receiving, verified

KEY = "0123456789abcdef0123456789abcdef"
BODY = '{"run_id":"r1","n":12345678901234567890123}'


@pytest.fixture
async def house(build: Builder) -> House:
    return await build(secret_key=KEY)


async def failed(house: House, *, tenant: str = "default", subject: str = "run:r1") -> str:
    """A delivery that has failed for good: its target may not be called."""
    store = house.services.store
    target = "http://10.0.0.1/hook"
    delivery_id = await store.write(tenant, deliveries.add, WEBHOOK, subject=subject, target=target, body=BODY)
    await becomes(house, delivery_id, DeliveryStatus.FAILED, tenant=tenant)
    return delivery_id


async def becomes(house: House, delivery_id: str, status: DeliveryStatus, *, tenant: str = "default") -> None:
    """Returns as soon as the sender has brought it there."""
    async with asyncio.timeout(PATIENCE):
        while (delivery_row := await house.services.store.read(tenant, deliveries.get, delivery_id)) is not None:
            if delivery_row.status is status:
                return


async def test_failed_delivery_is_shown_with_reason_and_body(house: House) -> None:
    delivery_id = await failed(house)
    viewer = house.client(await house.person("vera", Role.VIEWER))
    (listed,) = (await viewer.get("/api/deliveries?status=failed")).json()["items"]
    assert listed["id"] == delivery_id
    assert (listed["subject"], listed["target"], listed["attempts"]) == ("run:r1", "http://10.0.0.1", 1)
    assert (listed["failure"], listed["due_at"]) == ("10.0.0.1 is not at a public address", None)
    assert "body" not in listed
    response = await viewer.get(f"/api/deliveries/{delivery_id}")
    assert response.json() == listed | {"body": {"run_id": "r1", "n": 12345678901234567890123}}
    assert "12345678901234567890123" in response.text, "digit for digit"


async def test_filters_narrow_the_list(house: House) -> None:
    first, two = await failed(house), await failed(house, subject="run:r2")
    client = house.client(await house.person("vera", Role.VIEWER))
    for query, expected in (
        ("", [two, first]),
        ("subject=run:r2", [two]),
        ("status=delivered", []),
        ("limit=1", [two]),
    ):
        items = (await client.get(f"/api/deliveries?{query}")).json()["items"]
        assert [item["id"] for item in items] == expected
    assert (await client.get("/api/deliveries?status=lost")).status_code == 422
    assert (await client.get("/api/deliveries/none")).status_code == 404


async def test_manual_retry_is_sent_at_once_and_recorded_in_the_timeline(build: Builder) -> None:
    house = await build(secret_key=KEY, outbound_allow=("127.0.0.1",))
    admin = await house.admin()
    async with receiving() as receiver:
        receiver.answers.append("410 Gone")
        target, store = f"{receiver.url}/hook", house.services.store
        delivery_id = await store.write("default", deliveries.add, WEBHOOK, subject="run:r1", target=target, body=BODY)
        await receiver.has(1)
        await becomes(house, delivery_id, DeliveryStatus.FAILED)
        again = await admin.post(f"/api/deliveries/{delivery_id}/retry")
        assert again.status_code == 200
        assert again.json()["status"] in ("pending", "sending"), "no longer failed"
        first, second = await receiver.has(2)
        assert first.id == second.id == delivery_id
        secret = (await admin.get("/api/webhooks/secret")).json()["secret"]
        assert verified(second, secret)
        await becomes(house, delivery_id, DeliveryStatus.DELIVERED)
        arrived = (await admin.get(f"/api/deliveries/{delivery_id}")).json()
    assert (arrived["body"], arrived["failure"]) == (None, None)
    refused = await admin.post(f"/api/deliveries/{delivery_id}/retry")
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    (event,) = (await admin.get(f"/api/audit/events?subject=delivery:{delivery_id}")).json()["items"]
    assert event["kind"] == "delivery.retried"


async def test_reading_and_retrying_need_their_scopes(house: House) -> None:
    delivery_id = await failed(house)
    rights = {
        "viewer": (await house.person("vera", Role.VIEWER), (200, 403, 403)),
        "reviewer": (await house.person("rita", Role.REVIEWER), (200, 200, 403)),
        "agent": (await house.key(Kind.AGENT, "items:create"), (403, 403, 403)),
        "admin": (await house.person("ada", Role.ADMIN), (200, None, 200)),
    }
    for name, (key, (read, retry, secret)) in rights.items():
        client = house.client(key)
        assert (await client.get(f"/api/deliveries/{delivery_id}")).status_code == read, name
        if retry:
            assert (await client.post(f"/api/deliveries/{delivery_id}/retry")).status_code == retry, name
        assert (await client.get("/api/webhooks/secret")).status_code == secret, name


@pytest.mark.promise("P10")
async def test_delivery_of_another_tenant_is_404(house: House) -> None:
    delivery_id = await failed(house, tenant="other")
    admin = await house.admin()
    assert (await admin.get("/api/deliveries")).json()["items"] == []
    assert (await admin.get(f"/api/deliveries/{delivery_id}")).status_code == 404
    assert (await admin.post(f"/api/deliveries/{delivery_id}/retry")).status_code == 404
    ours = (await admin.get("/api/webhooks/secret")).json()["secret"]
    others = house.client(await house.person("oda", Role.ADMIN, tenant="other"))
    assert (await others.get("/api/webhooks/secret")).json()["secret"] != ours
    assert KEY not in ours


async def test_settled_deliveries_are_pruned_after_retention(build: Builder) -> None:
    house = await build(secret_key=KEY)
    await failed(house)
    assert (await house.services.retention.prune()).deliveries == 0
    house.pass_time(house.settings.retention_deliveries)
    assert (await house.services.retention.prune()).deliveries == 1


@pytest.mark.promise("P10")
async def test_user_of_an_auth_handler_does_not_see_deliveries_of_others_runs(house: House) -> None:
    delivery_id = await failed(house)
    outbox, reader = house.services.deliveries, operator()
    assert (await outbox.get(reader, delivery_id)).id == delivery_id, (
        "control: the same rights from a credential of ours"
    )
    handled = replace(reader, user=read_user({"identity": "ana", "permissions": []}))
    with pytest.raises(Forbidden):
        await outbox.list(handled)
    with pytest.raises(Forbidden):
        await outbox.get(handled, delivery_id)
    with pytest.raises(Forbidden):
        await outbox.retry(handled, delivery_id)
