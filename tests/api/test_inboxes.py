"""Inboxes over REST: saved views of one's own, with clear words about what cannot be."""

from typing import Any

import pytest

from assent.identity.model.access import DEFAULT_TENANT, Role
from tests.api.house import LOOPBACK, Builder, House
from tests.api.reviewing import open_office

SEARCH = {"name": "Risky", "filter": "is:pending risk:high"}


async def test_inbox_is_added_read_changed_and_removed(house: House) -> None:
    ana = house.client(await house.person("ana", Role.VIEWER))
    made = await ana.post("/api/inboxes", json=SEARCH)
    assert made.status_code == 201, made.text
    view = made.json()
    path = f"/api/inboxes/{view['id']}"
    assert view == {
        "id": view["id"],
        **SEARCH,
        "graph_id": None,
        "url": None,
        "local": True,
        "problem": None,
        "count": 0,
        "at_least": False,
    }
    assert (await ana.get("/api/inboxes")).json() == [view]
    assert (await ana.get(path)).json() == view
    changed = await ana.put(path, json={**SEARCH, "name": "Risk"})
    assert (changed.status_code, changed.json()["name"]) == (200, "Risk")
    assert (await ana.delete(path)).json()["name"] == "Risk"
    for method in ("GET", "DELETE"):
        assert (await ana.request(method, path)).status_code == 404
    assert (await ana.get("/api/inboxes")).json() == []


@pytest.mark.promise("INBOX-05", "INBOX-06", "INBOX-07")
async def test_inbox_of_a_graph_on_another_server_is_refused(build: Builder) -> None:
    office = await open_office(build)
    graph = sorted(office.house.engine.project.graphs)[0]
    made = await office.ana.post("/api/inboxes", json={"graph_id": graph})
    assert made.status_code == 201, made.text
    assert (made.json()["name"], made.json()["url"], made.json()["filter"]) == (graph, LOOPBACK, f"graph:{graph}")
    remote = await office.ana.post("/api/inboxes", json={"graph_id": graph, "url": "https://remote.example"})
    assert (remote.status_code, remote.json()["code"]) == (422, "invalid_request")
    assert "an administrator adds it in Settings" in remote.json()["hint"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({}, "either a graph or a search"),
        ({"graph_id": "x"}, "graph or assistant"),
        ({"filter": "refund"}, "needs a name"),
        ({"filter": "colour:blue", "name": "x"}, "unknown field"),
        ({"filter": "f" * 501, "name": "x"}, "500"),
        ({"filter": "refund", "name": "x", "colour": "blue"}, "colour"),
    ],
)
async def test_invalid_inbox_is_422_with_the_reason(house: House, body: dict[str, Any], why: str) -> None:
    ana = house.client(await house.person("ana"))
    refused = await ana.post("/api/inboxes", json=body)
    assert refused.status_code == 422
    assert why in refused.text


async def test_repeated_idempotency_key_adds_one_inbox(house: House) -> None:
    ana, once = house.client(await house.person("ana")), {"Idempotency-Key": "one"}
    answers = [await ana.post("/api/inboxes", json=SEARCH, headers=once) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    other = await ana.post("/api/inboxes", json={**SEARCH, "name": "Other"}, headers=once)
    assert other.json()["code"] == "key_reused"


async def test_inboxes_are_private_and_erased_with_their_owner(house: House) -> None:
    ana, ben = house.client(await house.person("ana")), house.client(await house.person("ben"))
    made = (await ana.post("/api/inboxes", json=SEARCH)).json()
    assert (await ben.get(f"/api/inboxes/{made['id']}")).status_code == 404
    assert (await ben.put(f"/api/inboxes/{made['id']}", json=SEARCH)).status_code == 404
    admin = await house.admin()
    assert (await admin.delete("/api/users/ana")).status_code == 200
    left = await house.services.store.read(None, lambda tx: tx.sql("SELECT count(*) FROM inboxes").first())
    assert left is not None
    assert left[0] == 0, f"the names that ana gave are gone from {DEFAULT_TENANT}"
