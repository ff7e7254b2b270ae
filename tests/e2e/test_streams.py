"""Streams as bytes: frames, headers, heartbeats, names, what late and returning readers get, following a thread."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient

from tests.e2e.holding import Gates, held, new_thread
from tests.servers import ServerProcess, frames
from tests.waiting import until

pytestmark = pytest.mark.promise("SERVE-01")

HELLO = {"messages": [{"role": "user", "content": "hi"}]}
ID = r"\d+-\d+"
Events = list[tuple[str, Any]]


@pytest.fixture
async def http(server: ServerProcess) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=server.url, timeout=30) as made:
        yield made


async def streamed(http: httpx.AsyncClient, graph: str, input: Any, **body: Any) -> httpx.Response:
    thread = (await http.post("/threads", json={})).json()["thread_id"]
    answer = await http.post(f"/threads/{thread}/runs/stream", json={"assistant_id": graph, "input": input, **body})
    assert answer.status_code == 200, answer.text
    return answer


def events(answer: httpx.Response) -> Events:
    return [(frame["event"], json.loads(frame["data"])) for frame in frames(answer)]


async def named(http: httpx.AsyncClient, graph: str, input: Any, **body: Any) -> Events:
    """All events but the first, which is always about the run."""
    (first, _), *rest = events(await streamed(http, graph, input, **body))
    assert first == "metadata"
    return rest


def of(name: str, seen: Events) -> list[Any]:
    return [data for event, data in seen if event == name]


async def test_frames_have_the_exact_bytes_of_the_contract(http: httpx.AsyncClient) -> None:
    answer = await streamed(http, "echo", {"text": "r"})
    run = answer.headers["content-location"].rsplit("/", 1)[-1]
    assert (
        answer.content
        == (
            f'event: metadata\r\ndata: {{"run_id":"{run}","attempt":1}}\r\n\r\n'
            'event: values\r\ndata: {"text":"r"}\r\n\r\n'
            'event: values\r\ndata: {"text":"r","reply":"r"}\r\n\r\n'
        ).encode()
    )


async def test_resumable_frames_carry_an_id_last(http: httpx.AsyncClient) -> None:
    answer = await streamed(http, "echo", {"text": "r"}, stream_resumable=True)
    *whole, rest = answer.text.split("\r\n\r\n")
    assert rest == ""
    assert [bool(re.fullmatch(rf"event: \w+\r\ndata: [^\r\n]+\r\nid: {ID}", frame)) for frame in whole] == [True] * 3
    assert len({frame["id"] for frame in frames(answer)}) == 3


async def test_headers_have_content_type_and_location(http: httpx.AsyncClient) -> None:
    headers = (await streamed(http, "echo", {"text": "r"})).headers
    assert headers["content-type"] == "text/event-stream; charset=utf-8"
    assert headers["cache-control"] == "no-store"
    assert headers["x-accel-buffering"] == "no"
    assert headers["connection"] == "keep-alive"
    assert headers["location"] == f"{headers['content-location']}/stream"
    assert re.fullmatch(r"/threads/[0-9a-f-]{36}/runs/[0-9a-f-]{36}", headers["content-location"])


@pytest.mark.promise("DROP-05")
async def test_a_quiet_connection_is_kept_alive(
    http: httpx.AsyncClient, client: LangGraphClient, tmp_path: Path
) -> None:
    """A comment in streams and a line break in long answers, at least every five seconds."""
    thread, run, gates = await held(client, tmp_path)
    path = f"/threads/{thread}/runs/{run}"
    async with (
        asyncio.timeout(8),
        http.stream("GET", f"{path}/stream") as live,
        http.stream("GET", f"{path}/join") as stream,
    ):
        assert await anext(live.aiter_raw()) == b": heartbeat\r\n\r\n"
        assert await anext(stream.aiter_raw()) == b"\n"
    gates.open()


async def test_error_is_the_last_frame_of_a_stream(http: httpx.AsyncClient) -> None:
    assert await named(http, "failing", {"text": "x"}) == [
        ("values", {"text": "x"}),
        ("error", {"error": "ValueError", "message": "boom: x"}),
    ]


async def test_the_run_has_its_last_status_before_the_stream_closes(
    http: httpx.AsyncClient, client: LangGraphClient
) -> None:
    for graph, status in (("echo", "success"), ("hitl", "success"), ("failing", "error")):
        answer = await streamed(http, graph, {"text": "x"})
        thread, run = re.findall(r"[0-9a-f-]{36}", answer.headers["content-location"])
        assert (await client.runs.get(thread, run))["status"] == status


async def test_a_cancelled_run_closes_its_stream_silently(
    http: httpx.AsyncClient, client: LangGraphClient, tmp_path: Path
) -> None:
    thread, run, _ = await held(client, tmp_path)
    following = asyncio.create_task(http.get(f"/threads/{thread}/runs/{run}/stream"))
    joining = asyncio.create_task(http.get(f"/threads/{thread}/runs/{run}/join"))
    await client.runs.cancel(thread, run, wait=True)
    assert (await following).content == b""
    assert (await joining).json() == {"text": "one", "gate": str(tmp_path), "log": []}


async def test_subgraph_frames_have_their_namespace_in_the_event_name(http: httpx.AsyncClient) -> None:
    modes = ["values", "updates", "custom", "messages-tuple"]
    seen = await named(http, "streams", HELLO, stream_mode=modes, stream_subgraphs=True)
    inside = [event for event, _ in seen if "|" in event]
    assert all(re.fullmatch(r"(values|updates|custom|messages)\|child:[0-9a-f-]{36}", event) for event in inside)
    assert {event.partition("|")[0] for event in inside} == {"values", "updates", "custom", "messages"}
    assert of(next(event for event in inside if event.startswith("custom")), seen) == [{"progress": "inside"}]
    assert of("custom", seen) == [{"progress": "outside"}]


async def test_without_subgraphs_no_inner_frames_are_sent(http: httpx.AsyncClient) -> None:
    seen = await named(http, "streams", HELLO, stream_mode=["updates", "custom"])
    assert of("custom", seen) == [{"progress": "outside"}]
    assert [list(data) for data in of("updates", seen)] == [["announce"], ["child"]]


async def test_messages_start_with_metadata_and_grow(http: httpx.AsyncClient) -> None:
    seen = await named(http, "streams", HELLO, stream_mode="messages", stream_subgraphs=True)
    assert {event for event, _ in seen} == {"messages/metadata", "messages/partial", "messages/complete"}
    announced = [id for data in of("messages/metadata", seen) for id in data]
    assert len(announced) == len(set(announced)) == 2
    assert announced[0] == "whole"
    (complete,) = of("messages/complete", seen)
    assert [(item["id"], item["content"], item["type"]) for item in complete] == [("whole", "at once", "ai")]
    growing = [one for (one,) in of("messages/partial", seen)]
    assert [one["content"] for one in growing][:3] == ["a", "ab", "abc"]
    assert {(item["id"], item["type"]) for item in growing} == {(announced[1], "ai")}
    metadata = of("messages/metadata", seen)[1][announced[1]]["metadata"]
    assert metadata["langgraph_node"] == "talk"


async def test_message_tuples_are_pieces_with_their_metadata(http: httpx.AsyncClient) -> None:
    seen = await named(http, "chat", HELLO, stream_mode="messages-tuple")
    assert {event for event, _ in seen} == {"messages"}
    pieces = [piece for piece, _ in of("messages", seen)]
    assert {piece["type"] for piece in pieces} == {"AIMessageChunk"}
    assert "".join(piece["content"] for piece in pieces) == "you said: hi "
    assert all(about["langgraph_node"] == "talk" for _, about in of("messages", seen))
    assert not any(name.startswith("__") for _, about in of("messages", seen) for name in about)


async def test_a_question_is_in_values_and_updates(http: httpx.AsyncClient) -> None:
    seen = await named(http, "hitl", {"text": "x"}, stream_mode=["values", "updates"])
    (update,) = of("updates", seen)
    assert [sorted(question) for question in update["__interrupt__"]] == [["id", "value"]]
    assert of("values", seen) == [{"text": "x"}, {"text": "x", **update}]


async def test_two_questions_are_two_events_of_one_each(http: httpx.AsyncClient) -> None:
    seen = await named(http, "parallel", {"text": "x"}, stream_mode=["values", "updates"])
    for mode in ("values", "updates"):
        asked = [data["__interrupt__"] for data in of(mode, seen) if "__interrupt__" in data]
        assert [len(questions) for questions in asked] == [1, 1]
        assert {questions[0]["value"]["question"] for questions in asked} == {"left?", "right?"}


async def test_a_breakpoint_is_an_empty_question(http: httpx.AsyncClient) -> None:
    seen = await named(http, "breakpoint", {"text": "x"}, stream_mode=["updates"])
    assert of("updates", seen) == [{"prepare": {"text": "x, prepared"}}, {"__interrupt__": []}]


async def test_debug_mode_streams_checkpoints_and_tasks(http: httpx.AsyncClient) -> None:
    seen = await named(http, "hitl", {"text": "x"}, stream_mode=["tasks", "checkpoints", "debug"])
    started, finished = of("tasks", seen)
    assert sorted(started) == ["id", "input", "metadata", "name", "triggers"]
    assert sorted(finished) == ["error", "id", "interrupts", "name", "result"]
    assert [sorted(question) for question in finished["interrupts"]] == [["id", "value"]]
    for checkpoint in of("checkpoints", seen):
        assert {"config", "metadata", "values", "next", "parent_config", "tasks"} <= checkpoint.keys()
        assert "checkpoint" not in checkpoint  # only `debug` has the addresses, as on the reference
        assert not any(name.startswith("__") for name in checkpoint["config"]["configurable"])
    debugged = [data["payload"] for data in of("debug", seen) if data["type"] == "checkpoint"]
    assert all({"checkpoint", "parent_checkpoint"} <= payload.keys() for payload in debugged)
    kinds = Counter(data["type"] for data in of("debug", seen))
    assert kinds == {"checkpoint": 2, "task": 1, "task_result": 1}
    results = [data["payload"] for data in of("debug", seen) if data["type"] == "task_result"]
    assert [sorted(question) for question in results[0]["interrupts"]] == [["id", "value"]]


async def test_events_mode_streams_langchain_events(http: httpx.AsyncClient) -> None:
    seen = of("events", await named(http, "echo", {"text": "x"}, stream_mode="events"))
    assert [data["event"] for data in seen if data["metadata"].get("langgraph_node") == "echo"] == [
        "on_chain_start",
        "on_chain_stream",
        "on_chain_end",
    ]


async def test_a_burst_arrives_whole(http: httpx.AsyncClient) -> None:
    burst = {**HELLO, "lines": 5000}
    seen = of("custom", await named(http, "streams", burst, stream_mode="custom"))
    assert [data["line"] for data in seen if "line" in data] == list(range(5000))
    body = {"assistant_id": "streams", "input": burst, "stream_mode": "custom"}
    assert (await http.post("/runs/wait", json=body)).json()["lines"] == 5000


SPELLINGS: dict[str, Any] = {
    "repeated": [("stream_mode", "updates"), ("stream_mode", "tasks")],
    "json": [("stream_mode", '["updates","tasks"]')],
    "comma": [("stream_mode", "updates,tasks")],
}


@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_a_reader_chooses_modes_in_any_spelling(
    http: httpx.AsyncClient, client: LangGraphClient, tmp_path: Path, spelling: str
) -> None:
    modes: Any = ["values", "updates", "tasks"]
    thread, run, gates = await held(client, tmp_path, stream_mode=modes)
    async with http.stream("GET", f"/threads/{thread}/runs/{run}/stream", params=SPELLINGS[spelling]) as live:
        gates.open()
        seen = events(await _read(live))
    assert Counter(event for event, _ in seen) == {"updates": 3, "tasks": 5}


async def test_a_reader_chooses_one_mode_and_messages_keep_both_names(
    http: httpx.AsyncClient, client: LangGraphClient
) -> None:
    answer = await streamed(http, "chat", HELLO, stream_mode=["messages-tuple", "values"], stream_resumable=True)
    path, again = answer.headers["location"], {"Last-Event-ID": "-1"}
    for wanted, seen in (("values", {"values"}), ("messages", {"messages"}), ("messages-tuple", {"messages"})):
        read = await http.get(path, params={"stream_mode": wanted}, headers=again)
        assert {event for event, _ in events(read)} == seen


async def test_a_mode_that_does_not_exist_is_refused(http: httpx.AsyncClient, client: LangGraphClient) -> None:
    answer = await streamed(http, "echo", {"text": "x"})
    for wrong in ("bogus", "[bad", '["bogus"]', "{}"):
        assert (await http.get(answer.headers["location"], params={"stream_mode": wrong})).status_code == 422, wrong
    thread = await new_thread(client)
    given: Any
    for given in ("bogus", ["bogus"], ["values", "bogus"], 1):
        body = {"assistant_id": "echo", "input": {}, "stream_mode": given}
        assert (await http.post(f"/threads/{thread}/runs/stream", json=body)).status_code == 422, given


@pytest.mark.parametrize("given", ["-1", "0", "-"])
async def test_reader_with_the_first_id_gets_a_complete_replay(http: httpx.AsyncClient, given: str) -> None:
    answer = await streamed(http, "streams", HELLO, stream_mode=["values", "messages-tuple"], stream_resumable=True)
    again = await http.get(answer.headers["location"], headers={"Last-Event-ID": given})
    assert again.content == answer.content


async def test_reader_resumes_from_any_frame(http: httpx.AsyncClient) -> None:
    answer = await streamed(http, "streams", HELLO, stream_mode=["values", "messages-tuple"], stream_resumable=True)
    seen = list(frames(answer))
    for place, frame in enumerate(seen):
        again = await http.get(answer.headers["location"], headers={"Last-Event-ID": frame["id"]})
        assert list(frames(again)) == seen[place + 1 :]


async def test_without_an_id_or_with_nonsense_nothing_is_replayed(http: httpx.AsyncClient) -> None:
    answer = await streamed(http, "echo", {"text": "x"}, stream_resumable=True)
    assert (await http.get(answer.headers["location"])).content == b""
    assert (await http.get(answer.headers["location"], headers={"Last-Event-ID": "garbage"})).content == b""


async def test_stream_that_is_not_resumable_is_not_replayed(http: httpx.AsyncClient) -> None:
    answer = await streamed(http, "echo", {"text": "x"})
    assert (await http.get(answer.headers["location"], headers={"Last-Event-ID": "-1"})).content == b""


async def test_a_late_reader_gets_the_rest_and_a_returning_one_everything(
    http: httpx.AsyncClient, client: LangGraphClient, tmp_path: Path
) -> None:
    modes: Any = ["updates"]
    thread, run, gates = await held(client, tmp_path, stream_mode=modes, stream_resumable=True)
    gates.open("a")
    await gates.reached("b")
    path = f"/threads/{thread}/runs/{run}/stream"
    async with (
        http.stream("GET", path) as late,
        http.stream("GET", path, headers={"Last-Event-ID": "-1"}) as returning,
    ):
        gates.open()
        rest, everything = await asyncio.gather(_read(late), _read(returning))
    assert [list(data) for data in of("updates", events(rest))] == [["b"], ["c"]]
    assert [list(data) for data in of("updates", events(everything))] == [["a"], ["b"], ["c"]]
    assert list(frames(everything))[-2:] == list(frames(rest))


async def test_stateless_stream_is_resumed_at_its_location(
    http: httpx.AsyncClient, client: LangGraphClient, tmp_path: Path
) -> None:
    gates = Gates(tmp_path)
    body = {"assistant_id": "slow", "input": gates.input(), "stream_mode": "updates", "stream_resumable": True}
    async with http.stream("POST", "/runs/stream", json=body) as first:
        await gates.reached("a")
        assert re.fullmatch(r"/runs/[0-9a-f-]{36}/stream", first.headers["location"])
        async with http.stream("GET", first.headers["location"], headers={"Last-Event-ID": "-1"}) as second:
            gates.open()
            earlier, other = await asyncio.gather(_read(first), _read(second))
    assert earlier.content == other.content
    assert len(of("updates", events(earlier))) == 3


@pytest.mark.parametrize("named_as", ["stream_mode", "stream_modes"])
async def test_thread_stream_shows_all_its_runs(
    http: httpx.AsyncClient, client: LangGraphClient, named_as: str
) -> None:
    thread = await new_thread(client)
    async with http.stream("GET", f"/threads/{thread}/stream", params={named_as: "run_modes"}) as live:
        following = asyncio.create_task(_frames_until(live, done=2))
        runs = [await _run(client, thread, text) for text in ("one", "two")]
        seen = await following
    assert all(re.fullmatch(ID, frame["id"]) for frame in seen)
    assert len({frame["id"] for frame in seen}) == len(seen)
    told = [(frame["event"], json.loads(frame["data"])) for frame in seen]
    assert told == [
        event
        for run, text in zip(runs, ("one", "two"), strict=True)
        for event in (
            ("metadata", {"run_id": run, "attempt": 1}),
            ("updates", {"echo": {"reply": text}}),
            ("metadata", {"status": "run_done", "run_id": run}),
        )
    ]


async def test_thread_stream_can_be_limited_to_lifecycle_events(
    http: httpx.AsyncClient, client: LangGraphClient
) -> None:
    thread = await new_thread(client)
    async with http.stream("GET", f"/threads/{thread}/stream", params={"stream_modes": "lifecycle"}) as live:
        following = asyncio.create_task(_frames_until(live, done=1))
        run = await _run(client, thread, "one")
        seen = [json.loads(frame["data"]) for frame in await following]
    assert seen == [{"run_id": run, "attempt": 1}, {"status": "run_done", "run_id": run}]


async def test_thread_stream_shows_edits(http: httpx.AsyncClient, client: LangGraphClient) -> None:
    thread = await new_thread(client)
    await _run(client, thread, "one")
    async with http.stream("GET", f"/threads/{thread}/stream", params={"stream_modes": "state_update"}) as live:
        following = asyncio.create_task(_frames_until(live, named="state_update"))
        await client.threads.update_state(thread, {"text": "by hand"})
        (frame,) = await following
    told = json.loads(frame["data"])
    assert told["thread_id"] == thread
    assert told["state"]["values"] == {"text": "by hand", "reply": "one"}
    assert re.fullmatch(ID, frame["id"])


async def test_resumed_thread_stream_sends_missed_frames(http: httpx.AsyncClient, client: LangGraphClient) -> None:
    thread = await new_thread(client)
    await _run(client, thread, "lost")
    runs = [await _run(client, thread, text, stream_resumable=True) for text in ("one", "two")]
    path = f"/threads/{thread}/stream"
    async with http.stream("GET", path, headers={"Last-Event-ID": "-"}) as live:
        everything = await _frames_until(live, done=2)
    replayed = [json.loads(frame["data"]) for frame in everything]
    assert [data["run_id"] for data in replayed if data.get("status") == "run_done"] == runs
    assert [data["echo"]["reply"] for data in replayed if "echo" in data] == ["one", "two"]
    async with http.stream("GET", path, headers={"Last-Event-ID": everything[2]["id"]}) as live:
        assert await _frames_until(live, done=1) == everything[3:]


async def test_invalid_thread_stream_request_is_refused(http: httpx.AsyncClient, client: LangGraphClient) -> None:
    thread = await new_thread(client)
    path = f"/threads/{thread}/stream"
    for wrong in ("bogus", "run_modes,bogus"):
        assert await _status(http, path, params={"stream_modes": wrong}) == 422
    assert await _status(http, path, headers={"Last-Event-ID": "garbage"}) == 422
    assert await _status(http, f"/threads/{uuid4()}/stream") == 404


async def test_thread_stream_opened_before_a_run_gets_all_of_it(
    http: httpx.AsyncClient, client: LangGraphClient, tmp_path: Path
) -> None:
    """One that comes while a run is under way sees the rest of it."""
    modes: Any = ["updates"]
    thread, _, gates = await held(client, tmp_path, stream_mode=modes)
    async with http.stream("GET", f"/threads/{thread}/stream") as live:
        gates.open()
        seen = [json.loads(frame["data"]) for frame in await _frames_until(live, done=1)]
    assert [list(data) for data in seen] == [["a"], ["b"], ["c"], ["status", "run_id"]]

    async def is_idle() -> bool:
        return (await client.threads.get(thread))["status"] == "idle"

    await until(is_idle)


async def _run(client: LangGraphClient, thread: str, text: str, **options: Any) -> str:
    run = await client.runs.create(thread, "echo", input={"text": text}, stream_mode="updates", **options)
    await client.runs.join(thread, run["run_id"])
    return run["run_id"]


async def _status(http: httpx.AsyncClient, path: str, **options: Any) -> int:
    async with http.stream("GET", path, **options) as live:
        return live.status_code


async def _read(live: httpx.Response) -> httpx.Response:
    await live.aread()
    return live


async def _frames_until(live: httpx.Response, *, done: int = 0, named: str = "") -> list[dict[str, str]]:
    """Frames of a stream that never closes, up to the end of so many runs or the first of a name."""
    seen: list[dict[str, str]] = []
    current: dict[str, str] = {}
    async with asyncio.timeout(90):
        async for line in live.aiter_lines():
            if line:
                name, _, value = line.partition(": ")
                current[name] = value
                continue
            seen += [current] if "event" in current else []
            ended = sum('"run_done"' in frame["data"] for frame in seen)
            if (done and ended == done) or (named and named == current.get("event")):
                return seen
            current = {}
    raise AssertionError(f"the stream closed after {seen}")
