"""The store API: the rows of graphs, seen by their tenant, by their agent, and as the project's handlers allow."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from assent.identity.model.access import Kind, Role
from assent.settings import Mode
from tests.api.house import Builder, House

PROJECT = Path(__file__).parents[1] / "graphs_store" / "langgraph.json"
ITEMS = "/store/items"
Json = dict[str, Any]


@pytest.fixture
async def served(build_on_both: Builder) -> House:
    return await build_on_both(Mode.SERVE, config=PROJECT)


async def put(client: httpx.AsyncClient, key: str = "k", *namespace: str, **more: Any) -> int:
    body = {"namespace": list(namespace or ("notes",)), "key": key, "value": {"text": key}, **more}
    return (await client.put(ITEMS, json=body)).status_code


async def get(client: httpx.AsyncClient, key: str = "k", namespace: str = "notes", **more: Any) -> Any:
    response = await client.get(ITEMS, params={"namespace": namespace, "key": key, **more})
    assert response.status_code == 200, response.text
    return response.json()


async def keys(client: httpx.AsyncClient, *prefix: str, **more: Any) -> list[str]:
    response = await client.post(f"{ITEMS}/search", json={"namespace_prefix": list(prefix), **more})
    assert response.status_code == 200, response.text
    return [item["key"] for item in response.json()["items"]]


async def namespaces(client: httpx.AsyncClient, **wanted: Any) -> list[list[str]]:
    response = await client.post("/store/namespaces", json=wanted)
    assert response.status_code == 200, response.text
    listed: list[list[str]] = response.json()["namespaces"]
    return listed


async def run(client: httpx.AsyncClient, **put: str) -> Json:
    body = {"assistant_id": "remembering", "input": {"put": put}}
    response = await client.post("/runs/wait", json=body)
    assert response.status_code == 200, response.text
    known: Json = response.json()["known"]
    return known


async def test_graphs_and_callers_see_the_same_items(served: House) -> None:
    agent = served.client(await served.key())
    assert await put(agent, "from a caller") == 204
    assert await run(agent, **{"from a graph": "graph"}) == {"from a caller": "from a caller", "from a graph": "graph"}
    item = await get(agent, "from a graph")
    assert (item["namespace"], item["value"]) == (["notes"], {"text": "graph"})
    assert await keys(agent, "notes") == ["from a graph", "from a caller"]


async def test_an_agent_does_not_see_private_items_of_another(served: House) -> None:
    """In `assent serve`, new items are private, as new threads are. People see all of them."""
    owner, other = served.client(await served.key()), served.client(await served.key())
    person = served.client(await served.person("ana"))
    assert await put(owner, "mine") == 204
    await run(owner, told="graph")
    for key in ("mine", "told"):
        assert await get(other, key) is None
        assert await put(other, key) == 409
        assert (await other.request("DELETE", ITEMS, json={"namespace": ["notes"], "key": key})).status_code == 204
    assert (await keys(other), await namespaces(other)) == ([], [])
    assert set(await keys(owner)) == set(await keys(person)) == {"mine", "told"}
    assert (await get(owner, "mine"))["value"] == {"text": "mine"}


async def test_control_shared_items_are_everyones(build_on_both: Builder) -> None:
    house = await build_on_both(Mode.SERVE, config=PROJECT, thread_visibility="shared")
    owner, other = house.client(await house.key()), house.client(await house.key())
    assert await put(owner) == 204
    assert await keys(other) == ["k"]
    assert await put(other) == 204


async def test_tenants_do_not_share_items(served: House) -> None:
    ours, theirs = served.client(await served.key()), served.client(await served.key(tenant="other"))
    person = served.client(await served.person("eve", Role.ADMIN, tenant="other"))
    assert await put(ours) == 204
    for stranger in (theirs, person):
        assert await get(stranger) is None
        assert (await keys(stranger), await namespaces(stranger)) == ([], [])
        await stranger.request("DELETE", ITEMS, json={"namespace": ["notes"], "key": "k"})
    assert await put(theirs) == 204
    assert (await get(ours))["key"] == "k"


async def test_the_store_needs_the_right_to_run(served: House) -> None:
    viewer = served.client(await served.person("val", Role.VIEWER))
    reader = served.client(await served.key(Kind.AGENT, "items:read"))
    for caller in (viewer, reader):
        assert await put(caller) == 403
        assert (await caller.get(ITEMS, params={"namespace": "notes", "key": "k"})).status_code == 403
        assert (await caller.post(f"{ITEMS}/search", json={})).status_code == 403
        assert (await caller.post("/store/namespaces", json={})).status_code == 403
    assert (await served.client().post("/store/namespaces", json={})).status_code == 401


async def test_lifetimes_end_and_are_refreshed_by_reading(served: House) -> None:
    agent = served.client(await served.key())
    lifetimes: list[tuple[str, Json]] = [("short", {"ttl": 10}), ("default", {}), ("kept", {"ttl": None})]
    for key, ttl in lifetimes:
        assert await put(agent, key, **ttl) == 204
    served.pass_time(timedelta(minutes=9))
    assert (await get(agent, "short", refresh_ttl="true"))["key"] == "short"
    served.pass_time(timedelta(minutes=9))
    assert (await get(agent, "short", refresh_ttl="false"))["key"] == "short"
    served.pass_time(timedelta(minutes=9))
    assert await get(agent, "short") is None
    assert set(await keys(agent, refresh_ttl=False)) == {"default", "kept"}
    served.pass_time(timedelta(minutes=40))
    assert await keys(agent) == ["kept"]
    assert await namespaces(agent) == [["notes"]]


async def test_searching_refreshes_lifetimes_unless_told_otherwise(served: House) -> None:
    agent = served.client(await served.key())
    assert await put(agent, ttl=10) == 204
    for refresh, expected in ((None, ["k"]), (True, ["k"]), (False, ["k"]), (None, [])):
        served.pass_time(timedelta(minutes=8))
        assert await keys(agent, refresh_ttl=refresh) == expected


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        ({"namespace": []}, 400, "Namespace cannot be empty."),
        ({"namespace": ["langgraph", "x"]}, 400, "Root label"),
        ({"namespace": ["a.b"]}, 422, "without periods"),
        ({"namespace": [""]}, 422, "non-empty"),
        ({"namespace": "a"}, 422, "namespace"),
        ({"key": None}, 422, "key"),
        ({"value": [1]}, 422, "value"),
        ({"value": None}, 422, "value"),
        ({"ttl": -1}, 422, "ttl"),
        ({"ttl": "x"}, 422, "ttl"),
        ({"ttl": 1e12}, 422, "ttl"),
        ({"index": True}, 422, "index"),
        ({"index": "x"}, 422, "index"),
        ({"value": {"x": "a\0b"}}, 422, "U+0000"),
    ],
)
async def test_invalid_items_are_refused(dev_house: House, body: Json, status: int, text: str) -> None:
    response = await dev_house.client().put(ITEMS, json={"namespace": ["a"], "key": "k", "value": {}, **body})
    assert (response.status_code, text in response.json()["detail"]) == (status, True), response.text


@pytest.mark.parametrize(
    ("params", "status", "text"),
    [
        ({"namespace": "a"}, 400, "Key is required"),
        ({"namespace": "a", "key": ""}, 400, "Key is required"),
        ({"key": "k"}, 422, "Namespace label ''"),
        ({"namespace": "a..b", "key": "k"}, 422, "Namespace label ''"),
        ({"namespace": "a", "key": "\0"}, 422, "U+0000"),
        ({"namespace": "a\0", "key": "k"}, 422, "Namespace label"),
    ],
)
async def test_invalid_keys_are_refused(dev_house: House, params: Json, status: int, text: str) -> None:
    response = await dev_house.client().get(ITEMS, params=params)
    assert (response.status_code, text in response.json()["detail"]) == (status, True), response.text


async def test_large_pages_are_refused(build_on_both: Builder) -> None:
    house = await build_on_both(Mode.SERVE, config=PROJECT, max_answer_bytes=2_000)
    agent = house.client(await house.key())
    for key in ("a", "b", "c"):
        assert await put(agent, key, value={"text": "x" * 900}) == 204
    assert await keys(agent, limit=2) == ["c", "b"]
    response = await agent.post(f"{ITEMS}/search", json={"limit": 3})
    assert (response.status_code, response.json()["setting"]) == (422, "max_answer_bytes")


INDEXED = PROJECT.with_name("indexed.json")


async def test_items_are_found_by_similarity_also_those_of_graphs(build_on_both: Builder) -> None:
    house = await build_on_both(Mode.SERVE, config=INDEXED)
    owner, other = house.client(await house.key()), house.client(await house.key())
    assert await put(owner, "cat", value={"text": "the cat sleeps"}) == 204
    assert await put(owner, "dog", value={"text": "a dog barks"}, index=False) == 204
    assert await put(owner, "sea", value={"text": "a dog barks", "title": "waves"}, index=["title"]) == 204
    await run(owner, mail="the mail comes")
    body: Json = {"namespace_prefix": ["notes"], "query": "the mail"}
    items = (await owner.post(f"{ITEMS}/search", json=body)).json()["items"]
    assert [item["key"] for item in items] == ["mail", "cat", "sea", "dog"]
    scores = [item["score"] for item in items]
    assert scores[:3] == sorted(scores[:3], reverse=True)
    assert scores[3] is None
    assert await keys(owner, "notes", query="waves", limit=1) == ["sea"]
    assert await keys(owner, "notes", query="waves", filter={"text": "the cat sleeps"}) == ["cat"]
    assert await keys(other, "notes", query="waves") == []
    house_of_two = await keys(owner, "notes", query="cat", limit=2, offset=1)
    assert len(house_of_two) == 2


async def test_pages_of_similar_items_are_limited(build: Builder) -> None:
    house = await build(Mode.SERVE, config=INDEXED, max_answer_bytes=2_000)
    agent = house.client(await house.key())
    for key in ("a", "b", "c"):
        assert await put(agent, key, value={"text": "x" * 900}) == 204
    assert len(await keys(agent, query="x", limit=2)) == 2
    response = await agent.post(f"{ITEMS}/search", json={"limit": 3, "query": "x"})
    assert (response.status_code, response.json()["setting"]) == (422, "max_answer_bytes")


async def test_failing_embedding_is_a_bad_gateway(build: Builder, tmp_path: Path) -> None:
    config = json.loads(INDEXED.read_text())
    for name in ("remembering.py", "guard.py", "embeddings.py"):
        shutil.copy(PROJECT.with_name(name), tmp_path)
    config["store"]["index"]["embed"] = "./embeddings.py:fail"
    (tmp_path / "failing.json").write_text(json.dumps(config))
    house = await build(Mode.SERVE, config=tmp_path / "failing.json")
    agent = house.client(await house.key())
    response = await agent.put(ITEMS, json={"namespace": ["a"], "key": "k", "value": {"text": "x"}})
    assert (response.status_code, response.json()["code"]) == (502, "embedding_failed")
    assert "hunter2" not in response.text
    assert await put(agent, value={"text": "x"}, index=False) == 204


def user(house: House, token: str) -> httpx.AsyncClient:
    return house.client(headers={"authorization": f"Bearer {token}"})


async def test_a_handler_chooses_the_namespace(served: House) -> None:
    ada, bob = user(served, "home:ada"), user(served, "home:bob")
    assert await put(ada) == 204
    assert (await get(ada))["namespace"] == ["ada", "notes"]
    assert await get(bob) is None
    assert (await keys(ada), await keys(bob)) == (["k"], [])
    assert (await namespaces(ada), await namespaces(bob)) == ([["ada", "notes"]], [])
    await bob.request("DELETE", ITEMS, json={"namespace": ["notes"], "key": "k"})
    assert await keys(ada) == ["k"]


async def test_a_handler_refuses_and_its_errors_say_nothing(served: House) -> None:
    assert await put(user(served, "first:ada"), "k", "ada") == 204
    assert await put(user(served, "first:bob"), "k", "ada") == 403
    assert await put(user(served, "deny:ada")) == 403
    assert await put(user(served, "broken:ada")) == 422


async def test_a_filter_of_a_handler_applies_to_every_action(served: House) -> None:
    """LangGraph's own server applies it to searches only."""
    ada, bob = user(served, "filter:ada"), user(served, "filter:bob")
    assert await put(ada, value={"owner": "ada"}) == 204
    assert (await get(ada))["value"] == {"owner": "ada"}
    assert await keys(ada) == ["k"]
    assert await get(bob) is None
    assert (await keys(bob), await namespaces(bob)) == ([], [])
    assert await put(bob, value={"owner": "bob"}) == 409
    await bob.request("DELETE", ITEMS, json={"namespace": ["notes"], "key": "k"})
    assert await keys(ada) == ["k"]
