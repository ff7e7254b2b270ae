"""A thread's state over the LangGraph API: the latest, the ones before, edited, ended, repaired; on both databases."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import httpx
import pytest
from langgraph.pregel.remote import RemoteGraph
from langgraph.types import Command, StateSnapshot

from assent.kernel.store.transaction import Handover
from assent.threads.model.runs import RunStatus
from tests.api.langgraph.conversations import NOBODY, Conversations
from tests.api.langgraph.server import Server
from tests.contract.stores import both_databases

pytestmark = both_databases

EMPTY: dict[str, Any] = {
    "values": {},
    "next": [],
    "tasks": [],
    "metadata": None,
    "created_at": None,
    "checkpoint": None,
    "parent_checkpoint": None,
    "interrupts": [],
    "checkpoint_id": None,
    "parent_checkpoint_id": None,
}
TWO_CALLS = '[{"name": "send_email", "args": {"to": "x", "body": "1"}}, {"name": "look_up", "args": {"term": "z"}}]'


@pytest.fixture
def conversations(server: Server) -> Conversations:
    return Conversations(server)


@pytest.fixture
async def client(conversations: Conversations) -> httpx.AsyncClient:
    return await conversations.client()


def said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


async def state_of(client: httpx.AsyncClient, thread_id: str, **params: Any) -> dict[str, Any]:
    response = await client.get(f"/threads/{thread_id}/state", params=params)
    assert response.status_code == 200, response.text
    state: dict[str, Any] = response.json()
    return state


async def history_of(client: httpx.AsyncClient, thread_id: str, **body: Any) -> list[dict[str, Any]]:
    response = await client.post(f"/threads/{thread_id}/history", json=body)
    assert response.status_code == 200, response.text
    past: list[dict[str, Any]] = response.json()
    return past


async def update(client: httpx.AsyncClient, thread_id: str, **body: Any) -> dict[str, Any]:
    response = await client.post(f"/threads/{thread_id}/state", json=body)
    assert response.status_code == 200, response.text
    updated: dict[str, Any] = response.json()
    return updated


# Read


@pytest.mark.promise("SERVE-05")
async def test_state_has_the_contracts_fields(client: httpx.AsyncClient, conversations: Conversations) -> None:
    thread_id = await conversations.thread("hitl", {"text": "draft"})
    thread = (await client.get(f"/threads/{thread_id}")).json()
    [(task_id, questions)] = thread["interrupts"].items()
    state = await state_of(client, thread_id)
    here, parent = state["checkpoint_id"], state["parent_checkpoint_id"]
    assert state.pop("created_at").endswith("+00:00")
    assert state == {
        "values": {"text": "draft"},
        "next": ["review"],
        "tasks": [
            {
                "id": task_id,
                "name": "review",
                "path": ["__pregel_pull", "review"],
                "error": None,
                "interrupts": questions,
                "checkpoint": None,
                "state": None,
                "result": None,
            }
        ],
        "metadata": {"source": "loop", "step": 0, "parents": {}, "thread_id": thread_id},
        "checkpoint": {"checkpoint_id": here, "thread_id": thread_id, "checkpoint_ns": ""},
        "parent_checkpoint": {"checkpoint_id": parent, "thread_id": thread_id, "checkpoint_ns": ""},
        "interrupts": questions,
        "checkpoint_id": here,
        "parent_checkpoint_id": parent,
    }


async def test_a_thread_that_never_ran_has_an_empty_state(client: httpx.AsyncClient) -> None:
    for metadata in ({}, {"graph_id": "echo"}):
        thread_id = (await client.post("/threads", json={"metadata": metadata})).json()["thread_id"]
        assert await state_of(client, thread_id) == EMPTY
        assert await history_of(client, thread_id) == []


async def test_a_state_is_found_by_its_checkpoint(client: httpx.AsyncClient, conversations: Conversations) -> None:
    thread_id = await conversations.thread("breakpoint", {"text": "x"})
    latest = await state_of(client, thread_id)
    assert (latest["next"], latest["interrupts"]) == (["publish"], [])
    path = f"/threads/{thread_id}/state"
    first = latest["parent_checkpoint_id"]
    assert (await client.get(f"{path}/{first}")).json()["values"] == {"text": "x"}
    assert (await client.get(f"{path}/{NOBODY}")).json() == EMPTY

    async def at(**checkpoint: Any) -> Any:
        return (await client.post(f"{path}/checkpoint", json={"checkpoint": checkpoint})).json()["values"]

    assert await at(thread_id=thread_id) == latest["values"]
    assert await at(thread_id=thread_id, checkpoint_ns="", checkpoint_id=None) == latest["values"]
    assert await at(thread_id=thread_id, checkpoint_id=first) == {"text": "x"}


async def test_checkpoint_of_another_thread_is_refused(client: httpx.AsyncClient, conversations: Conversations) -> None:
    mine, other = (
        await conversations.thread("echo", {"text": "mine"}),
        await conversations.thread("echo", {"text": "o"}),
    )
    body = {"checkpoint": {"thread_id": other, "__pregel_checkpointer": "x"}}
    state = (await client.post(f"/threads/{mine}/state/checkpoint", json=body)).json()
    assert (state["values"]["text"], state["checkpoint"]["thread_id"]) == ("mine", mine)


async def test_select_returns_only_the_selected_fields(client: httpx.AsyncClient, conversations: Conversations) -> None:
    thread_id = await conversations.thread("echo", {"text": "x"})
    assert await state_of(client, thread_id, select=["values.reply", "next"]) == {"values": {"reply": "x"}, "next": []}
    assert await history_of(client, thread_id, select=["values"]) == [{"values": {"text": "x", "reply": "x"}}]
    path = f"/threads/{thread_id}/state"
    assert (await client.get(path, params={"select": "secrets"})).status_code == 422
    body = {"checkpoint": {}, "select": ["checkpoint_id", "values.nothing"]}
    assert (await client.post(f"{path}/checkpoint", json=body)).json()["values"] == {}


async def test_a_half_answered_step_shows_the_finished_task(
    client: httpx.AsyncClient, conversations: Conversations
) -> None:
    thread_id = await conversations.thread("parallel", {"text": "x"})
    left = (await conversations.row(thread_id)).pending[0]
    await conversations.run(thread_id, Command(resume={left["id"]: "yes"}))
    state = await state_of(client, thread_id)
    done, waiting = state["tasks"]
    assert (done["name"], done["interrupts"], done["result"]) == ("left", [], {"answers": ["left=yes"]})
    assert (waiting["name"], waiting["result"], state["next"]) == ("right", None, ["right"])
    thread = (await client.get(f"/threads/{thread_id}")).json()
    assert [question["value"] for [question] in thread["interrupts"].values()] == [{"question": "right?"}]


async def test_response_schema_is_shown_only_where_the_interrupt_has_one(
    client: httpx.AsyncClient, conversations: Conversations
) -> None:
    thread_id = await conversations.thread("hitl_per_call", said("hello"))
    [question] = (await state_of(client, thread_id))["interrupts"]
    assert question["value"]["type"] == "tool_approval"
    assert isinstance(question["response_schema"], dict)
    assert question == (await conversations.row(thread_id)).pending[0]


async def test_failed_task_shows_its_error(client: httpx.AsyncClient, conversations: Conversations) -> None:
    state = await state_of(client, await conversations.thread("failing", {"text": "x"}))
    assert state["tasks"][0]["error"] == "ValueError('boom: x')"


async def test_states_of_any_kind_become_json(client: httpx.AsyncClient, conversations: Conversations) -> None:
    typed = await state_of(client, await conversations.thread("typed", {"goal": "pay"}))
    assert typed["values"]["plan"]["steps"] == [{"title": "pay", "risk": "high"}]
    assert typed["values"]["cost"] == {"amount": 598, "currency": "EUR"}
    workflow = await state_of(client, await conversations.thread("entrypoint", {"number": 21, "ask": True}))
    assert workflow["interrupts"][0]["value"] == {"question": "42?"}
    made = await state_of(client, await conversations.thread("runtime_factory", {"text": "you"}))
    assert made["values"]["reply"] == "running, you"


# Before


async def test_history_is_sorted_newest_first(client: httpx.AsyncClient, conversations: Conversations) -> None:
    thread_id = await conversations.thread("echo", {"text": "one"})
    await conversations.run(thread_id, {"text": "two"})
    past = await history_of(client, thread_id, limit=10)
    assert [state["metadata"]["step"] for state in past] == [4, 3, 2, 1, 0, -1]
    ids = [state["checkpoint_id"] for state in past]
    assert [state["parent_checkpoint_id"] for state in past] == [*ids[1:], None]

    async def steps(**body: Any) -> list[int]:
        return [ids.index(state["checkpoint_id"]) for state in await history_of(client, thread_id, **body)]

    assert await steps() == [0]
    assert await steps(limit=2, before=ids[2]) == [3, 4]
    assert await steps(limit=2, before={"checkpoint_id": ids[2]}) == [3, 4]
    assert await steps(limit=10, metadata={"source": "input"}) == [2, 5]
    assert await steps(limit=10, checkpoint={"checkpoint_ns": ""}) == [0, 1, 2, 3, 4, 5]
    by_get = await client.get(f"/threads/{thread_id}/history", params={"limit": 2, "before": ids[0]})
    assert [state["checkpoint_id"] for state in by_get.json()] == ids[1:3]
    refused = await client.post(f"/threads/{thread_id}/history", json={"metadata": {'a" OR 1=1': 1}})
    assert refused.status_code == 422


@pytest.mark.parametrize("tenant", ["default", "other"])
async def test_a_subgraphs_state_is_read_in_its_own_tenant(server: Server, tenant: str) -> None:
    conversations = Conversations(server, tenant)
    client = await conversations.client()
    thread_id = await conversations.thread("subgraph", {"text": "x", "ask": True})
    [task] = (await state_of(client, thread_id))["tasks"]
    assert task["state"] is None
    assert task["checkpoint"] == {"thread_id": thread_id, "checkpoint_ns": f"child:{task['id']}"}

    [whole] = (await state_of(client, thread_id, subgraphs=True))["tasks"]
    assert whole["checkpoint"] is None
    assert whole["state"]["values"] == {"text": "x", "ask": True, "log": ["outer"]}
    assert [inner["name"] for inner in whole["state"]["tasks"]] == ["inner"]
    assert whole["state"]["checkpoint"]["checkpoint_ns"] == f"child:{task['id']}"

    body = {"checkpoint": task["checkpoint"]}
    direct = (await client.post(f"/threads/{thread_id}/state/checkpoint", json=body)).json()
    assert direct["next"] == ["inner"]
    past = await history_of(client, thread_id, checkpoint=task["checkpoint"], limit=10)
    assert {state["checkpoint"]["checkpoint_ns"] for state in past} == {f"child:{task['id']}"}
    nowhere = {"checkpoint": {"checkpoint_ns": "nobody:1"}}
    assert (await client.post(f"/threads/{thread_id}/state/checkpoint", json=nowhere)).status_code == 400


# Edited


async def test_edit_updates_checkpoint_and_thread_row_together(
    client: httpx.AsyncClient, conversations: Conversations
) -> None:
    thread_id = await conversations.thread("echo", {"text": "x"})
    before = (await client.get(f"/threads/{thread_id}")).json()
    new = await update(client, thread_id, values={"reply": "edited"}, as_node="echo")
    state = await state_of(client, thread_id)
    assert new == {
        "checkpoint": state["checkpoint"],
        "configurable": state["checkpoint"],
        "checkpoint_id": state["checkpoint_id"],
    }
    assert state["metadata"]["source"] == "update"
    assert state["metadata"]["graph_id"] == "echo"
    thread = (await client.get(f"/threads/{thread_id}")).json()
    assert thread["values"] == state["values"] == {"text": "x", "reply": "edited"}
    assert (thread["status"], thread["interrupts"]) == ("idle", {})
    assert thread["state_updated_at"] > before["state_updated_at"]
    [(tenant, edited, told)] = conversations.edited
    assert (tenant, edited, told["checkpoint_id"]) == ("default", thread_id, state["checkpoint_id"])


async def test_edit_without_a_node_withdraws_the_questions_until_the_next_run(
    client: httpx.AsyncClient, conversations: Conversations
) -> None:
    thread_id = await conversations.thread("hitl", {"text": "draft"})
    await update(client, thread_id, values={"text": "better"}, as_node="__start__")
    thread = (await client.get(f"/threads/{thread_id}")).json()
    assert (thread["status"], thread["interrupts"]) == ("interrupted", {})
    await conversations.run(thread_id, None)
    [question] = (await conversations.row(thread_id)).pending
    assert question["value"]["action_request"]["args"]["body"] == "better"


async def test_edit_as_a_node_counts_as_its_result(client: httpx.AsyncClient, conversations: Conversations) -> None:
    thread_id = await conversations.thread("hitl", {"text": "draft"})
    await update(client, thread_id, values={"answer": "by hand"}, as_node="review")
    thread = (await client.get(f"/threads/{thread_id}")).json()
    assert (thread["status"], thread["values"]["answer"], thread["interrupts"]) == ("idle", "by hand", {})


@pytest.mark.parametrize("graph", ["hitl", "parallel", "subgraph", "breakpoint", "failing"])
async def test_mark_as_resolved_ends_the_thread(
    client: httpx.AsyncClient, conversations: Conversations, graph: str
) -> None:
    thread_id = await conversations.thread(graph, {"text": "x", "ask": True})
    await update(client, thread_id, values=None, as_node="__end__")
    thread = (await client.get(f"/threads/{thread_id}")).json()
    assert (thread["status"], thread["interrupts"], thread["error"]) == ("idle", {}, None)
    state = await state_of(client, thread_id)
    assert (state["next"], state["tasks"], state["interrupts"]) == ([], [], [])


async def test_an_edit_can_start_from_an_earlier_state(client: httpx.AsyncClient, conversations: Conversations) -> None:
    thread_id = await conversations.thread("breakpoint", {"text": "x"})
    await conversations.run(thread_id, None)
    past = await history_of(client, thread_id, limit=10)
    stopped = next(state for state in past if state["next"] == ["publish"])
    for address in ({"checkpoint": stopped["checkpoint"]}, {"checkpoint_id": stopped["checkpoint_id"]}):
        await update(client, thread_id, values={"text": "other"}, as_node="prepare", **address)
        state = await state_of(client, thread_id)
        assert (state["values"], state["next"]) == ({"text": "other"}, ["publish"])
        assert state["parent_checkpoint_id"] == stopped["checkpoint_id"]


async def test_invalid_edit_is_refused(client: httpx.AsyncClient, conversations: Conversations) -> None:
    thread_id = await conversations.thread("echo", {"text": "x"})
    fresh = (await client.post("/threads", json={})).json()["thread_id"]
    before = await history_of(client, thread_id, limit=10)
    for target, body, status in (
        (thread_id, {"values": {"text": "y"}, "as_node": "nobody"}, 400),
        (thread_id, {"values": "not a dict", "as_node": "echo"}, 422),
        (thread_id, {"values": {"text": "y"}, "checkpoint_id": NOBODY}, 404),
        (thread_id, {"values": {"text": "y"}, "checkpoint": {"checkpoint_ns": "nobody:1"}}, 400),
        (thread_id, {"values": {"text": "y"}, "as_node": 7}, 422),
        (fresh, {"values": {"text": "y"}}, 400),
    ):
        response = await client.post(f"/threads/{target}/state", json=body)
        assert response.status_code == status, (body, response.text)
        assert isinstance(response.json()["detail"], str)
    assert await history_of(client, thread_id, limit=10) == before


async def test_edit_during_a_run_is_refused(client: httpx.AsyncClient, conversations: Conversations) -> None:
    for status in (RunStatus.PENDING, RunStatus.RUNNING):
        thread_id = await conversations.thread("echo", {"text": "x"})
        run_id = await conversations.queue_run(thread_id, status=status)
        response = await client.post(f"/threads/{thread_id}/state", json={"values": {"reply": "y"}, "as_node": "echo"})
        assert response.status_code == 409
        assert run_id in response.json()["detail"]
        assert (await client.post(f"/api/threads/{thread_id}/repair")).status_code == 409


class Taken:
    """A queue that only remembers what it was given."""

    active = 0
    places = None

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    def __init__(self) -> None:
        self.runs: set[str] = set()

    async def defer(self, connection: Any, handovers: Sequence[Handover]) -> None:
        self.take(handovers)

    def take(self, handovers: Sequence[Handover]) -> None:
        self.runs.update(handover.run_id for handover in handovers)

    async def cancel(self, tenant: str, run_id: str) -> None: ...


async def test_queued_run_starts_when_the_thread_is_resolved(
    client: httpx.AsyncClient, conversations: Conversations
) -> None:
    thread_id = await conversations.thread("hitl", {"text": "x"})
    behind = await conversations.queue_run(thread_id)
    taken = conversations.store.queue = Taken()
    await update(client, thread_id, values=None, as_node="__end__")
    assert taken.runs == {behind}
    assert (await client.get(f"/threads/{thread_id}")).json()["status"] == "busy"


async def test_delayed_run_does_not_block_an_edit(client: httpx.AsyncClient, conversations: Conversations) -> None:
    thread_id = await conversations.thread("echo", {"text": "x"})
    later = (await conversations.row(thread_id)).created_at + timedelta(hours=1)
    await conversations.queue_run(thread_id, wake_at=later)
    await update(client, thread_id, values={"reply": "y"}, as_node="echo")
    assert (await client.get(f"/threads/{thread_id}")).json()["status"] == "idle"


async def test_concurrent_edits_are_all_kept(client: httpx.AsyncClient, conversations: Conversations) -> None:
    thread_id = await conversations.thread("chat", said("hi"))
    names = {"a", "b", "c"}
    edits = [{"values": {"messages": [{"role": "user", "content": name}]}, "as_node": "talk"} for name in names]
    await asyncio.gather(*(update(client, thread_id, **edit) for edit in edits))
    state = await state_of(client, thread_id)
    assert {message["content"] for message in state["values"]["messages"][2:]} == names
    assert (await client.get(f"/threads/{thread_id}")).json()["values"] == state["values"]


# With a past, and repaired


@pytest.mark.parametrize("tenant", ["default", "other"])
async def test_thread_can_be_created_with_supersteps(server: Server, tenant: str) -> None:
    conversations = Conversations(server, tenant)
    client = await conversations.client()
    steps = [
        {"updates": [{"values": {"text": "x"}, "as_node": "__input__"}]},
        {"updates": [{"values": None, "command": {"update": {"text": "y"}}, "as_node": "prepare"}]},
    ]
    made = await client.post("/threads", json={"metadata": {"graph_id": "breakpoint"}, "supersteps": steps})
    thread = made.json()
    assert (thread["status"], thread["values"]) == ("interrupted", {"text": "y"})
    past = await history_of(client, thread["thread_id"], limit=10)
    assert [state["next"] for state in past] == [["publish"], ["__start__"]]
    assert (await conversations.run(thread["thread_id"], None)).values["answer"] == "published: y"

    without = await client.post("/threads", json={"supersteps": steps})
    assert without.status_code == 400
    unknown = await client.post("/threads", json={"metadata": {"graph_id": "nope"}, "supersteps": steps})
    assert unknown.status_code == 404


@pytest.mark.parametrize("tenant", ["default", "other"])
async def test_thread_with_an_unusable_answer_can_be_repaired(server: Server, tenant: str) -> None:
    conversations = Conversations(server, tenant)
    client = await conversations.client()
    thread_id = await conversations.thread("hitl_batched", said(TWO_CALLS))
    [asked] = (await conversations.row(thread_id)).pending
    right: Any = {"decisions": [{"type": "approve"}]}
    wrong: Any = {"decisions": []}
    assert (await conversations.run(thread_id, Command(resume={asked["id"]: wrong}))).error
    assert (await conversations.run(thread_id, Command(resume={asked["id"]: right}))).error

    repaired = await client.post(f"/api/threads/{thread_id}/repair")
    assert repaired.status_code == 200, repaired.text
    state = await state_of(client, thread_id)
    assert repaired.json() == {"thread_id": thread_id, "checkpoint": state["checkpoint"]}
    assert (await client.get(f"/threads/{thread_id}")).json()["error"] is None

    await conversations.run(thread_id, None)
    [again] = (await conversations.row(thread_id)).pending
    assert again["id"] != asked["id"]
    done = await conversations.answer(thread_id, right)
    assert "sent to x" in done.values["messages"][-1]["content"]


async def test_repair_of_a_finished_thread_is_refused(client: httpx.AsyncClient, conversations: Conversations) -> None:
    thread_id = await conversations.thread("echo", {"text": "x"})
    response = await client.post(f"/api/threads/{thread_id}/repair")
    assert (response.status_code, response.json()["code"]) == (409, "conflict")
    assert response.headers["content-type"] == "application/problem+json"


# The stock clients


@pytest.mark.promise("SERVE-05")
async def test_stock_client_reads_and_edits_the_state(conversations: Conversations) -> None:
    sdk = await conversations.sdk()
    thread_id = await conversations.thread("subgraph", {"text": "x", "ask": True})
    state: Any = await sdk.threads.get_state(thread_id)
    assert state["values"]["log"] == ["outer"]
    whole: Any = await sdk.threads.get_state(thread_id, subgraphs=True)
    assert whole["tasks"][0]["state"]["next"] == ["inner"]
    at: Any = await sdk.threads.get_state(thread_id, checkpoint=state["parent_checkpoint"])
    assert at["checkpoint_id"] == state["parent_checkpoint_id"]
    by_id: Any = await sdk.threads.get_state(thread_id, checkpoint_id=state["checkpoint_id"], select=["next"])
    assert by_id == {"next": ["child"]}
    past = await sdk.threads.get_history(thread_id, before=state["checkpoint"])
    assert len(past) == 2
    new: Any = await sdk.threads.update_state(thread_id, None, as_node="__end__")
    assert new["checkpoint"]["checkpoint_id"] == new["checkpoint_id"]
    assert (await sdk.threads.get(thread_id))["status"] == "idle"


async def test_remote_graph_reads_and_edits_like_a_local_graph(conversations: Conversations) -> None:
    remote = RemoteGraph("hitl", client=await conversations.sdk())
    thread_id = await conversations.thread("hitl", {"text": "draft"})
    config: Any = {"configurable": {"thread_id": thread_id}}
    state = await remote.aget_state(config)
    assert isinstance(state, StateSnapshot)
    assert (state.values, state.next) == ({"text": "draft"}, ("review",))
    assert state.interrupts[0].value["description"] == "Please review"
    past = [state async for state in remote.aget_state_history(config)]
    assert past[0].config == state.config
    edited = await remote.aupdate_state(config, {"answer": "by hand"}, as_node="review")
    assert (await remote.aget_state(edited)).values["answer"] == "by hand"
