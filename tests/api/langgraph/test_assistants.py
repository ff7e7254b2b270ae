"""Assistants over the LangGraph API: the contract's shapes, statuses and texts, on SQLite and on Postgres."""

import asyncio
from typing import Any

import httpx
import pytest

from assent.threads.rows import threads
from tests.api.langgraph.server import Server
from tests.contract.stores import AnyStore, both_databases

pytestmark = both_databases

ECHO = "046b5dc7-2108-582c-9c6c-31d556d138f0"
NOBODY = "00000000-0000-4000-8000-000000000000"
BOTH = "Cannot specify both configurable and context. Prefer setting context alone."
REFUSED_CREATES: list[tuple[Any, int, str]] = [
    ({"graph_id": "nope"}, 404, "Graph 'nope' not found. Expected one of: ['breakpoint', 'chat',"),
    ({"graph_id": "echo", "assistant_id": "mine"}, 422, "Invalid assistant ID: must be a UUID"),
    ({}, 422, "graph_id: Field required"),
    ({"graph_id": 7}, 422, "graph_id: Input should be a valid string"),
    ({"graph_id": "echo", "if_exists": "replace"}, 422, "if_exists: Input should be 'raise' or 'do_nothing'"),
    ({"graph_id": "echo", "config": {"recursion_limit": "5"}}, 422, "config.recursion_limit: "),
    ({"graph_id": "echo", "config": {"configurable": []}}, 422, "config.configurable: "),
    ({"graph_id": "echo", "metadata": "x"}, 422, "metadata: "),
    ({"graph_id": "echo", "name": "nul \0"}, 422, "a text in the body contains the character U+0000"),
    ([], 422, "body: Input should be a valid dictionary"),
]
REFUSED_SEARCHES: list[tuple[dict[str, Any], int]] = [
    ({"limit": 0}, 422),
    ({"limit": 1001}, 422),
    ({"limit": "10"}, 422),
    ({"offset": -1}, 422),
    ({"sort_by": "metadata"}, 422),
    ({"sort_order": "up"}, 422),
    ({"select": ["secret"]}, 422),
    ({"metadata": {'a"b': 1}}, 422),
    ({"metadata": {"a": {"\n": 1}}}, 422),
    ({"metadata": {"k" * 1001: 1}}, 422),
    ({"metadata": {f"k{number}": 1 for number in range(200)}}, 422),
    ({"graph_id": "nope"}, 404),
]


async def create(client: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    response = await client.post("/assistants", json={"graph_id": "echo", **body})
    assert response.status_code == 200, response.text
    made: dict[str, Any] = response.json()
    return made


async def names(client: httpx.AsyncClient, **body: Any) -> list[str]:
    response = await client.post("/assistants/search", json={"limit": 1000, **body})
    assert response.status_code == 200, response.text
    return [assistant["name"] for assistant in response.json()]


async def test_default_assistant_of_a_graph_has_the_contracts_fields(client: httpx.AsyncClient) -> None:
    response = await client.get(f"/assistants/{ECHO}")
    assert response.status_code == 200
    own = response.json()
    assert own.pop("created_at") == own.pop("updated_at")
    assert own == {
        "assistant_id": ECHO,
        "graph_id": "echo",
        "config": {},
        "context": {},
        "metadata": {"created_by": "system"},
        "name": "echo",
        "version": 1,
        "owner": None,
        "description": "Says back what it is told.",
    }


async def test_create_returns_the_whole_assistant_with_its_defaults(client: httpx.AsyncClient) -> None:
    made = await create(client)
    assert {key: made[key] for key in ("name", "version", "description", "config", "context", "metadata")} == {
        "name": "Untitled",
        "version": 1,
        "description": None,
        "config": {},
        "context": {},
        "metadata": {},
    }
    assert made["created_at"].endswith("+00:00")
    assert (await client.get(f"/assistants/{made['assistant_id']}")).json() == made


async def test_config_and_context_mirror_each_other(client: httpx.AsyncClient) -> None:
    by_config = await create(client, config={"tags": ["a"], "configurable": {"model": "m"}})
    assert by_config["context"] == {"model": "m"}
    by_context = await create(client, context={"model": "m"}, config={"tags": ["a"]})
    assert by_context["config"] == {"tags": ["a"], "configurable": {"model": "m"}}
    both = await client.post(
        "/assistants", json={"graph_id": "echo", "config": {"configurable": {"a": 1}}, "context": {"a": 1}}
    )
    assert (both.status_code, both.json()["detail"]) == (400, BOTH)


async def test_reserved_keys_are_left_out_silently(client: httpx.AsyncClient) -> None:
    made = await create(
        client,
        metadata={"thread_id": "t", "run_id": "r", "assistant_id": "a", "cron_id": "c", "mine": 1},
        context={"__pregel_resume_map": {}, "langgraph_auth_user": "root", "thread_id": "t", "model": "m"},
    )
    assert made["metadata"] == {"mine": 1}
    assert made["context"] == {"model": "m"}
    assert made["config"] == {"configurable": {"model": "m"}}


async def test_create_with_a_chosen_id_succeeds_once(client: httpx.AsyncClient) -> None:
    made = await create(client, assistant_id=NOBODY.upper().replace("-", ""), name="first")
    assert made["assistant_id"] == NOBODY
    again = await client.post("/assistants", json={"graph_id": "echo", "assistant_id": NOBODY})
    assert (again.status_code, again.json()["detail"]) == (409, f"Assistant {NOBODY} already exists")
    kept = await create(client, assistant_id=NOBODY, name="second", if_exists="do_nothing")
    assert kept == made


async def test_invalid_create_is_refused_with_the_reason(client: httpx.AsyncClient) -> None:
    for body, status, detail in REFUSED_CREATES:
        response = await client.post("/assistants", json=body)
        assert response.status_code == status, body
        assert response.json()["detail"].startswith(detail), body
        assert response.json()["code"]


async def test_null_is_the_same_as_absent_and_unknown_keys_are_ignored(client: httpx.AsyncClient) -> None:
    made = await create(client, name=None, config=None, metadata=None, if_exists=None, something_newer=1)
    assert made["name"] == "Untitled"


async def test_search_finds_by_graph_name_and_metadata(client: httpx.AsyncClient) -> None:
    await create(client, name="Sales bot", metadata={"team": {"name": "sales", "size": 3}, "tags": ["a", "b"]})
    await create(client, name="sales helper", metadata={"team": {"name": "sales"}}, graph_id="slow")
    await create(client, name="100%_sure", metadata={"team": "sales"})
    assert await names(client, graph_id="slow") == ["sales helper", "slow"]
    assert await names(client, name="SALES") == ["sales helper", "Sales bot"]
    assert await names(client, name="%_") == ["100%_sure"]
    assert await names(client, metadata={"team": {"name": "sales"}}) == ["sales helper", "Sales bot"]
    assert await names(client, metadata={"tags": ["b"]}, graph_id="echo") == ["Sales bot"]
    assert await names(client, metadata={"team": {"size": 4}}) == []
    assert len(await names(client, metadata={"created_by": "system"})) == len(await names(client)) - 3


async def test_count_counts_what_search_finds(client: httpx.AsyncClient) -> None:
    for number in range(3):
        await create(client, name=f"number {number}", metadata={"mine": True})
    for body in ({"metadata": {"mine": True}}, {"name": "number 1"}, {"graph_id": "echo"}, {}):
        count = await client.post("/assistants/count", json=body)
        assert count.json() == len(await names(client, **body))
    missing = await client.post("/assistants/count", json={"graph_id": "nope"})
    assert missing.status_code == 404


async def test_pages_give_the_total_and_the_next_offset(client: httpx.AsyncClient) -> None:
    for number in range(5):
        await create(client, name=f"{number}", metadata={"mine": True})
    seen: list[str] = []
    offset: str | None = "0"
    while offset is not None:
        body = {"metadata": {"mine": True}, "limit": 2, "offset": int(offset)}
        response = await client.post("/assistants/search", json=body)
        assert response.headers["x-pagination-total"] == "5"
        seen += [assistant["name"] for assistant in response.json()]
        offset = response.headers.get("x-pagination-next")
    assert seen == ["4", "3", "2", "1", "0"]
    beyond = await client.post("/assistants/search", json={"metadata": {"mine": True}, "offset": 7})
    assert (beyond.json(), beyond.headers["x-pagination-total"]) == ([], "5")


async def test_search_sorts_and_selects(client: httpx.AsyncClient) -> None:
    for name in ("b", "C", "a"):
        await create(client, name=name, metadata={"mine": True})
    mine = {"metadata": {"mine": True}}
    assert await names(client, **mine) == ["a", "C", "b"]
    assert await names(client, **mine, sort_order="asc") == ["b", "C", "a"]
    assert await names(client, **mine, sort_by="name", sort_order="asc") == ["a", "b", "C"]
    selected = await client.post("/assistants/search", json={**mine, "select": ["name", "version"], "limit": 1})
    assert selected.json() == [{"name": "a", "version": 1}]


async def test_invalid_search_is_refused(client: httpx.AsyncClient) -> None:
    for body, status in REFUSED_SEARCHES:
        response = await client.post("/assistants/search", json=body)
        assert response.status_code == status, body
        assert isinstance(response.json()["detail"], str)


async def test_malformed_id_is_422_and_unknown_id_is_404(client: httpx.AsyncClient) -> None:
    for path in ("", "/schemas", "/subgraphs"):
        by_name = await client.get(f"/assistants/echo{path}")
        assert (by_name.status_code, by_name.json()["detail"]) == (422, "Invalid assistant ID: must be a UUID")
        unknown = await client.get(f"/assistants/{NOBODY}{path}")
        assert (unknown.status_code, unknown.json()["detail"]) == (404, "Not Found")
    by_name = await client.post("/assistants/echo/versions", json={})
    assert by_name.status_code == 422


async def test_a_change_makes_a_version_and_merges_metadata(client: httpx.AsyncClient) -> None:
    made = await create(client, name="one", metadata={"a": 1, "b": {"x": 1}}, config={"tags": ["t"]}, context={"m": 1})
    path = f"/assistants/{made['assistant_id']}"
    changed = (await client.patch(path, json={"metadata": {"b": {"y": 2}, "run_id": "r"}, "context": {"m": 2}})).json()
    assert changed["version"] == 2
    assert changed["metadata"] == {"a": 1, "b": {"y": 2}}
    assert changed["config"] == {"tags": ["t"], "configurable": {"m": 2}}
    assert (changed["name"], changed["created_at"]) == ("one", made["created_at"])
    assert changed["updated_at"] > made["updated_at"]
    cleared = (await client.patch(path, json={"context": {}, "graph_id": "slow"})).json()
    assert (cleared["config"], cleared["context"], cleared["graph_id"]) == ({"tags": ["t"]}, {}, "slow")
    replaced = (await client.patch(path, json={"config": {"configurable": {"m": 3}}})).json()
    assert (replaced["config"], replaced["context"]) == ({"configurable": {"m": 3}}, {"m": 3})
    untouched = (await client.patch(path, json={"config": {}, "name": "two"})).json()
    assert (untouched["config"], untouched["name"], untouched["version"]) == (replaced["config"], "two", 5)
    assert (await client.get(path)).json() == untouched


async def test_invalid_change_leaves_the_assistant_unchanged(client: httpx.AsyncClient) -> None:
    made = await create(client)
    path = f"/assistants/{made['assistant_id']}"
    both = await client.patch(path, json={"config": {"configurable": {"a": 1}}, "context": {"b": 1}})
    assert (both.status_code, both.json()["detail"]) == (400, BOTH)
    assert (await client.patch(path, json={"graph_id": "nope"})).status_code == 404
    unknown = await client.patch(f"/assistants/{NOBODY}", json={"name": "x"})
    assert (unknown.status_code, unknown.json()["detail"]) == (404, f"Assistant {NOBODY} not found")
    assert (await client.get(path)).json() == made


async def test_concurrent_changes_make_one_version_each(client: httpx.AsyncClient) -> None:
    path = f"/assistants/{(await create(client))['assistant_id']}"
    answers = await asyncio.gather(*(client.patch(path, json={"metadata": {f"k{n}": n}}) for n in range(8)))
    assert sorted(answer.json()["version"] for answer in answers) == list(range(2, 10))
    assert (await client.get(path)).json()["metadata"] == {f"k{n}": n for n in range(8)}


async def test_versions_come_newest_first_without_updated_at(client: httpx.AsyncClient) -> None:
    made = await create(client, metadata={"stage": "old"})
    path = f"/assistants/{made['assistant_id']}"
    for stage in ("new", "newest"):
        await client.patch(path, json={"metadata": {"stage": stage}})
    body = (await client.post(f"{path}/versions", json={})).json()
    assert [version["version"] for version in body] == [3, 2, 1]
    assert body[2] == {key: value for key, value in made.items() if key not in ("updated_at", "owner")}
    filtered = await client.post(f"{path}/versions", json={"metadata": {"stage": "new"}})
    assert [version["version"] for version in filtered.json()] == [2]
    paged = await client.post(f"{path}/versions", json={"limit": 1, "offset": 1})
    assert [version["version"] for version in paged.json()] == [2]
    none = await client.post(f"/assistants/{NOBODY}/versions", json={})
    assert none.status_code == 404


async def test_earlier_version_is_restored_completely(client: httpx.AsyncClient) -> None:
    made = await create(client, name="one", context={"m": 1}, description="first")
    path = f"/assistants/{made['assistant_id']}"
    change = {"name": "two", "context": {"m": 2}, "graph_id": "slow", "description": "second"}
    await client.patch(path, json=change)
    back = (await client.post(f"{path}/latest", json={"version": 1})).json()
    assert {**back, "updated_at": None} == {**made, "updated_at": None}
    assert (await client.get(path)).json() == back
    after = (await client.patch(path, json={"name": "three"})).json()
    assert (after["version"], after["context"]) == (3, {"m": 1})
    missing = await client.post(f"{path}/latest", json={"version": 9})
    assert missing.status_code == 404
    assert missing.json()["detail"].startswith("Version 9 not found")
    assert (await client.post(f"{path}/latest", json={})).status_code == 422


async def test_deleted_assistant_is_gone_with_its_versions(client: httpx.AsyncClient) -> None:
    made = await create(client)
    path = f"/assistants/{made['assistant_id']}"
    deleted = await client.delete(path)
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert (await client.get(path)).status_code == 404
    assert (await client.delete(path)).status_code == 404
    assert (await client.post(f"{path}/versions", json={})).status_code == 404
    again = await create(client, assistant_id=made["assistant_id"])
    assert again["version"] == 1


async def test_delete_removes_threads_only_when_asked(store: AnyStore, client: httpx.AsyncClient) -> None:
    first, other = await create(client), await create(client)

    def conversations(tx: Any) -> None:
        for number in range(450):
            assert threads.insert(tx, f"one-{number}", {"assistant_id": first["assistant_id"]})
        assert threads.insert(tx, "other", {"assistant_id": other["assistant_id"]})
        assert threads.insert(tx, "nobodys", {})

    await store.write("default", conversations)
    assert (await client.delete(f"/assistants/{other['assistant_id']}")).status_code == 204
    deleted = await client.delete(f"/assistants/{first['assistant_id']}?delete_threads=true")
    assert deleted.status_code == 204
    left = await store.read(
        "default", lambda tx: [threads.get(tx, name) for name in ("one-0", "one-449", "other", "nobodys")]
    )
    assert [thread is not None for thread in left] == [False, False, True, True]
    unknown = await client.delete(f"/assistants/{NOBODY}?delete_threads=true")
    assert unknown.status_code == 404


@pytest.mark.promise("P10")
async def test_assistants_of_another_tenant_are_404(server: Server, client: httpx.AsyncClient) -> None:
    theirs = await server.client(tenant="acme")
    made = await create(theirs, name="theirs")
    path = f"/assistants/{made['assistant_id']}"
    assert (await client.get(path)).status_code == 404
    assert (await client.patch(path, json={"name": "mine"})).status_code == 404
    assert (await client.delete(path)).status_code == 404
    assert (await client.post(f"{path}/versions", json={})).status_code == 404
    assert (await client.post(f"{path}/latest", json={"version": 1})).status_code == 404
    assert "theirs" not in await names(client)
    assert (await theirs.get(path)).json() == made


async def test_reading_and_changing_need_their_own_scopes(server: Server) -> None:
    reader = await server.client("items:read")
    assert (await reader.get(f"/assistants/{ECHO}")).status_code == 200
    assert (await reader.post("/assistants/search", json={})).status_code == 200
    for refused in (
        await reader.post("/assistants", json={"graph_id": "echo"}),
        await reader.patch(f"/assistants/{ECHO}", json={"name": "x"}),
        await reader.post(f"/assistants/{ECHO}/latest", json={"version": 1}),
        await reader.delete(f"/assistants/{ECHO}"),
    ):
        assert (refused.status_code, refused.json()["missing"]) == (403, ["runs:write"])
    commenter = await server.client("comments:write")
    assert (await commenter.get(f"/assistants/{ECHO}")).status_code == 403
    assert (await commenter.post("/assistants/count", json={})).status_code == 403


async def test_stock_client_manages_assistants(server: Server) -> None:
    sdk = await server.sdk()
    made = await sdk.assistants.create("echo", context={"m": 1}, metadata={"mine": True}, name="sdk")
    assert await sdk.assistants.get(made["assistant_id"]) == made
    changed = await sdk.assistants.update(made["assistant_id"], context={"m": 2})
    assert changed["version"] == 2
    assert len(await sdk.assistants.get_versions(made["assistant_id"])) == 2
    assert (await sdk.assistants.set_latest(made["assistant_id"], 1))["context"] == {"m": 1}
    matching_assistants = await sdk.assistants.search(metadata={"mine": True}, response_format="object")
    assert [assistant["name"] for assistant in matching_assistants["assistants"]] == ["sdk"]
    assert matching_assistants["next"] is None
    everything = await sdk.assistants.search(limit=3, response_format="object")
    assert everything["next"] == "3"
    assert await sdk.assistants.count(name="SDK") == 1
    await sdk.assistants.delete(made["assistant_id"], delete_threads=True)
    assert await sdk.assistants.count(name="SDK") == 0
