"""Event streaming with the stock Python SDK, sync and async, and as bytes: runs, questions, resuming, refusals."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient, SyncLangGraphClient

from tests.e2e.eventing import ENDED, HELLO, command, new_id, of, read, read_until, started, tells
from tests.e2e.holding import Gates, new_thread
from tests.servers import ServerProcess

pytestmark = pytest.mark.promise("SERVE-01")


@pytest.fixture
async def http(server: ServerProcess) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=server.url, timeout=30) as made:
        yield made


@pytest.fixture(params=["sse", "websocket"])
def transport(request: pytest.FixtureRequest) -> Any:
    return request.param


# The stock SDK


async def test_a_thread_stream_gives_the_output_of_its_run(client: LangGraphClient, transport: Any) -> None:
    async with client.threads.stream(assistant_id="echo", transport=transport) as thread:
        run = await thread.run.start(input={"text": "x"})
        assert await asyncio.wait_for(thread.output, 90) == {"text": "x", "reply": "x"}
    assert (await client.runs.get(thread.thread_id, run["run_id"]))["status"] == "success"


async def test_values_messages_and_subgraphs_are_projected(client: LangGraphClient, transport: Any) -> None:
    async with asyncio.timeout(90), client.threads.stream(assistant_id="streams", transport=transport) as thread:
        await thread.run.start(input=HELLO)
        items = [item async for item in thread.interleave_projections(["values", "subgraphs", "checkpoints"])]
    [*_, values] = [item for name, item in items if name == "values"]
    assert [message["content"] for message in values["messages"]][1] == "at once"
    assert [item.graph_name for name, item in items if name == "subgraphs"] == ["child"]
    assert [item["source"] for name, item in items if name == "checkpoints"][:2] == ["input", "loop"]


async def test_a_models_answer_is_streamed_as_content_blocks(client: LangGraphClient, transport: Any) -> None:
    async with asyncio.timeout(90), client.threads.stream(assistant_id="chat", transport=transport) as thread:
        await thread.run.start(input=HELLO)
        [message] = [message async for message in thread.messages]
        said = await message.output
    assert said.text


async def test_a_question_is_answered_by_its_id(client: LangGraphClient, transport: Any) -> None:
    async with asyncio.timeout(90), client.threads.stream(assistant_id="hitl", transport=transport) as thread:
        await thread.run.start(input={"text": "draft"})
        while not thread.interrupts:  # noqa: ASYNC110 - the SDK has no event for it
            await asyncio.sleep(0.01)
        [question] = thread.interrupts
        assert question["value"]["action_request"]["action"] == "send_email"
        await thread.run.respond([{"type": "accept", "args": None}], interrupt_id=question["interrupt_id"])
        output = await thread.output
    assert output["answer"]["type"] == "accept"


async def test_a_failed_run_fails_the_output(client: LangGraphClient, transport: Any) -> None:
    async with asyncio.timeout(90), client.threads.stream(assistant_id="failing", transport=transport) as thread:
        await thread.run.start(input={"text": "x"})
        with pytest.raises(RuntimeError, match="boom: x"):
            await thread.output


def test_the_sync_client_streams_asks_and_answers(sync_client: SyncLangGraphClient, transport: Any) -> None:
    with sync_client.threads.stream(assistant_id="hitl", transport=transport) as thread:
        thread.run.start(input={"text": "draft"})
        snapshots = list(thread.values)  # until the run waits for an answer
        [question] = thread.interrupts
        assert question["value"]["action_request"]["args"]["body"] == "draft"
        thread.run.respond([{"type": "response", "args": "no"}])
        output = thread.output
    assert snapshots[-1] == {"text": "draft"}
    assert output["answer"] == {"type": "response", "args": "no"}


# As bytes


async def test_events_are_numbered_and_have_stable_ids(http: httpx.AsyncClient) -> None:
    thread = await started(http, "streams", HELLO)
    first = await read_until(http, thread, ENDED)
    again = await read_until(http, thread, ENDED)
    assert [event["event_id"] for event in again] == [event["event_id"] for event in first]
    assert [event["seq"] for event in again] == [event["seq"] for event in first]
    assert [event["seq"] for event in first] == sorted({event["seq"] for event in first})
    assert len({event["event_id"] for event in first}) == len(first)
    assert max(event["seq"] for event in first) < 2**53


async def test_since_gives_what_comes_after_it_over_all_runs(http: httpx.AsyncClient) -> None:
    thread = await started(http, "echo", {"text": "one"})
    await read_until(http, thread, ENDED)
    await started(http, "echo", {"text": "two"}, thread)
    ends = 0

    def is_second(event: Any) -> bool:
        nonlocal ends
        ends += ENDED(event)
        return ends == 2

    whole = await read_until(http, thread, is_second)
    for place, event in enumerate(whole[:-1]):
        left = [each["event_id"] for each in whole[place + 1 :]]
        rest = []
        async with asyncio.timeout(90):
            async for each in read(http, thread, since=event["seq"]):
                rest.append(each["event_id"])
                if len(rest) == len(left):
                    break
        assert rest == left


async def test_channels_namespaces_and_depth_select_events(http: httpx.AsyncClient) -> None:
    thread = await started(http, "streams", HELLO)
    await read_until(http, thread, ENDED)
    inside = await read_until(http, thread, _is_inside, channels=["messages"], namespaces=[["child"]])
    assert {event["method"] for event in inside} == {"messages"}
    outside = await read_until(http, thread, ENDED, channels=["values", "lifecycle"], namespaces=[[]], depth=0)
    assert {tuple(event["params"]["namespace"]) for event in outside} == {()}
    custom = await read_until(http, thread, ENDED, channels=["custom", "lifecycle"])
    assert of("custom", custom) == [{"payload": {"progress": "outside"}}, {"payload": {"progress": "inside"}}]


def _is_inside(event: Any) -> bool:
    return bool(event["params"]["namespace"]) and event["params"]["data"]["event"] == "message-finish"


async def test_a_question_is_asked_with_both_names_and_can_be_answered_at_once(http: httpx.AsyncClient) -> None:
    thread = await started(http, "parallel", {"text": "x"})
    asked: list[Any] = []

    def are_both(event: Any) -> bool:
        asked.extend(of("input.requested", [event]))
        return len(asked) == 2

    events = await read_until(http, thread, are_both)
    assert [question["payload"] for question in asked] == [question["value"] for question in asked]
    responses = [{"interrupt_id": question["interrupt_id"], "response": "yes"} for question in asked]
    assert (await command(http, thread, "input.respond", responses=responses))["type"] == "success"
    rest = await read_until(http, thread, tells("completed"), since=events[-1]["seq"])
    assert sorted(of("values", rest)[-1]["answers"]) == ["left=yes", "right=yes"]


async def test_a_question_of_a_run_without_stored_frames_is_told(
    http: httpx.AsyncClient, client: LangGraphClient
) -> None:
    thread = await new_thread(client)
    await client.runs.wait(thread, "hitl", input={"text": "draft"})
    events = await read_until(http, thread, tells("interrupted"))
    assert [event["method"] for event in events] == ["lifecycle", "input.requested", "lifecycle"]
    [asked] = of("input.requested", events)
    pending: Any = (await client.threads.get(thread))["interrupts"]
    assert [asked["interrupt_id"]] == [question["id"] for task in pending.values() for question in task]


async def test_a_positional_answer_is_accepted_once_the_event_was_read(
    http: httpx.AsyncClient, client: LangGraphClient
) -> None:
    thread = await started(http, "hitl", {"text": "draft"})
    await read_until(http, thread, lambda event: event["method"] == "input.requested")
    done: Any = await client.runs.wait(thread, "hitl", command={"resume": [{"type": "accept", "args": None}]})
    assert done["answer"]["type"] == "accept"


async def test_a_cancelled_run_is_told_as_interrupted(
    http: httpx.AsyncClient, client: LangGraphClient, tmp_path: Path
) -> None:
    gates = Gates(tmp_path)
    thread = await started(http, "slow", gates.input())
    await gates.reached("a")
    [run] = await client.runs.list(thread)
    await client.runs.cancel(thread, run["run_id"], wait=True)
    assert ENDED((await read_until(http, thread, ENDED))[-1])
    assert of("lifecycle", await read_until(http, thread, ENDED))[-1]["event"] == "interrupted"


# Refusals


async def test_new_input_does_not_answer_a_question(http: httpx.AsyncClient) -> None:
    thread = await started(http, "hitl", {"text": "draft"})
    await read_until(http, thread, ENDED)
    told = await command(http, thread, "run.start", assistant_id="hitl", input=[{"type": "accept", "args": None}])
    assert (told["type"], told["status"], told["code"]) == ("error", 409, "thread_waits")
    assert len(told["pending"]) == 1


async def test_a_busy_thread_refuses_another_run_at_once(
    http: httpx.AsyncClient, client: LangGraphClient, tmp_path: Path
) -> None:
    gates = Gates(tmp_path)
    thread = await started(http, "slow", gates.input())
    await gates.reached("a")
    given: Any = {"assistant_id": "slow", "input": {"text": "two"}, "multitaskStrategy": "reject"}
    told = await command(http, thread, "run.start", **given)
    assert (told["type"], told["code"]) == ("error", "thread_busy")
    gates.open()
    await read_until(http, thread, ENDED)


@pytest.mark.parametrize("interrupt_id", ["0" * 32, "nobody", ""])
async def test_an_unknown_question_is_not_answered(http: httpx.AsyncClient, interrupt_id: str) -> None:
    thread = await started(http, "hitl", {"text": "draft"})
    await read_until(http, thread, ENDED)
    told = await command(http, thread, "input.respond", interrupt_id=interrupt_id, response=[{"type": "accept"}])
    assert (told["type"], told["error"], told["status"]) == ("error", "no_such_interrupt", 409)
    assert (await http.get(f"/threads/{thread}")).json()["status"] == "interrupted"


async def test_a_question_is_answered_once(http: httpx.AsyncClient) -> None:
    thread = await started(http, "hitl", {"text": "draft"})
    [asked] = of("input.requested", await read_until(http, thread, ENDED))
    given = {"interrupt_id": asked["interrupt_id"], "response": [{"type": "accept", "args": None}]}
    told = await asyncio.gather(*(command(http, thread, "input.respond", **given) for _ in range(5)))
    assert sorted(each["type"] for each in told) == ["error"] * 4 + ["success"]


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("run.start", {}, "invalid_argument"),
        ("run.start", {"assistant_id": "nobody"}, "invalid_argument"),
        ("run.start", {"assistant_id": "echo", "config": {"configurable": {"checkpoint_id": "x"}}}, "invalid_argument"),
        ("run.start", {"assistant_id": "echo", "config": []}, "invalid_argument"),
        ("run.start", {"assistant_id": "echo", "metadata": "x"}, "invalid_argument"),
        ("run.start", {"assistant_id": "echo", "langsmith_tracer": {"other": "x"}}, "invalid_argument"),
        ("input.respond", {}, "invalid_argument"),
        ("input.respond", {"responses": []}, "invalid_argument"),
        ("input.respond", {"responses": ["x"]}, "invalid_argument"),
        ("input.respond", {"interrupt_id": "0" * 32, "namespace": "x"}, "invalid_argument"),
        ("state.get", {}, "unknown_command"),
        ("agent.getTree", {}, "no_such_run"),
        ("subscription.unsubscribe", {"subscription_id": "x"}, "no_such_subscription"),
        ("subscription.subscribe", {"channels": ["debug"]}, "invalid_argument"),
    ],
)
async def test_a_bad_command_is_answered_with_its_code(
    http: httpx.AsyncClient, client: LangGraphClient, method: str, params: Any, code: str
) -> None:
    thread = await started(http, "echo", {"text": "x"})
    await read_until(http, thread, ENDED)
    told = await command(http, thread, method, **params)
    assert (told["type"], told["error"]) == ("error", code), told
    assert told["message"]


@pytest.mark.parametrize("body", [{}, {"id": "1", "method": "run.start"}, {"id": 1}, {"id": True, "method": "x"}, []])
async def test_a_body_that_is_no_command_is_refused(http: httpx.AsyncClient, body: Any) -> None:
    answer = await http.post(f"/threads/{new_id()}/commands", json=body)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_argument")


@pytest.mark.parametrize("content", [b"", b"{", b'{"id": 1, "id": 2}', b'{"id": NaN}'])
async def test_a_body_that_is_not_json_is_refused(http: httpx.AsyncClient, content: bytes) -> None:
    for path in ("commands", "stream/events"):
        headers = {"content-type": "application/json"}
        answer = await http.post(f"/threads/{new_id()}/{path}", content=content, headers=headers)
        assert (answer.status_code, answer.json()["detail"]) == (400, "Invalid JSON in request body")


async def test_a_malformed_answer_to_a_thread_that_never_ran_is_named(http: httpx.AsyncClient) -> None:
    told = await command(http, new_id(), "input.respond", interrupt_id=5)
    assert (told["error"], told["message"]) == ("invalid_argument", "input.respond requires an interrupt_id.")


@pytest.mark.parametrize("channels", [None, [], "values", ["debug"], [1], ["custom:"], ["values"] * 2000])
async def test_a_bad_selection_is_refused(http: httpx.AsyncClient, client: LangGraphClient, channels: Any) -> None:
    answer = await http.post(f"/threads/{await new_thread(client)}/stream/events", json={"channels": channels})
    assert answer.status_code == 400
    assert "channels" in answer.json()["detail"]


async def test_stream_of_an_id_that_no_thread_can_have_is_refused(http: httpx.AsyncClient) -> None:
    answer = await http.post("/threads/mine/stream/events", json={"channels": ["values"]})
    assert (answer.status_code, answer.json()["detail"]) == (422, "thread_id: not a UUID")


async def test_a_stream_opened_before_its_thread_gets_the_first_run(http: httpx.AsyncClient) -> None:
    """JavaScript clients subscribe first."""
    thread = new_id()
    opened = asyncio.create_task(read_until(http, thread, ENDED))
    await started(http, "echo", {"text": "x"}, thread)
    assert of("values", await opened)[-1] == {"text": "x", "reply": "x"}
