"""`/api/deployments`: only administrators change them, keys are never shown, and the check names the problem."""

import ssl
from pathlib import Path
from typing import Any

import httpx
import pytest

from assent.identity.model.access import Role
from assent.settings import DeploymentSettings, Mode
from assent.surfaces.api import deployment_webhooks
from tests.api.house import Builder, House
from tests.receiver import receiving
from tests.unit.notify.test_outbound_tls import certificate

SECRET = "lsv2_very_secret"


async def add(admin: httpx.AsyncClient, url: str, **settings: Any) -> dict[str, Any]:
    response = await admin.post("/api/deployments", json={"url": url, **settings})
    assert response.status_code == 201, response.text
    added: dict[str, Any] = response.json()
    return added


async def test_only_administrators_change_deployments(dev_house: House) -> None:
    admin = await dev_house.admin()
    added = await add(admin, "http://127.0.0.1:9", name="far")
    path = f"/api/deployments/{added['id']}"
    others = [dev_house.client(await dev_house.person("ben", Role.REVIEWER)), dev_house.client(await dev_house.key())]
    for other in others:
        assert (await other.get(path)).status_code == 200
        for method, place, body in (
            ("POST", "/api/deployments", {"url": "http://127.0.0.1:9"}),
            ("PATCH", path, {"name": "other"}),
            ("DELETE", path, None),
            ("POST", f"{path}/check", None),
            ("PUT", f"{path}/key", {"key": "k"}),
            ("POST", f"{path}/pause", None),
            ("POST", f"{path}/resume", None),
            ("POST", f"{path}/webhook", None),
            ("DELETE", f"{path}/webhook", None),
        ):
            assert (await other.request(method, place, json=body)).status_code == 403, (method, place)
    assert (await admin.get(path)).json()["name"] == "far"
    assert (await admin.post("/api/deployments", json={"url": "http://127.0.0.1:8", "name": "far"})).status_code == 409


async def test_key_and_headers_are_sent_and_stored_encrypted(dev_house: House) -> None:
    admin = await dev_house.admin()
    async with receiving() as receiver:
        added = await add(admin, receiver.url, key=SECRET, headers={"Authorization": f"Bearer {SECRET}"})
        assert {call.headers.get("x-api-key") for call in receiver.calls} == {SECRET}
        assert {call.headers.get("authorization") for call in receiver.calls} == {f"Bearer {SECRET}"}
    assert added["has_key"] is True
    assert added["headers"] == ["Authorization"]
    rows = await dev_house.services.store.read(
        None, lambda tx: [tuple(row) for row in tx.sql("SELECT * FROM deployments")]
    )
    shown = await admin.get("/api/deployments"), await admin.get("/api/audit/events")
    assert SECRET not in repr(rows) + "".join(response.text for response in shown)
    assert SECRET.encode() not in b"".join(value for row in rows for value in row if isinstance(value, bytes))


async def test_check_names_the_problem(dev_house: House) -> None:
    admin = await dev_house.admin()
    assert (await add(admin, "http://127.0.0.1:9", name="closed port"))["problem"] == "stopped"
    assert (await add(admin, "http://nowhere.invalid", name="no such name"))["problem"] == "unreachable"
    async with receiving() as receiver:
        other = await add(admin, receiver.url, name="something else")
        assert other["problem"] == "not_langgraph"
        assert other["help"] == "docs/troubleshooting.md#not-langgraph"


async def test_check_names_an_untrusted_certificate(dev_house: House, tmp_path: Path) -> None:
    certificate("localhost", tmp_path / "server.pem")
    secured = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    secured.load_cert_chain(tmp_path / "server.pem")
    async with receiving(secured=secured) as receiver:
        assert (await add(await dev_house.admin(), receiver.url))["problem"] == "tls"


async def test_private_address_needs_the_operators_permission(build: Builder) -> None:
    """The control: the same address is accepted where the operator's settings name it."""
    strict, named = await build(Mode.SERVE, secret_key="s" * 32), DeploymentSettings(url="http://10.1.2.3:8000")
    admin = await strict.admin()
    for url in ("http://127.0.0.1:2024", "http://10.1.2.3:8000", "http://169.254.169.254", "file:///etc/passwd"):
        assert (await admin.post("/api/deployments", json={"url": url})).status_code == 422, url
    lenient = await build(Mode.SERVE, secret_key="s" * 32, deployments=(named,))
    [provided] = (await (await lenient.admin()).get("/api/deployments")).json()
    assert provided["url"] == "http://10.1.2.3:8000"
    assert provided["in_file"] is True
    refused = await (await lenient.signed_in("ana", Role.ADMIN)).delete(f"/api/deployments/{provided['id']}")
    assert refused.status_code == 409


async def test_deployments_of_another_tenant_are_not_found(dev_house: House) -> None:
    added = await add(await dev_house.admin(), "http://127.0.0.1:9")
    stranger = await dev_house.admin(tenant="elsewhere")
    assert (await stranger.get(f"/api/deployments/{added['id']}")).status_code == 404
    assert (await stranger.post(f"/api/deployments/{added['id']}/check")).status_code == 404
    assert (await stranger.get("/api/deployments")).json() == []


async def test_webhook_needs_its_secret_and_nothing_else(dev_house: House) -> None:
    admin, anybody = await dev_house.admin(), dev_house.client(peer="203.0.113.9")
    added = await add(admin, "http://127.0.0.1:9")
    path = f"/api/deployments/{added['id']}"
    assert (await anybody.post("/api/deployments/look?token=look_guess")).status_code == 404
    webhook = await admin.post(f"{path}/webhook")
    assert webhook.status_code == 201, webhook.text
    address = webhook.json()["url"]
    assert address.startswith("http://127.0.0.1:2024/api/deployments/look?token=look_")
    assert (await anybody.post(address, content=b"{" * 100_000)).status_code == 204
    shown = (await admin.get(path)).json()
    assert shown["has_webhook"] is True
    assert shown["called_at"] is not None
    rows = await dev_house.services.store.read(
        None, lambda tx: [tuple(row) for row in tx.sql("SELECT * FROM deployments")]
    )
    secret = address.partition("token=")[2]
    assert secret not in repr(rows) + (await admin.get("/api/audit/events")).text + repr(shown)


async def test_webhook_is_replaced_with_the_key_and_removed(dev_house: House) -> None:
    admin, anybody = await dev_house.admin(), dev_house.client()
    path = f"/api/deployments/{(await add(admin, 'http://127.0.0.1:9'))['id']}"
    assert (await admin.put(f"{path}/key", json={"key": "k"})).json()["webhook_url"] is None
    first = (await admin.post(f"{path}/webhook")).json()["url"]
    second = (await admin.post(f"{path}/webhook")).json()["url"]
    third = (await admin.put(f"{path}/key", json={"key": "other"})).json()["webhook_url"]
    assert [(await anybody.post(url)).status_code for url in (first, second, third)] == [404, 404, 204]
    assert (await admin.delete(f"{path}/webhook")).status_code == 204
    assert (await anybody.post(third)).status_code == 404
    assert (await admin.get(path)).json()["has_webhook"] is False


async def test_calls_of_a_webhook_are_limited(build: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deployment_webhooks, "_CALLS_PER_SECOND", 0.001)
    house = await build(Mode.DEV)
    admin, anybody = await house.admin(), house.client()
    webhook = f"/api/deployments/{(await add(admin, 'http://127.0.0.1:9'))['id']}/webhook"
    first = (await admin.post(webhook)).json()["url"]
    assert [(await anybody.post(first)).status_code for _ in range(2)] == [204, 429]
    assert (await anybody.post((await admin.post(webhook)).json()["url"])).status_code == 204
