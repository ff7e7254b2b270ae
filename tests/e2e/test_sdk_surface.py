"""The whole surface of the stock Python SDK, noun by noun: what each method sends is understood, and answered."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient, SyncLangGraphClient
from langgraph_sdk.errors import ConflictError, NotFoundError, UnprocessableEntityError

from tests.e2e.holding import held, new_thread
from tests.waiting import until

pytestmark = pytest.mark.promise("SERVE-01")

GREETING = {"configurable": {"greeting": "hi"}}


async def system_assistant(client: LangGraphClient, graph: str) -> str:
    matching_assistants = await client.assistants.search(graph_id=graph, metadata={"created_by": "system"})
    return matching_assistants[0]["assistant_id"]


async def test_assistants_are_described(client: LangGraphClient) -> None:
    assistant = await system_assistant(client, "subgraph")
    assert (await client.assistants.get(assistant))["graph_id"] == "subgraph"
    schemas = await client.assistants.get_schemas(assistant)
    assert (schemas["graph_id"], schemas["context_schema"]) == ("subgraph", None)
    assert "log" in (schemas["state_schema"] or {})["properties"]
    drawn = await client.assistants.get_graph(assistant)
    assert {node["id"] for node in drawn["nodes"]} >= {"outer", "child", "last"}
    assert "child:inner" in {node["id"] for node in (await client.assistants.get_graph("subgraph", xray=1))["nodes"]}
    assert list(await client.assistants.get_subgraphs(assistant)) == ["child"]
    assert list(await client.assistants.get_subgraphs(assistant, namespace="child", recurse=True)) == ["child"]


async def test_assistants_are_made_changed_and_removed(client: LangGraphClient) -> None:
    made = await client.assistants.create("factory", config=GREETING, name="mine", metadata={"team": "a"})  # type: ignore[arg-type]
    known = made["assistant_id"]
    assert (made["version"], made["context"]) == (1, {"greeting": "hi"})
    again = await client.assistants.create("factory", assistant_id=known, if_exists="do_nothing")
    assert again["name"] == "mine"
    with pytest.raises(ConflictError):
        await client.assistants.create("factory", assistant_id=known)
    changed = await client.assistants.update(known, name="ours", metadata={"team": "b"}, description="polite")
    assert (changed["version"], changed["name"], changed["description"]) == (2, "ours", "polite")
    assert [version["version"] for version in await client.assistants.get_versions(known)] == [2, 1]
    assert (await client.assistants.set_latest(known, 1))["name"] == "mine"
    await client.assistants.delete(known)
    with pytest.raises(NotFoundError):
        await client.assistants.get(known)


async def test_assistants_are_searched_and_counted(client: LangGraphClient) -> None:
    mark = str(uuid4())
    for name in ("Alpha", "Beta", "Gamma"):
        await client.assistants.create("echo", name=name, metadata={"mark": mark})
    matching_assistants = await client.assistants.search(
        metadata={"mark": mark}, sort_by="name", sort_order="asc", limit=2
    )
    assert [call["name"] for call in matching_assistants] == ["Alpha", "Beta"]
    page: Any = await client.assistants.search(metadata={"mark": mark}, limit=2, response_format="object")
    assert (len(page["assistants"]), page["next"]) == (2, "2")
    assert await client.assistants.count(metadata={"mark": mark}) == 3
    assert [assistant["name"] for assistant in await client.assistants.search(name="amm", metadata={"mark": mark})] == [
        "Gamma"
    ]
    picked = await client.assistants.search(metadata={"mark": mark}, select=["name"], limit=1)
    assert list(picked[0]) == ["name"]


async def test_deleting_an_assistant_can_delete_its_threads(client: LangGraphClient) -> None:
    made = (await client.assistants.create("echo"))["assistant_id"]
    thread = await new_thread(client)
    await client.runs.wait(thread, made, input={"text": "x"})
    await client.assistants.delete(made, delete_threads=True)
    with pytest.raises(NotFoundError):
        await client.threads.get(thread)


async def test_threads_are_made_changed_and_removed(client: LangGraphClient) -> None:
    made = await client.threads.create(metadata={"a": 1}, graph_id="echo", ttl=60)
    known = made["thread_id"]
    assert made["metadata"] == {"a": 1, "graph_id": "echo"}
    kept: Any = await client.threads.get(known, include=["ttl"])
    assert kept["ttl"]["strategy"] == "delete"
    with pytest.raises(ConflictError):
        await client.threads.create(thread_id=known)
    assert (await client.threads.create(thread_id=known, if_exists="do_nothing"))["thread_id"] == known
    changed: Any = await client.threads.update(known, metadata={"b": 2})
    assert changed["metadata"] == {"a": 1, "b": 2, "graph_id": "echo"}
    await client.threads.update(known, metadata={"c": 3}, return_minimal=True)
    assert ((await client.threads.get(known))["metadata"] or {})["c"] == 3
    await client.threads.delete(known)
    with pytest.raises(NotFoundError):
        await client.threads.get(known)


async def test_thread_is_created_with_supersteps(client: LangGraphClient) -> None:
    steps: Any = [{"updates": [{"values": {"text": "x"}, "as_node": "__start__"}]}]
    made = await client.threads.create(graph_id="echo", supersteps=steps)
    state = await client.threads.get_state(made["thread_id"])
    assert (state["values"], state["next"]) == ({"text": "x"}, ["echo"])


async def test_threads_are_searched_and_counted(client: LangGraphClient) -> None:
    mark = str(uuid4())
    waiting, done, fresh = [await new_thread(client, mark=mark) for _ in range(3)]
    await client.runs.wait(waiting, "hitl", input={"text": "q"})
    await client.runs.wait(done, "echo", input={"text": "x"})

    async def ids(**query: Any) -> list[str]:
        return [thread["thread_id"] for thread in await client.threads.search(metadata={"mark": mark}, **query)]

    assert await ids() == [fresh, done, waiting]
    assert await ids(sort_by="created_at", sort_order="asc", limit=1, offset=1) == [done]
    assert await ids(status="interrupted") == [waiting]
    assert await ids(values={"reply": "x"}) == [done]
    assert await ids(ids=[fresh, waiting]) == [fresh, waiting]
    assert await client.threads.count(metadata={"mark": mark}, status="interrupted") == 1
    picked: Any = await client.threads.search(
        ids=[waiting], select=["thread_id", "interrupts"], extract={"what": "values.text"}
    )
    assert picked[0]["extracted"] == {"what": "q"}
    assert picked[0].keys() == {"thread_id", "interrupts", "extracted"}


async def test_threads_are_copied_and_pruned(client: Any) -> None:
    """The SDK says that a copy returns nothing; it does."""
    thread = await new_thread(client)
    await client.runs.wait(thread, "slow", input={"text": "x"})
    copy = await client.threads.copy(thread)
    assert copy["thread_id"] != thread
    assert (await client.threads.get_state(copy["thread_id"]))["values"]["log"] == ["x:a", "x:b", "x:c"]
    assert (await client.threads.prune([thread], strategy="keep_latest"))["pruned_count"] == 1
    assert len(await client.threads.get_history(thread)) == 1
    assert (await client.threads.prune([thread, copy["thread_id"], str(uuid4())]))["pruned_count"] == 2
    with pytest.raises(NotFoundError):
        await client.threads.get(thread)


async def test_states_are_read_at_any_checkpoint_and_edited(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    await client.runs.wait(thread, "slow", input={"text": "x"})
    past = await client.threads.get_history(thread, limit=4)
    at_b: Any = past[2]["checkpoint"]
    assert (await client.threads.get_state(thread, checkpoint=at_b))["next"] == ["b"]
    assert (await client.threads.get_state(thread, checkpoint_id=at_b["checkpoint_id"]))["next"] == ["b"]
    latest: Any = {"thread_id": thread}
    assert (await client.threads.get_state(thread, checkpoint=latest))["next"] == []
    before = await client.threads.get_history(thread, before=at_b, limit=1)
    assert before[0]["next"] == ["a"]
    of_loop = await client.threads.get_history(thread, metadata={"source": "loop"})
    assert len(of_loop) == 4
    made = await client.threads.update_state(thread, {"log": ["by hand"]}, as_node="a", checkpoint=at_b)
    assert made["checkpoint"]["checkpoint_id"]
    forked: Any = await client.threads.get_state(thread)
    assert (forked["next"], forked["values"]["log"]) == (["b"], ["x:a", "by hand"])


async def test_states_are_read_with_their_subgraphs(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    await client.runs.wait(thread, "subgraph", input={"text": "x", "ask": True})
    state: Any = await client.threads.get_state(thread, subgraphs=True)
    assert state["tasks"][0]["state"]["next"] == ["inner"]
    plain: Any = await client.threads.get_state(thread)
    assert plain["tasks"][0]["checkpoint"]["checkpoint_ns"].startswith("child:")
    inner: Any = await client.threads.get_state(thread, checkpoint=plain["tasks"][0]["checkpoint"])
    assert inner["next"] == ["inner"]


async def test_thread_stream_shows_its_runs(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    following = await client.threads.join_stream(thread, stream_mode=["lifecycle"])
    seen: list[Any] = []

    async def follow() -> None:
        async for part in following:
            seen.append(part)

    async def has_seen_a_whole_run() -> bool:
        """The first may have begun before the stream did."""
        await client.runs.wait(thread, "echo", input={"text": "x"})
        return len(seen) >= 4

    task = asyncio.create_task(follow())
    await until(has_seen_a_whole_run)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    ends = [part.data for part in seen if part.data.get("status") == "run_done"]
    begins = [part.data["run_id"] for part in seen if part.data.get("status") != "run_done"]
    assert {part.event for part in seen} == {"metadata"}
    assert begins
    assert set(begins[:-1]) <= {end["run_id"] for end in ends}


async def test_runs_are_listed_with_the_selected_fields(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    for text in ("one", "two", "three"):
        await client.runs.wait(thread, "echo", input={"text": text})
    await client.runs.wait(thread, "failing", input={"text": "x"}, raise_error=False)
    runs = await client.runs.list(thread)
    assert [run["kwargs"].get("input", {}).get("text") for run in runs] == ["x", "three", "two", "one"]  # type: ignore[typeddict-item]
    assert [run["status"] for run in await client.runs.list(thread, limit=2, offset=1)] == ["success"] * 2
    assert len(await client.runs.list(thread, status="error")) == 1
    picked = await client.runs.list(thread, select=["run_id", "status"], limit=1)
    assert [sorted(run) for run in picked] == [["run_id", "status"]]
    with pytest.raises(UnprocessableEntityError):
        await client.runs.list(thread, select=["bogus"])  # type: ignore[list-item]


async def test_several_runs_are_made_at_once(client: LangGraphClient) -> None:
    payloads: Any = [{"assistant_id": "echo", "input": {"text": text}} for text in ("one", "two")]
    made = await client.runs.create_batch(payloads)
    assert len({run["thread_id"] for run in made}) == 2
    assert [run["kwargs"]["input"]["text"] for run in made] == ["one", "two"]  # type: ignore[typeddict-item]


async def test_invalid_run_in_a_batch_creates_none(client: LangGraphClient) -> None:
    mark = {"batch": str(uuid4())}
    kept = {"assistant_id": "echo", "input": {}, "on_completion": "keep", "metadata": mark}
    payloads: Any = [kept, {"assistant_id": "nope"}]
    with pytest.raises(UnprocessableEntityError):
        await client.runs.create_batch(payloads)
    assert await client.threads.count(metadata=mark) == 0


@pytest.mark.parametrize("by", ["ids", "status"])
async def test_several_runs_are_cancelled_at_once(client: LangGraphClient, tmp_path: Path, by: str) -> None:
    thread, running, _ = await held(client, tmp_path)
    queued = await client.runs.create(thread, "slow", input={"text": "two"}, multitask_strategy="enqueue")
    if by == "ids":
        await client.runs.cancel_many(thread_id=thread, run_ids=[str(uuid4()), running, queued["run_id"]])
    else:
        await client.runs.cancel_many(status="all")

    async def is_over() -> bool:
        return {run["status"] for run in await client.runs.list(thread)} == {"interrupted"}

    await until(is_over)
    assert (await client.threads.get(thread))["status"] == "interrupted"
    with pytest.raises(NotFoundError):
        await client.runs.cancel_many(thread_id=thread, run_ids=[running])
    with pytest.raises(UnprocessableEntityError):
        await client.runs.cancel_many(thread_id=thread, run_ids=[running], status="all")


async def test_a_run_is_removed_with_its_checkpoints(client: LangGraphClient, tmp_path: Path) -> None:
    thread = await new_thread(client)
    await client.runs.wait(thread, "slow", input={"text": "zero"})
    again = await client.runs.create(thread, "slow", input={"text": "one"})
    await client.runs.join(thread, again["run_id"])
    await client.runs.delete(thread, again["run_id"])
    state: Any = await client.threads.get_state(thread)
    assert state["values"]["log"] == ["zero:a", "zero:b", "zero:c"]
    response: Any = await client.threads.get(thread)
    assert response["values"]["log"] == ["zero:a", "zero:b", "zero:c"]


async def test_running_run_is_removed(client: LangGraphClient, tmp_path: Path) -> None:
    thread, run, _ = await held(client, tmp_path)
    joined = asyncio.Event()

    async def begun(response: httpx.Response) -> None:
        if response.url.path.endswith("/join"):
            joined.set()

    client.http.client.event_hooks["response"] = [begun]
    joining = asyncio.ensure_future(client.runs.join(thread, run))
    await joined.wait()
    await client.runs.delete(thread, run)
    with pytest.raises(NotFoundError):
        await client.runs.get(thread, run)
    assert await joining is None
    assert (await client.threads.get(thread))["status"] == "idle"
    assert await client.threads.get_history(thread) == []


async def test_a_run_is_joined_as_a_stream(client: LangGraphClient, tmp_path: Path) -> None:
    modes: Any = ["values", "updates", "tasks"]
    thread, run, gates = await held(client, tmp_path, stream_mode=modes, stream_resumable=True)
    chosen: Any = ["updates", "tasks"]
    joined = client.runs.join_stream(thread, run, stream_mode=chosen, last_event_id="-1", cancel_on_disconnect=True)
    gates.open()
    assert {part.event async for part in joined} == {"updates", "tasks"}
    assert (await client.runs.get(thread, run))["status"] == "success"


async def test_disconnect_from_a_joined_stream_cancels_when_requested(client: LangGraphClient, tmp_path: Path) -> None:
    thread, run, _ = await held(client, tmp_path, stream_resumable=True)
    joined = aiter(client.runs.join_stream(thread, run, last_event_id="-1", cancel_on_disconnect=True))
    assert (await anext(joined)).event == "metadata"
    await joined.aclose()  # type: ignore[attr-defined]

    async def is_over() -> bool:
        return (await client.runs.get(thread, run))["status"] == "interrupted"

    await until(is_over)


async def test_run_metadata_is_sent_as_soon_as_the_run_is_created(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    told: list[Any] = []
    run = await client.runs.create(thread, "echo", input={"text": "x"}, on_run_created=told.append)
    await client.runs.join(thread, run["run_id"])
    await client.runs.wait(thread, "echo", input={"text": "x"}, on_run_created=told.append)
    async for _ in client.runs.stream(thread, "echo", input={"text": "x"}, on_run_created=told.append):
        pass
    listed = [listed_run["run_id"] for listed_run in await client.runs.list(thread)]
    assert [run["run_id"] for run in told] == list(reversed(listed))
    assert {thread["thread_id"] for thread in told} == {thread}


async def test_a_run_takes_every_option(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    options: Any = {
        "metadata": {"why": "test"},
        "config": {"tags": ["a"], "recursion_limit": 7, "configurable": {"greeting": "hey"}},
        "stream_mode": ["values", "updates"],
        "stream_subgraphs": True,
        "stream_resumable": True,
        "interrupt_before": [],
        "interrupt_after": [],
        "multitask_strategy": "enqueue",
        "durability": "sync",
        "langsmith_tracing": {"project_name": "p"},
    }
    run: Any = await client.runs.create(thread, "factory", input={"text": "you"}, **options)
    assert (await client.runs.join(thread, run["run_id"]))["reply"] == "hey, you"
    assert run["metadata"]["why"] == "test"
    assert run["multitask_strategy"] == "enqueue"
    kwargs = run["kwargs"]
    assert (kwargs["stream_mode"], kwargs["subgraphs"], kwargs["resumable"]) == (["values", "updates"], True, True)
    assert (kwargs["durability"], kwargs["config"]["recursion_limit"]) == ("sync", 7)


async def test_run_stops_at_its_requested_breakpoint(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    await client.runs.wait(thread, "slow", input={"text": "x"}, interrupt_before=["c"])
    response: Any = await client.threads.get(thread)
    assert (response["status"], response["interrupts"], response["values"]["log"]) == (
        "interrupted",
        {},
        ["x:a", "x:b"],
    )
    await client.runs.wait(thread, "slow", input=None, interrupt_after="*")
    done: Any = await client.runs.wait(thread, "slow", input=None)
    assert done["log"] == ["x:a", "x:b", "x:c"]


async def test_a_run_forks_from_a_checkpoint(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    await client.runs.wait(thread, "slow", input={"text": "x"})
    at_b: Any = (await client.threads.get_history(thread, limit=3))[2]["checkpoint"]
    await client.runs.wait(thread, "slow", input=None, checkpoint=at_b)
    history: Any = await client.threads.get_history(thread, limit=10)
    assert history[2]["metadata"]["source"] == "fork"
    assert history[0]["values"]["log"] == ["x:a", "x:b", "x:c"]


async def test_only_the_last_state_is_kept_where_durability_is_exit(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    await client.runs.wait(thread, "slow", input={"text": "x"}, durability="exit")
    assert len(await client.threads.get_history(thread, limit=10)) == 1


async def test_graph_gets_its_context(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    reply: Any = await client.runs.wait(thread, "factory", input={"text": "you"}, context={"greeting": "ahoy"})
    assert reply["reply"] == "ahoy, you"


def test_sync_client_has_the_same_methods(sync_client: SyncLangGraphClient) -> None:
    thread = sync_client.threads.create()["thread_id"]
    run = sync_client.runs.create(thread, "slow", input={"text": "x"})
    assert sync_client.runs.join(thread, run["run_id"])["log"] == ["x:a", "x:b", "x:c"]
    assert [listed_run["run_id"] for listed_run in sync_client.runs.list(thread)] == [run["run_id"]]
    assert len(sync_client.threads.get_history(thread)) == 5
    assert sync_client.threads.search(ids=[thread])[0]["status"] == "idle"
    assert list(sync_client.runs.join_stream(thread, run["run_id"])) == []
    sync_client.threads.update_state(thread, {"log": ["more"]}, as_node="b")
    assert sync_client.threads.get_state(thread)["next"] == ["c"]
    sync_client.threads.delete(thread)
