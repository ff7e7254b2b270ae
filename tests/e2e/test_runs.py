"""The stock Python SDK against a real server process: starting, following, waiting for and stopping runs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient, SyncLangGraphClient
from langgraph_sdk.errors import ConflictError, NotFoundError, UnprocessableEntityError

from tests.servers import ServerProcess, frames

pytestmark = pytest.mark.promise("SERVE-01")


async def new_thread(client: LangGraphClient) -> str:
    return str((await client.threads.create())["thread_id"])


async def reached(folder: Path, step: str) -> None:
    """The `slow` graph is inside this step and waits there for `let`."""
    async with asyncio.timeout(90):
        while not (folder / f"{step}.started").exists():  # noqa: ASYNC110 - another process makes the file
            await asyncio.sleep(0.005)


def let(folder: Path, *steps: str) -> None:
    for step in steps:
        (folder / f"{step}.go").touch()


@pytest.mark.promise("SERVE-02", "SERVE-03", "SERVE-04", "SERVE-05")
async def test_a_background_run_is_created_joined_and_its_state_read(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    run = await client.runs.create(thread, "echo", input={"text": "hello"})
    assert run["status"] == "pending"
    assert await client.runs.join(thread, run["run_id"]) == {"text": "hello", "reply": "hello"}
    assert (await client.runs.get(thread, run["run_id"]))["status"] == "success"
    assert (await client.threads.get_state(thread))["values"] == {"text": "hello", "reply": "hello"}
    response = await client.threads.get(thread)
    assert response["status"] == "idle"
    assert response["metadata"]["graph_id"] == "echo"  # type: ignore[index]


def test_sync_client_runs_and_waits(sync_client: SyncLangGraphClient) -> None:
    thread = sync_client.threads.create()["thread_id"]
    assert sync_client.runs.wait(thread, "echo", input={"text": "x"}) == {"text": "x", "reply": "x"}
    parts = list(sync_client.runs.stream(thread, "echo", input={"text": "y"}, stream_mode="updates"))
    assert [part.event for part in parts] == ["metadata", "updates"]


async def test_a_stream_has_the_modes_it_was_asked_for(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    modes: Any = ["values", "updates", "custom", "debug", "tasks", "checkpoints", "messages-tuple", "events"]
    seen = [part.event async for part in client.runs.stream(thread, "echo", input={"text": "x"}, stream_mode=modes)]
    assert seen[0] == "metadata"
    assert {"values", "updates", "debug", "tasks", "checkpoints", "events"} <= set(seen)


async def test_a_stateless_run_leaves_no_thread(client: LangGraphClient) -> None:
    before = await client.threads.count()
    assert await client.runs.wait(None, "echo", input={"text": "x"}) == {"text": "x", "reply": "x"}
    events = [part.event async for part in client.runs.stream(None, "echo", input={"text": "x"})]
    assert events == ["metadata", "values", "values"]
    assert await client.threads.count() == before


async def test_error_of_the_graph_reaches_the_waiting_client(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    result = await client.runs.wait(thread, "failing", input={"text": "x"}, raise_error=False)
    assert result == {"__error__": {"error": "ValueError", "message": "boom: x"}}
    response = await client.threads.get(thread)
    assert response["status"] == "error"


@pytest.mark.promise("SERVE-14")
async def test_unknown_assistant_and_thread_are_refused(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    with pytest.raises(UnprocessableEntityError, match="nope"):
        await client.runs.create(thread, "nope", input={})
    with pytest.raises(NotFoundError):
        await client.runs.create("01a1e04e-66bb-755a-9724-c67f532b924c", "echo", input={})


@pytest.mark.promise("SERVE-07", "SERVE-13")
async def test_reject_is_the_default_and_leaves_the_running_run(client: LangGraphClient, tmp_path: Path) -> None:
    thread = await new_thread(client)
    first = await client.runs.create(thread, "slow", input={"text": "one", "gate": str(tmp_path)})
    await reached(tmp_path, "a")
    with pytest.raises(ConflictError):
        await client.runs.create(thread, "slow", input={"text": "two"})
    let(tmp_path, "a", "b", "c")
    assert (await client.runs.join(thread, first["run_id"]))["log"] == ["one:a", "one:b", "one:c"]
    assert len(await client.runs.list(thread)) == 1


@pytest.mark.promise("SERVE-08")
async def test_enqueued_runs_execute_in_order(client: LangGraphClient, tmp_path: Path) -> None:
    thread = await new_thread(client)
    await client.runs.create(thread, "slow", input={"text": "one", "gate": str(tmp_path)})
    await reached(tmp_path, "a")
    later = [
        await client.runs.create(thread, "slow", input={"text": name}, multitask_strategy="enqueue")
        for name in ("two", "three")
    ]
    assert [run["status"] for run in later] == ["pending", "pending"]
    let(tmp_path, "a", "b", "c")
    log = (await client.runs.join(thread, later[-1]["run_id"]))["log"]
    assert [line.split(":")[0] for line in log] == ["one"] * 3 + ["two"] * 3 + ["three"] * 3


@pytest.mark.promise("SERVE-09", "SERVE-16")
async def test_interrupt_keeps_the_state_and_the_run(client: LangGraphClient, tmp_path: Path) -> None:
    thread = await new_thread(client)
    first = await client.runs.create(thread, "slow", input={"text": "one", "gate": str(tmp_path)})
    let(tmp_path, "a")
    await reached(tmp_path, "b")
    second = await client.runs.create(thread, "slow", input={"text": "two"}, multitask_strategy="interrupt")
    let(tmp_path, "b", "c")
    log = (await client.runs.join(thread, second["run_id"]))["log"]
    assert log == ["one:a", "two:a", "two:b", "two:c"]
    assert (await client.runs.get(thread, first["run_id"]))["status"] == "interrupted"
    assert (await client.threads.get(thread))["status"] == "idle"


@pytest.mark.promise("SERVE-10", "SERVE-11")
async def test_rollback_removes_the_replaced_run(client: LangGraphClient, tmp_path: Path) -> None:
    thread = await new_thread(client)
    await client.runs.wait(thread, "slow", input={"text": "zero"})
    before = await client.threads.get_history(thread, limit=100)
    first = await client.runs.create(thread, "slow", input={"text": "one", "gate": str(tmp_path)})
    let(tmp_path, "a")
    await reached(tmp_path, "b")
    second = await client.runs.create(thread, "slow", input={"text": "two"}, multitask_strategy="rollback")
    log = (await client.runs.join(thread, second["run_id"]))["log"]
    assert [line.split(":")[0] for line in log] == ["zero"] * 3 + ["two"] * 3
    with pytest.raises(NotFoundError):
        await client.runs.get(thread, first["run_id"])
    after = await client.threads.get_history(thread, limit=100)
    assert [state["checkpoint"]["checkpoint_id"] for state in after[-len(before) :]] == [
        state["checkpoint"]["checkpoint_id"] for state in before
    ]
    assert not any(first["run_id"] == (state["metadata"] or {}).get("run_id") for state in after)


@pytest.mark.parametrize("action", ["interrupt", "rollback"])
async def test_a_running_run_is_cancelled_and_the_thread_is_free_again(
    client: LangGraphClient, tmp_path: Path, action: Any
) -> None:
    thread = await new_thread(client)
    run = await client.runs.create(thread, "slow", input={"text": "one", "gate": str(tmp_path)})
    await reached(tmp_path, "a")
    await client.runs.cancel(thread, run["run_id"], wait=True, action=action)
    response = await client.threads.get(thread)
    assert response["status"] == ("interrupted" if action == "interrupt" else "idle")
    result: Any = await client.runs.wait(thread, "echo", input={"text": "x"})
    assert result["reply"] == "x"


async def test_a_pending_run_is_cancelled_without_touching_the_one_that_runs(
    client: LangGraphClient, tmp_path: Path
) -> None:
    thread = await new_thread(client)
    first = await client.runs.create(thread, "slow", input={"text": "one", "gate": str(tmp_path)})
    await reached(tmp_path, "a")
    second = await client.runs.create(thread, "slow", input={"text": "two"}, multitask_strategy="enqueue")
    await client.runs.cancel(thread, second["run_id"])
    assert (await client.threads.get(thread))["status"] == "busy"
    let(tmp_path, "a", "b", "c")
    await client.runs.join(thread, first["run_id"])
    assert (await client.runs.get(thread, second["run_id"]))["status"] == "interrupted"


async def test_resumable_stream_is_resumed(client: LangGraphClient, server: ServerProcess) -> None:
    thread = await new_thread(client)
    body = {"assistant_id": "echo", "input": {"text": "x"}, "stream_resumable": True}
    async with httpx.AsyncClient(base_url=server.url) as http:
        started = await http.post(f"/threads/{thread}/runs/stream", json=body)
        first = list(frames(started))
        assert all("id" in frame for frame in first)
        headers = {"Last-Event-ID": first[1]["id"]}
        again = list(frames(await http.get(started.headers["location"], headers=headers)))
        everything = list(frames(await http.get(started.headers["location"], headers={"Last-Event-ID": "-1"})))
    assert again == first[2:]
    assert everything == first


async def test_a_delayed_run_waits_without_keeping_its_thread_busy(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    late = await client.runs.create(thread, "echo", input={"text": "late"}, after_seconds=1)
    assert (await client.threads.get(thread))["status"] == "idle"
    result: Any = await client.runs.wait(thread, "echo", input={"text": "now"})
    assert result["reply"] == "now"
    assert (await client.runs.join(thread, late["run_id"]))["reply"] == "late"


async def test_a_run_makes_its_thread_when_asked_to(client: LangGraphClient) -> None:
    thread = "01a1e04e-66bb-755a-9724-c67f532b92aa"
    result: Any = await client.runs.wait(thread, "echo", input={"text": "x"}, if_not_exists="create")
    assert result["reply"] == "x"
    assert (await client.threads.get(thread))["metadata"]["graph_id"] == "echo"  # type: ignore[index]


async def test_disconnect_cancels_the_run_when_requested(
    client: LangGraphClient, server: ServerProcess, tmp_path: Path
) -> None:
    thread = await new_thread(client)
    body = {"assistant_id": "slow", "input": {"text": "one", "gate": str(tmp_path)}, "on_disconnect": "cancel"}
    async with (
        httpx.AsyncClient(base_url=server.url) as http,
        http.stream("POST", f"/threads/{thread}/runs/stream", json=body) as started,
    ):
        assert started.status_code == 200
        await reached(tmp_path, "a")
    async with asyncio.timeout(90):
        while (await client.threads.get(thread))["status"] == "busy":  # noqa: ASYNC110 - the server decides when
            await asyncio.sleep(0.02)
    assert (await client.runs.list(thread))[0]["status"] == "interrupted"
