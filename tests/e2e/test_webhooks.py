"""Webhooks of runs, from a real server to a real receiver: what they tell, and to whom they are not sent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import UnprocessableEntityError

from tests.receiver import Call, Receiver, receiving, verified
from tests.servers import ServerProcess
from tests.waiting import wait_until


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as webhook_receiver:
        yield webhook_receiver


async def thread_of(client: LangGraphClient) -> str:
    return str((await client.threads.create())["thread_id"])


async def told(client: LangGraphClient, receiver: Receiver, graph: str, **run: Any) -> tuple[str, Call]:
    """The webhook of one run on a thread of its own."""
    thread = await thread_of(client)
    await client.runs.create(thread, graph, input={"text": "hello"}, webhook=f"{receiver.url}/hook", **run)
    (call,) = await receiver.has(1)
    return thread, call


async def test_finished_run_sends_its_values(
    client: LangGraphClient, server: ServerProcess, receiver: Receiver
) -> None:
    thread, call = await told(client, receiver, "echo", metadata={"who": "ana"})
    body = call.json
    run = await client.runs.get(thread, body["run_id"])
    assert body.items() >= dict(run).items(), "the run's row, exactly as the API gives it"
    assert (body["status"], body["waiting"], body["interrupts"], body["next"]) == ("success", False, [], [])
    assert (body["values"], body["error"]) == ({"text": "hello", "reply": "hello"}, None)
    assert body["run_started_at"] <= body["run_ended_at"] <= body["webhook_sent_at"]
    reviewer = {"x-api-key": server.printed("reviewer key")}
    async with httpx.AsyncClient(base_url=server.url, headers=reviewer) as http:
        secret = (await http.get("/api/webhooks/secret")).json()["secret"]
    assert verified(call, secret)


async def test_waiting_run_sends_its_interrupts(client: LangGraphClient, receiver: Receiver) -> None:
    thread, call = await told(client, receiver, "parallel")
    body = call.json
    assert (body["status"], body["waiting"]) == ("success", True)
    assert sorted(question["value"]["question"] for question in body["interrupts"]) == ["left?", "right?"]
    answers = {question["id"]: "yes" for question in body["interrupts"]}
    hook = f"{receiver.url}/hook"
    await client.runs.create(thread, "parallel", command={"resume": answers}, webhook=hook)
    after = (await receiver.has(2))[1].json
    assert (after["waiting"], sorted(after["values"]["answers"])) == (False, ["left=yes", "right=yes"])


async def test_run_at_a_breakpoint_sends_waiting(client: LangGraphClient, receiver: Receiver) -> None:
    _, call = await told(client, receiver, "breakpoint")
    assert (call.json["status"], call.json["waiting"], call.json["interrupts"]) == ("success", True, [])
    assert call.json["next"] == ["publish"]


async def test_failed_run_sends_its_error(client: LangGraphClient, receiver: Receiver) -> None:
    _, call = await told(client, receiver, "failing")
    assert (call.json["status"], call.json["waiting"]) == ("error", False)
    assert call.json["error"] == {"error": "ValueError", "message": "boom: hello"}


async def test_stateless_run_sends_its_webhook(client: LangGraphClient, receiver: Receiver) -> None:
    await client.runs.wait(None, "echo", input={"text": "hi"}, webhook=receiver.url)
    (call,) = await receiver.has(1)
    assert call.json["values"]["reply"] == "hi"


@pytest.mark.parametrize(("action", "status"), [("interrupt", "interrupted"), ("rollback", "rollback")])
async def test_cancelled_run_sends_its_status(
    client: LangGraphClient, receiver: Receiver, tmp_path: Path, action: Any, status: str
) -> None:
    thread = await thread_of(client)
    gate = {"text": "x", "gate": str(tmp_path)}
    running = await client.runs.create(thread, "slow", input=gate, webhook=receiver.url)
    wait_until((tmp_path / "a.started").exists, "the run has not begun")
    queued = await client.runs.create(thread, "slow", input=gate, webhook=receiver.url, multitask_strategy="enqueue")
    await client.runs.cancel(thread, queued["run_id"], action=action)
    await client.runs.cancel(thread, running["run_id"], action=action)
    calls = await receiver.has(2)
    assert {(call.json["run_id"], call.json["status"]) for call in calls} == {
        (queued["run_id"], status),
        (running["run_id"], status),
    }
    starts = {call.json["run_id"]: call.json["run_started_at"] for call in calls}
    assert starts[queued["run_id"]] is None
    assert starts[running["run_id"]] is not None


@pytest.mark.parametrize(
    "url",
    [
        "/relative",
        "ftp://example.com/x",
        "https://user:password@example.com/",
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data",
        "http://[fd00::1]/",
        "http://2852039166/",
        "http://",
    ],
)
async def test_webhook_to_a_forbidden_target_is_refused(client: LangGraphClient, url: str) -> None:
    thread = await thread_of(client)
    with pytest.raises(UnprocessableEntityError):
        await client.runs.create(thread, "echo", input={"text": "x"}, webhook=url)
    assert await client.runs.list(thread) == []
