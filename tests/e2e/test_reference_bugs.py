"""Known bugs of LangGraph's own server do not occur here; numbers as in the contract's first chapter."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import ConflictError, NotFoundError

from tests.e2e.holding import Gates, held, new_thread
from tests.servers import ServerProcess, frames
from tests.waiting import until

ACCEPT: Any = [{"type": "accept", "args": None}]


@pytest.fixture
async def http(server: ServerProcess) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=server.url, timeout=30) as made:
        yield made


async def status_of(client: LangGraphClient, thread: str) -> str:
    return (await client.threads.get(thread))["status"]


async def queued(client: LangGraphClient, thread: str) -> str:
    run = await client.runs.create(thread, "slow", input={"text": "two"}, multitask_strategy="enqueue")
    return run["run_id"]


async def test_03_the_three_reasons_for_interrupted_are_distinguished(client: LangGraphClient, tmp_path: Path) -> None:
    waits, stands = await new_thread(client), await new_thread(client)
    await client.runs.wait(waits, "hitl", input={"text": "x"})
    await client.runs.wait(stands, "breakpoint", input={"text": "x"})
    stopped, run, _ = await held(client, tmp_path)
    await client.runs.cancel(stopped, run, wait=True)
    seen = {}
    for name, thread in (("waits", waits), ("stands", stands), ("stopped", stopped)):
        response: Any = await client.threads.get(thread)
        assert response["status"] == "interrupted"
        seen[name] = (bool(response["interrupts"]), (response["error"] or {}).get("error"))
    assert seen == {"waits": (True, None), "stands": (False, None), "stopped": (False, "UserInterrupt")}


@pytest.mark.parametrize("answer", ["yes", None, {}], ids=["positional", "null", "nothing"])
async def test_04_refused_answer_leaves_both_questions_pending(http: httpx.AsyncClient, answer: Any) -> None:
    """It is refused before it can end the thread in an error, and both questions are found as before."""
    thread = (await http.post("/threads", json={})).json()["thread_id"]
    await http.post(f"/threads/{thread}/runs/wait", json={"assistant_id": "parallel", "input": {"text": "x"}})
    body = {"assistant_id": "parallel", "command": {"resume": answer}}
    refused = await http.post(f"/threads/{thread}/runs/wait", json=body)
    assert refused.status_code == 422
    (thread_listed,) = (await http.post("/threads/search", json={"ids": [thread], "status": "interrupted"})).json()
    waiting = [question for task in thread_listed["interrupts"].values() for question in task]
    assert sorted(question["id"] for question in waiting) == sorted(
        pending_item["id"] for pending_item in refused.json()["pending"]
    )


async def test_07_waiting_client_gets_the_question_with_any_stream_mode(client: LangGraphClient) -> None:
    """A stream of messages alone ends without a hint; the thread and a join tell."""
    thread = await new_thread(client)
    run = await client.runs.create(thread, "hitl", input={"text": "x"}, stream_mode="messages")
    joined: Any = await client.runs.join(thread, run["run_id"])
    assert joined["text"] == "x"
    assert [sorted(question) for question in joined["__interrupt__"]] == [["id", "value"]]
    late: Any = await client.runs.join(thread, run["run_id"])
    assert late == joined


async def test_07_several_questions_come_with_the_values(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    both: Any = await client.runs.wait(thread, "parallel", input={"text": "x"})
    assert (both["text"], len(both["__interrupt__"])) == ("x", 2)


async def test_08_errors_have_class_and_message(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    failed: Any = await client.runs.wait(thread, "failing", input={"text": "x"}, raise_error=False)
    assert failed == {"__error__": {"error": "ValueError", "message": "boom: x"}}
    state: Any = await client.threads.get_state(thread)
    assert state["tasks"][0]["error"] == "ValueError('boom: x')"


async def test_09_stream_modes_of_a_followed_thread_are_applied(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    following = aiter(await client.threads.join_stream(thread, stream_mode="lifecycle"))
    first = asyncio.ensure_future(anext(following))

    async def is_there() -> bool:
        await client.runs.wait(thread, "echo", input={"text": "x"})
        return first.done()

    await until(is_there)
    await is_there()  # one more, whichever of them was the first to be heard
    assert [(await first).event, (await anext(following)).event] == ["metadata", "metadata"]
    await following.aclose()  # type: ignore[attr-defined]


async def test_10_every_requested_stream_mode_is_sent(client: LangGraphClient, tmp_path: Path) -> None:
    modes: Any = ["values", "updates", "tasks"]
    thread, run, gates = await held(client, tmp_path, stream_mode=modes, stream_resumable=True)
    chosen: Any = ["updates", "values"]
    joined = client.runs.join_stream(thread, run, stream_mode=chosen, last_event_id="-1")
    gates.open()
    assert {part.event async for part in joined} == {"updates", "values"}


async def test_11_select_picks_fields_of_a_state(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    await client.runs.wait(thread, "slow", input={"text": "x"})
    state: Any = await client.threads.get_state(thread, select=["next", "values.text"])
    assert state == {"next": [], "values": {"text": "x"}}
    at: Any = (await client.threads.get_history(thread, limit=2))[1]["checkpoint"]
    assert await client.threads.get_state(thread, checkpoint=at, select=["next"]) == {"next": ["c"]}  # type: ignore[comparison-overlap]
    past: Any = await client.threads.get_history(thread, limit=2, select=["next"])
    assert past == [{"next": []}, {"next": ["c"]}]


async def test_11_reason_of_a_cancelled_run_is_shown(client: LangGraphClient, tmp_path: Path) -> None:
    thread, run, _ = await held(client, tmp_path)
    assert (await client.runs.get(thread, run))["cancel_reason"] is None
    await client.runs.cancel(thread, run, wait=True)
    assert (await client.runs.get(thread, run))["cancel_reason"] == "interrupt"


async def test_11_strict_resume_is_applied_and_reported_by_info(
    client: LangGraphClient, http: httpx.AsyncClient
) -> None:
    assert (await http.get("/info")).json()["flags"]["strict_resume"] is True
    thread = await new_thread(client)
    await client.runs.wait(thread, "hitl", input={"text": "x"})
    with pytest.raises(ConflictError):
        await client.runs.create(thread, "hitl", command={"resume": {"0" * 32: ACCEPT}}, strict_resume=True)


async def test_14_copy_of_a_waiting_thread_is_interrupted(client: Any) -> None:
    thread = await new_thread(client)
    asked = await client.runs.wait(thread, "hitl", input={"text": "x"})
    copy = await client.threads.copy(thread)
    assert (copy["status"], copy["values"]) == ("interrupted", {"text": "x"})
    (question,) = [interrupt for task in copy["interrupts"].values() for interrupt in task]
    assert question["value"] == asked["__interrupt__"][0]["value"]
    done = await client.runs.wait(copy["thread_id"], "hitl", command={"resume": {question["id"]: ACCEPT}})
    assert done["answer"]["type"] == "accept"
    assert await status_of(client, thread) == "interrupted"


async def test_14_copy_of_an_unknown_thread_is_refused(http: httpx.AsyncClient) -> None:
    refused = await http.post(f"/threads/{uuid4()}/copy")
    assert (refused.status_code, refused.json()["detail"]) == (409, "Conflict")


@pytest.mark.parametrize("how", ["cancel", "delete"])
async def test_15_run_without_a_follower_frees_its_thread(client: LangGraphClient, tmp_path: Path, how: str) -> None:
    thread, run, _ = await held(client, tmp_path)
    if how == "cancel":
        await client.runs.cancel(thread, run, action="rollback")
    else:
        await client.runs.delete(thread, run)

    async def is_free() -> bool:
        return await status_of(client, thread) == "idle"

    await until(is_free)
    assert await client.runs.list(thread) == []
    assert (await client.runs.wait(thread, "echo", input={"text": "x"}))["reply"] == "x"  # type: ignore[call-overload]


@pytest.mark.parametrize("action", ["interrupt", "rollback"])
async def test_15_cancelling_a_queued_run_leaves_the_thread_busy(
    client: LangGraphClient, tmp_path: Path, action: Any
) -> None:
    thread, run, gates = await held(client, tmp_path)
    await client.runs.cancel(thread, await queued(client, thread), action=action)
    assert await status_of(client, thread) == "busy"
    gates.open()
    await client.runs.join(thread, run)
    assert await status_of(client, thread) == "idle"


@pytest.mark.parametrize("action", ["interrupt", "rollback", "delete", "interrupt by another", "rollback by another"])
async def test_15_join_of_a_run_that_never_begins_ends(
    http: httpx.AsyncClient, client: LangGraphClient, tmp_path: Path, action: str
) -> None:
    thread, _, _ = await held(client, tmp_path)
    run = await queued(client, thread)
    path = f"/threads/{thread}/runs/{run}"
    async with http.stream("GET", f"{path}/stream") as following, http.stream("GET", f"{path}/join") as joining:
        if action == "delete":
            await client.runs.delete(thread, run)
        elif action.endswith("another"):
            strategy: Any = action.partition(" ")[0]
            await client.runs.create(thread, "echo", input={"text": "x"}, multitask_strategy=strategy)
        else:
            await client.runs.cancel(thread, run, action="rollback" if action == "rollback" else "interrupt")
        async with asyncio.timeout(90):
            assert await following.aread() == b""
            assert await joining.aread() == b"null"


async def test_15_join_ends_when_the_thread_is_removed(
    http: httpx.AsyncClient, client: LangGraphClient, tmp_path: Path
) -> None:
    thread, run, _ = await held(client, tmp_path)
    behind = await queued(client, thread)
    path = f"/threads/{thread}/runs"
    async with (
        http.stream("GET", f"{path}/{run}/stream") as stream,
        http.stream("GET", f"{path}/{behind}/stream") as other,
    ):
        await client.threads.delete(thread)
        async with asyncio.timeout(90):
            assert b"event: error" not in await stream.aread(), "it may see what the run had sent before"
            assert await other.aread() == b""


async def test_15_search_by_values_works_beside_threads_without_values(client: LangGraphClient) -> None:
    text = str(uuid4())
    await new_thread(client)
    thread = await new_thread(client)
    await client.runs.wait(thread, "echo", input={"text": text})
    threads = await client.threads.search(values={"text": text})
    assert [thread["thread_id"] for thread in threads] == [thread]


async def test_15_earlier_assistant_version_is_restored_completely(client: LangGraphClient) -> None:
    made = await client.assistants.create("factory", context={"greeting": "hi"})
    await client.assistants.update(made["assistant_id"], context={"greeting": "hey"})
    back = await client.assistants.set_latest(made["assistant_id"], 1)
    assert back["context"] == {"greeting": "hi"}
    assert back["config"] == {"configurable": {"greeting": "hi"}}


@pytest.mark.parametrize("what", ["join", "stream", "cancel"])
async def test_15_an_unknown_run_is_not_found(http: httpx.AsyncClient, client: LangGraphClient, what: str) -> None:
    thread = await new_thread(client)
    method = "POST" if what == "cancel" else "GET"
    answer = await http.request(method, f"/threads/{thread}/runs/{uuid4()}/{what}")
    assert answer.status_code == 404
    if what != "cancel":
        assert (await http.get(f"/runs/{uuid4()}/{what}")).status_code == 404


async def test_15_stateless_run_is_found_at_its_content_location(http: httpx.AsyncClient, tmp_path: Path) -> None:
    gates = Gates(tmp_path)
    run = r"/runs/[0-9a-f-]{36}"
    for way, expected in (("stream", rf"{run}/stream"), ("wait", rf"/threads/[0-9a-f-]{{36}}{run}/join")):
        body = {"assistant_id": "slow", "input": gates.input()}
        async with http.stream("POST", f"/runs/{way}", json=body) as running:
            await gates.reached("a")
            location = running.headers["location"]
            assert re.fullmatch(expected, location)
            async with http.stream("GET", location) as again:
                gates.open()
                assert again.status_code == 200
                await again.aread()
            await running.aread()
        for step in "abc":
            (tmp_path / f"{step}.go").unlink()
            (tmp_path / f"{step}.started").unlink()


async def test_15_events_of_the_same_moment_have_different_ids(
    http: httpx.AsyncClient, client: LangGraphClient
) -> None:
    thread = await new_thread(client)
    body = {"assistant_id": "streams", "input": {"messages": [], "lines": 200}, "stream_mode": "custom"}
    answer = await http.post(f"/threads/{thread}/runs/stream", json={**body, "stream_resumable": True})
    seen = list(frames(answer))
    assert len({frame["id"] for frame in seen}) == len(seen) == 202
    rest = await http.get(answer.headers["location"], headers={"Last-Event-ID": seen[100]["id"]})
    assert list(frames(rest)) == seen[101:]


async def test_15_a_finished_run_is_removed_with_the_question_it_asked(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    await client.runs.wait(thread, "echo", input={"text": "before"})
    run = await client.runs.create(thread, "hitl", input={"text": "x"})
    await client.runs.join(thread, run["run_id"])
    await client.runs.delete(thread, run["run_id"])
    response: Any = await client.threads.get(thread)
    assert (response["status"], response["interrupts"], response["values"]["text"]) == ("idle", {}, "before")
    with pytest.raises(NotFoundError):
        await client.runs.get(thread, run["run_id"])


async def test_18_browsers_may_read_the_content_location(http: httpx.AsyncClient) -> None:
    answer = await http.get("/info", headers={"Origin": "http://localhost:3000"})
    exposed = {name.strip().lower() for name in answer.headers["access-control-expose-headers"].split(",")}
    assert {"location", "content-location", "x-pagination-total", "x-pagination-next"} <= exposed
