"""Threads over the LangGraph API: the contract's shapes, statuses and texts, on SQLite and on Postgres."""

import asyncio
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest

from assent.identity.model.access import DEFAULT_TENANT
from assent.kernel.ids import new_id
from assent.kernel.store.transaction import Tx
from assent.threads.model.parts import FORMAT, Inline, Listed, pack_checkpoint
from assent.threads.model.runs import RunStatus
from assent.threads.model.threads import ThreadStatus
from assent.threads.rows import runs, threads
from assent.threads.rows.state import checkpoints
from assent.threads.rows.state.checkpoints import Stored
from tests.api.langgraph.conversations import ASSISTANT, NOBODY, Conversations
from tests.api.langgraph.server import Server
from tests.contract.stores import both_databases

pytestmark = both_databases

REFUSED_CREATES: list[tuple[Any, str]] = [
    ({"thread_id": "mine"}, "thread_id: "),
    ({"if_exists": "replace"}, "if_exists: Input should be 'raise' or 'do_nothing'"),
    ({"metadata": "x"}, "metadata: "),
    ({"ttl": {"ttl": 0}}, "ttl.ttl: "),
    ({"ttl": {"ttl": 5, "strategy": "forget"}}, "ttl.strategy: "),
    ({"supersteps": [{"updates": []}]}, "supersteps.0.updates: "),
    ([], "body: "),
]
REFUSED_SEARCHES: list[dict[str, Any]] = [
    {"limit": 0},
    {"limit": 1001},
    {"offset": -1},
    {"status": "sleeping"},
    {"sort_by": "metadata"},
    {"sort_order": "up"},
    {"select": ["secret"]},
    {"ids": ["mine"]},
    {"metadata": {'a"b': 1}},
    {"metadata": {"a": {"b\\c": 1}}},
    {"values": {"k" * 1001: 1}},
    {"extract": {"x": "secrets.key"}},
    {"extract": {"x": "values.messages[last]"}},
    {"extract": {f"x{number}": "values" for number in range(11)}},
]
OPERATIONS = [
    ("GET", ""),
    ("PATCH", ""),
    ("DELETE", ""),
    ("GET", "/storage"),
    ("GET", "/state"),
    ("GET", f"/state/{NOBODY}"),
    ("POST", "/state/checkpoint"),
    ("POST", "/state"),
    ("GET", "/history"),
    ("POST", "/history"),
]


@pytest.fixture
def conversations(server: Server) -> Conversations:
    return Conversations(server)


@pytest.fixture
async def client(conversations: Conversations) -> httpx.AsyncClient:
    return await conversations.client()


async def found(client: httpx.AsyncClient, **body: Any) -> list[dict[str, Any]]:
    response = await client.post("/threads/search", json=body)
    assert response.status_code == 200, response.text
    threads: list[dict[str, Any]] = response.json()
    return threads


# Made


@pytest.mark.promise("SERVE-02")
async def test_new_thread_has_the_contracts_fields(client: httpx.AsyncClient) -> None:
    made = (await client.post("/threads", json={})).json()
    assert UUID(made.pop("thread_id")).version == 7
    times = [datetime.fromisoformat(made.pop(name)) for name in ("created_at", "updated_at", "state_updated_at")]
    assert times[0].tzinfo is not None
    assert len(set(times)) == 1
    assert made.pop("owner").startswith("agent:")
    assert made.pop("visibility") == "shared"  # ours, beside what the contract names
    assert made == {"metadata": {}, "status": "idle", "config": {}, "values": None}


async def test_create_with_a_chosen_id_succeeds_once(client: httpx.AsyncClient) -> None:
    chosen = "A1B2C3D4-0000-4000-8000-000000000000"
    made = (await client.post("/threads", json={"thread_id": chosen, "metadata": {"n": 1}})).json()
    assert made["thread_id"] == chosen.lower()

    again = await client.post("/threads", json={"thread_id": chosen})
    assert again.status_code == 409
    assert again.json()["detail"] == f"Thread with ID {chosen.lower()} already exists"
    same = await client.post("/threads", json={"thread_id": chosen, "if_exists": "do_nothing", "metadata": {"n": 2}})
    assert same.json() == made


async def test_reserved_keys_of_the_metadata_are_dropped(client: httpx.AsyncClient) -> None:
    forged = {"thread_id": "x", "assistant_id": "x", "run_id": "x", "cron_id": "x"}
    made = (await client.post("/threads", json={"metadata": {**forged, "graph_id": "echo", "mine": 1}})).json()
    assert made["metadata"] == {"graph_id": "echo", "mine": 1}
    changed = await client.patch(f"/threads/{made['thread_id']}", json={"metadata": forged})
    assert changed.json()["metadata"] == {"graph_id": "echo", "mine": 1}


async def test_invalid_create_is_refused(client: httpx.AsyncClient) -> None:
    for body, detail in REFUSED_CREATES:
        response = await client.post("/threads", json=body)
        assert response.status_code == 422, body
        assert response.json()["detail"].startswith(detail)
    assert await found(client) == []


async def test_create_without_a_body_is_refused(client: httpx.AsyncClient) -> None:
    response = await client.post("/threads")
    assert response.status_code == 422
    assert response.json()["detail"] == "Invalid JSON in request body"


# Read and changed


async def test_interrupted_thread_has_the_contracts_fields(
    client: httpx.AsyncClient, conversations: Conversations
) -> None:
    thread_id = await conversations.thread("hitl", {"text": "draft"}, inbox="exp")
    thread = (await client.get(f"/threads/{thread_id}")).json()
    [(task_id, [question])] = thread.pop("interrupts").items()
    assert str(UUID(task_id)) == task_id
    assert len(question["id"]) == 32
    assert question == {
        "id": question["id"],
        "value": {
            "action_request": {"action": "send_email", "args": {"to": "a@b.c", "body": "draft"}},
            "config": {"allow_ignore": True, "allow_respond": True, "allow_edit": True, "allow_accept": True},
            "description": "Please review",
        },
    }
    assert {name: thread[name] for name in ("metadata", "status", "config", "values", "error")} == {
        "metadata": {"inbox": "exp", "graph_id": "hitl", "assistant_id": ASSISTANT},
        "status": "interrupted",
        "config": {"configurable": {}},
        "values": {"text": "draft"},
        "error": None,
    }


async def test_failed_thread_shows_its_error(client: httpx.AsyncClient, conversations: Conversations) -> None:
    thread = (await client.get(f"/threads/{await conversations.thread('failing', {'text': 'x'})}")).json()
    assert thread["status"] == "error"
    assert thread["error"] == {"error": "ValueError", "message": "boom: x"}
    assert thread["interrupts"] == {}


async def test_metadata_is_merged_key_by_key(client: httpx.AsyncClient) -> None:
    made = (await client.post("/threads", json={"metadata": {"a": {"x": 1}, "b": 2}})).json()
    path = f"/threads/{made['thread_id']}"
    changed = (await client.patch(path, json={"metadata": {"a": {"y": 1}, "c": 3}})).json()
    assert changed["metadata"] == {"a": {"y": 1}, "b": 2, "c": 3}
    assert changed["updated_at"] > made["updated_at"]
    assert changed["state_updated_at"] == made["state_updated_at"]

    silent = await client.patch(path, json={"metadata": {"d": 4}}, headers={"Prefer": "return=minimal"})
    assert (silent.status_code, silent.content) == (204, b"")
    assert (await client.get(path)).json()["metadata"]["d"] == 4


async def test_time_to_live_is_stored_and_shown_on_request(client: httpx.AsyncClient) -> None:
    made = (await client.post("/threads", json={"ttl": {"ttl": 90, "strategy": "delete"}})).json()
    assert "ttl" not in made
    path = f"/threads/{made['thread_id']}"
    ttl = (await client.get(path, params={"include": "ttl"})).json()["ttl"]
    lasts = datetime.fromisoformat(ttl.pop("expires_at")) - datetime.fromisoformat(made["created_at"])
    assert timedelta(minutes=90) <= lasts < timedelta(minutes=91)
    assert ttl == {"strategy": "delete", "ttl_minutes": 90}

    await client.patch(path, json={"ttl": {"ttl": 5, "strategy": "keep_latest"}})
    ttl = (await client.get(path, params={"include": "ttl"})).json()["ttl"]
    assert (ttl["strategy"], ttl["ttl_minutes"]) == ("keep_latest", 5)


@pytest.mark.promise("SERVE-14")
async def test_unknown_id_is_404_and_malformed_id_is_422(client: httpx.AsyncClient) -> None:
    for method, path in OPERATIONS:
        body: dict[str, Any] | None = {"checkpoint": {}} if method in ("POST", "PATCH") else None
        missing = await client.request(method, f"/threads/{NOBODY}{path}", json=body)
        assert missing.status_code == 404, (method, path)
        assert missing.json()["detail"] == f"Thread with ID {NOBODY} not found"
        assert (await client.request(method, f"/threads/mine{path}", json=body)).status_code == 422, (method, path)


async def test_thread_of_another_tenant_is_404(client: httpx.AsyncClient, conversations: Conversations) -> None:
    thread_id = await conversations.thread("hitl", {"text": "x"})
    stranger = await conversations.client(tenant="other")
    path = f"/threads/{thread_id}"
    assert (await stranger.get(path)).status_code == 404
    assert (await stranger.get(f"{path}/state")).status_code == 404
    assert (await stranger.post(f"{path}/state", json={"values": {"text": "y"}})).status_code == 404
    assert (await stranger.post(f"{path}/copy")).status_code == 409
    assert (await stranger.delete(path)).status_code == 404
    assert (await stranger.post("/threads/prune", json={"thread_ids": [thread_id]})).json() == {"pruned_count": 0}
    assert await found(stranger) == []
    assert (await client.get(path)).json()["values"] == {"text": "x"}


async def test_reading_and_writing_need_their_own_scopes(conversations: Conversations) -> None:
    thread_id = await conversations.thread("echo", {"text": "x"})
    path = f"/threads/{thread_id}"
    reader, outsider = await conversations.client("items:read"), await conversations.client("comments:write")
    assert (await reader.get(path)).status_code == 200
    assert (await reader.get(f"{path}/state")).status_code == 200
    assert len(await found(reader)) == 1
    for refused in (
        await reader.post("/threads", json={}),
        await reader.patch(path, json={"metadata": {"a": 1}}),
        await reader.post(f"{path}/copy"),
        await reader.post(f"{path}/state", json={"values": {"text": "y"}}),
        await reader.post(f"/api{path}/repair"),
        await reader.delete(path),
        await reader.post("/threads/prune", json={"thread_ids": [thread_id]}),
        await outsider.get(path),
        await outsider.get(f"{path}/history"),
        await outsider.post("/threads/search", json={}),
    ):
        assert refused.status_code == 403


# Found


async def test_search_is_sorted_newest_first_with_next_offsets(client: httpx.AsyncClient) -> None:
    made = [(await client.post("/threads", json={})).json()["thread_id"] for _ in range(5)]
    response = await client.post("/threads/search", json={"limit": 2})
    assert [thread["thread_id"] for thread in response.json()] == made[:2:-1]
    assert (response.headers["X-Pagination-Next"], response.headers["X-Pagination-Total"]) == ("2", "3")

    last = await client.post("/threads/search", json={"limit": 2, "offset": 4})
    assert [thread["thread_id"] for thread in last.json()] == made[:1]
    assert "X-Pagination-Next" not in last.headers
    assert last.headers["X-Pagination-Total"] == "5"

    oldest = await found(client, sort_by="created_at", sort_order="asc", limit=1)
    assert [thread["thread_id"] for thread in oldest] == made[:1]


async def test_search_filters_by_status_metadata_and_values(
    client: httpx.AsyncClient, conversations: Conversations
) -> None:
    waiting = await conversations.thread("hitl", {"text": "draft"}, team={"name": "a", "tags": [1, 2]})
    done = await conversations.thread("echo", {"text": "draft"})
    fresh = (await client.post("/threads", json={"metadata": {"graph_id": "echo"}})).json()["thread_id"]

    async def ids(**body: Any) -> set[str]:
        count = await client.post("/threads/count", json=body)
        names = {thread["thread_id"] for thread in await found(client, **body)}
        assert count.json() == len(names)
        return names

    assert await ids() == {waiting, done, fresh}
    assert await ids(status="interrupted") == {waiting}
    assert await ids(metadata={"graph_id": "hitl"}) == {waiting}
    assert await ids(metadata={"assistant_id": ASSISTANT}) == {waiting, done}
    assert await ids(metadata={"graph_id": "echo", "assistant_id": ASSISTANT}, status="idle") == {done}
    assert await ids(metadata={"graph_id": 7}) == set()
    assert await ids(metadata={"team": {"tags": [2]}}) == {waiting}
    assert await ids(values={"text": "draft"}) == {waiting, done}
    assert await ids(values={"reply": "draft"}) == {done}
    assert await ids(ids=[waiting, fresh, NOBODY]) == {waiting, fresh}


async def test_select_returns_only_the_selected_fields(client: httpx.AsyncClient, conversations: Conversations) -> None:
    said = {"messages": [{"role": "user", "content": "good day"}]}
    thread_id = await conversations.thread("chat", said)
    [thread] = await found(
        client,
        select=["thread_id", "interrupts"],
        extract={"last": "values.messages[-1].content", "graph": "metadata.graph_id", "none": "values.messages[9].id"},
    )
    assert thread == {
        "thread_id": thread_id,
        "interrupts": {},
        "extracted": {"last": "you said: good day", "graph": "chat", "none": None},
    }
    [short] = await found(client, select=["status", "error"])
    assert short == {"status": "idle", "error": None}


async def test_invalid_search_is_refused(client: httpx.AsyncClient) -> None:
    for body in REFUSED_SEARCHES:
        assert (await client.post("/threads/search", json=body)).status_code == 422, body


# What has been shown can be answered by position


async def test_question_counts_as_shown_once_a_caller_has_read_it(
    client: httpx.AsyncClient, conversations: Conversations
) -> None:
    async def shown_after(method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> bool:
        thread_id = await conversations.thread("hitl", {"text": "x"})
        assert not (await conversations.row(thread_id)).shown
        response = await client.request(method, path.format(thread_id), json=body, headers=headers)
        assert response.is_success, response.text
        return (await conversations.row(thread_id)).shown

    minimal = {"Prefer": "return=minimal"}
    assert await shown_after("GET", "/threads/{}")
    assert await shown_after("GET", "/threads/{}/state")
    assert await shown_after("POST", "/threads/{}/state/checkpoint", {"checkpoint": {}})
    assert await shown_after("POST", "/threads/{}/history", {"limit": 10})
    assert await shown_after("PATCH", "/threads/{}", {"metadata": {}})
    assert await shown_after("POST", "/threads/search", {"status": "interrupted"})
    assert await shown_after("POST", "/threads/search", {"extract": {"q": "interrupts"}, "select": ["status"]})
    assert not await shown_after("POST", "/threads/search", {"select": ["status", "values"]})
    assert not await shown_after("POST", "/threads/count", {})
    assert not await shown_after("PATCH", "/threads/{}", {"metadata": {}}, minimal)
    assert not await shown_after("GET", "/threads/{}/state?select=values")
    assert not await shown_after("GET", "/threads/{}/storage")


# Copied, pruned, removed


async def test_a_copy_waits_for_the_same_answer(client: httpx.AsyncClient, conversations: Conversations) -> None:
    thread_id = await conversations.thread("hitl", {"text": "x"}, team="a")
    original = (await client.get(f"/threads/{thread_id}")).json()
    copied = (await client.post(f"/threads/{thread_id}/copy")).json()
    same = ("status", "values", "interrupts", "error", "metadata", "config")
    assert {name: copied[name] for name in same} == {name: original[name] for name in same}
    assert copied["thread_id"] != thread_id

    state = (await client.get(f"/threads/{copied['thread_id']}/state")).json()
    assert state["next"] == ["review"]
    assert state["metadata"]["thread_id"] == state["checkpoint"]["thread_id"] == copied["thread_id"]
    await conversations.answer(copied["thread_id"], [{"type": "ignore", "args": None}])
    assert (await client.get(f"/threads/{copied['thread_id']}")).json()["status"] == "idle"
    assert (await client.get(f"/threads/{thread_id}")).json() == original


async def test_copy_of_a_running_thread_has_the_state_of_its_checkpoints(
    client: httpx.AsyncClient, conversations: Conversations
) -> None:
    thread_id = await conversations.thread("hitl", {"text": "x"})
    row = await conversations.row(thread_id)
    await conversations.store.write(DEFAULT_TENANT, threads.set_status, thread_id, ThreadStatus.BUSY)
    copied = (await client.post(f"/threads/{thread_id}/copy")).json()
    assert copied["status"] == "interrupted"
    assert copied["interrupts"] == row.interrupts


async def test_copy_of_an_unknown_thread_is_a_conflict(client: httpx.AsyncClient) -> None:
    response = await client.post(f"/threads/{NOBODY}/copy")
    assert response.status_code == 409
    assert response.json()["detail"] == "Conflict"


async def test_pruning_skips_unknown_threads(client: httpx.AsyncClient, conversations: Conversations) -> None:
    first, second = [await conversations.thread("echo", {"text": "x"}) for _ in range(2)]
    pruned = await client.post("/threads/prune", json={"thread_ids": [first, NOBODY, first]})
    assert pruned.json() == {"pruned_count": 1}
    assert (await client.get(f"/threads/{first}")).status_code == 404
    assert (await client.get(f"/threads/{second}")).status_code == 200


async def test_pruning_can_keep_the_latest_state(client: httpx.AsyncClient, conversations: Conversations) -> None:
    thread_id = await conversations.thread("subgraph", {"text": "x", "ask": True})
    before = (await client.get(f"/threads/{thread_id}/state", params={"subgraphs": True})).json()
    body = {"thread_ids": [thread_id], "strategy": "keep_latest"}
    assert (await client.post("/threads/prune", json=body)).json() == {"pruned_count": 1}

    after = (await client.get(f"/threads/{thread_id}/state", params={"subgraphs": True})).json()
    assert after["parent_checkpoint"] is None
    assert (after["values"], after["interrupts"]) == (before["values"], before["interrupts"])
    assert len((await client.post(f"/threads/{thread_id}/history", json={"limit": 10})).json()) == 1
    outcome = await conversations.answer(thread_id, "yes")
    assert outcome.values["log"] == ["outer", "outer", "inner: yes", "last"]


async def test_pruning_keeps_the_history_of_a_running_thread(
    client: httpx.AsyncClient, conversations: Conversations
) -> None:
    thread_id = await conversations.thread("echo", {"text": "x"})
    await conversations.queue_run(thread_id, status=RunStatus.RUNNING)
    body = {"thread_ids": [thread_id], "strategy": "keep_latest"}
    assert (await client.post("/threads/prune", json=body)).json() == {"pruned_count": 0}


async def test_storage_reports_bytes_by_table(client: httpx.AsyncClient, conversations: Conversations) -> None:
    thread_id = await conversations.thread("hitl", {"text": "x" * 1000})
    await conversations.queue_run(thread_id)
    storage = (await client.get(f"/threads/{thread_id}/storage")).json()
    assert storage["thread_id"] == thread_id
    kinds = ("checkpoints", "pending_writes", "channel_values")
    assert storage["total_bytes"] == sum(storage[kind]["bytes"] for kind in kinds)
    assert storage["channel_values"]["bytes"] > 1000
    assert storage["checkpoints"]["count"] == 2
    assert storage["tables"]["runs"]["rows"] == 1
    assert storage["tables"]["threads"]["bytes"] > 1000
    fresh = (await client.post("/threads", json={})).json()["thread_id"]
    assert (await client.get(f"/threads/{fresh}/storage")).json()["total_bytes"] == 0


class Stopped:
    """A queue that only remembers which runs it was told to stop."""

    active = 0
    places = None

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    def __init__(self) -> None:
        self.runs: list[tuple[str, str]] = []

    async def defer(self, connection: Any, handovers: Any) -> None: ...

    def take(self, handovers: Any) -> None: ...

    async def cancel(self, tenant: str, run_id: str) -> None:
        self.runs.append((tenant, run_id))


async def test_deleted_thread_is_removed_with_all_its_rows(
    client: httpx.AsyncClient, conversations: Conversations
) -> None:
    thread_id = await conversations.thread("echo", {"text": "x"})
    stopped = Stopped()
    run_id = await conversations.queue_run(thread_id, status=RunStatus.RUNNING)
    conversations.store.queue = stopped
    response = await client.delete(f"/threads/{thread_id}")
    assert (response.status_code, response.content) == (204, b"")
    assert stopped.runs == [(DEFAULT_TENANT, run_id)]
    assert await conversations.store.read(DEFAULT_TENANT, runs.get, run_id) is None
    assert (await client.get(f"/threads/{thread_id}")).status_code == 404

    await client.post("/threads", json={"thread_id": thread_id, "metadata": {"graph_id": "echo"}})
    assert (await client.get(f"/threads/{thread_id}/state")).json()["values"] == {}


async def test_threads_are_deleted_after_their_time_to_live(
    client: httpx.AsyncClient, conversations: Conversations
) -> None:
    async def lasting(minutes: float, strategy: str) -> str:
        thread_id = await conversations.thread("echo", {"text": "x"})
        await client.patch(f"/threads/{thread_id}", json={"ttl": {"ttl": minutes, "strategy": strategy}})
        return thread_id

    gone, thinned, kept = await lasting(5, "delete"), await lasting(5, "keep_latest"), await lasting(60, "delete")
    running = await lasting(5, "delete")
    await conversations.queue_run(running, status=RunStatus.RUNNING)
    assert await conversations.threads.delete_expired() == 0

    conversations.store.clock_offset = timedelta(minutes=6)
    assert await conversations.threads.delete_expired() == 2
    assert await conversations.threads.delete_expired() == 0
    assert (await client.get(f"/threads/{gone}")).status_code == 404
    for thread_id, states in ((thinned, 1), (kept, 3), (running, 3)):
        assert len((await client.post(f"/threads/{thread_id}/history", json={"limit": 10})).json()) == states


async def test_thread_with_a_damaged_state_keeps_its_history_and_holds_up_no_other(
    client: httpx.AsyncClient, conversations: Conversations
) -> None:
    lost = pack_checkpoint(Inline("msgpack", b""), [("log", Listed(1, ((), (b"no such node, 16",))))])
    damage = Stored("f", "", None, FORMAT, lost, "{}")
    ids = [await conversations.thread("echo", {"text": "x"}) for _ in range(2)]
    await conversations.store.write(DEFAULT_TENANT, checkpoints.put, ids[0], damage, None)
    refused = await client.post("/threads/prune", json={"thread_ids": ids, "strategy": "keep_latest"})
    assert (refused.status_code, refused.json()["code"]) == (500, "unreadable_state")
    assert ids[0] in refused.text
    assert ids[1] not in refused.text

    assert (await client.get(f"/threads/{ids[0]}/state")).json()["code"] == "unreadable_state"

    def states(tx: Tx) -> list[int]:
        return [len(checkpoints.history(tx, thread_id, None, before=None, limit=9)) for thread_id in ids]

    assert await conversations.store.read(DEFAULT_TENANT, states) == [4, 1]

    for thread_id in ids:
        ttl = {"ttl": 5, "strategy": "keep_latest"}
        assert (await client.patch(f"/threads/{thread_id}", json={"ttl": ttl})).status_code == 200
    conversations.store.clock_offset = timedelta(minutes=6)
    assert await conversations.threads.delete_expired() == 1
    assert await conversations.threads.delete_expired() == 0
    assert await conversations.store.read(DEFAULT_TENANT, states) == [4, 1]


# The stock client


@pytest.mark.promise("SERVE-01", "SERVE-02")
async def test_stock_client_manages_threads(conversations: Conversations) -> None:
    sdk = await conversations.sdk()
    thread_id = new_id()
    made: Any = await sdk.threads.create(thread_id=thread_id, metadata={"a": 1}, graph_id="echo", ttl=60)
    assert (made["thread_id"], made["metadata"], made["values"]) == (thread_id, {"a": 1, "graph_id": "echo"}, None)
    assert (await sdk.threads.create(thread_id=thread_id, if_exists="do_nothing"))["thread_id"] == thread_id
    changed: Any = await sdk.threads.update(thread_id, metadata={"b": 2}, ttl=30)
    assert changed["metadata"]["b"] == 2
    await sdk.threads.update(thread_id, metadata={"c": 3}, return_minimal=True)
    told: Any = await sdk.threads.get(thread_id, include=["ttl"])
    assert (told["ttl"]["ttl_minutes"], told["metadata"]["c"]) == (30, 3)

    waiting = await conversations.thread("hitl", {"text": "x"})
    [thread] = await sdk.threads.search(status="interrupted", extract={"text": "values.text"})
    assert (thread["thread_id"], thread["extracted"]) == (waiting, {"text": "x"})
    selected: Any = await sdk.threads.search(ids=[waiting], select=["thread_id", "status"])
    assert selected == [{"thread_id": waiting, "status": "interrupted"}]
    assert await sdk.threads.count(metadata={"graph_id": "hitl"}) == 1
    await sdk.threads.copy(waiting)
    assert await sdk.threads.count(status="interrupted") == 2
    assert await sdk.threads.prune([waiting, NOBODY]) == {"pruned_count": 1}
    await sdk.threads.delete(thread_id)
    assert await sdk.threads.count(metadata={"graph_id": "hitl"}) == 1


async def test_concurrent_creates_with_one_id_have_one_winner(client: httpx.AsyncClient) -> None:
    thread_id = new_id()
    body = {"thread_id": thread_id}
    answers = await asyncio.gather(*(client.post("/threads", json=body) for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
