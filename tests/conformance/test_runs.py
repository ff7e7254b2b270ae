"""Runs on LangGraph's own server and on ours: the same answers, frames, metadata and refusals."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient

from tests.conformance.conftest import Pair

Json = dict[str, Any]

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:\+00:00|Z)")
_OF_ONE_SERVER = re.compile(
    r"__(request|after|pregel)_.*|langgraph_(version|api_.*|plan|host|auth_.*|request_id)|user_id|created_by|langchain(-core)?|response_schema"
)
"""What names the server, its versions or its caller; and the schema of an answer, which we leave out where there is
none."""


async def wait(client: LangGraphClient, graph: str, input: Json | None = None, **options: Any) -> Any:
    thread = await client.threads.create(metadata=options.pop("thread_metadata", None))
    given = {"text": "x"} if input is None else input
    return await client.runs.wait(thread["thread_id"], graph, input=given, raise_error=False, **options)


async def stream(client: LangGraphClient, graph: str, input: Json, **options: Any) -> list[tuple[str, Any]]:
    thread = await client.threads.create()
    parts = client.runs.stream(thread["thread_id"], graph, input=input, **options)
    return [(part.event, part.data) async for part in parts]


def alike(value: Any) -> Any:
    """Without ids, times and what names one of the servers."""
    if isinstance(value, dict):
        return {alike(name): alike(each) for name, each in value.items() if not _OF_ONE_SERVER.fullmatch(name)}
    if isinstance(value, list | tuple):
        return [alike(each) for each in value]
    return _TIME.sub("TIME", _ID.sub("ID", value)) if isinstance(value, str) else value


async def same(pair: Pair, ask: Callable[[LangGraphClient], Awaitable[Any]]) -> Any:
    """What both answer."""
    theirs, ours = [alike(await ask(client)) for client in pair]
    assert ours == theirs
    return ours


@pytest.mark.parametrize("graph", ["defaults", "required", "typed_context"])
@pytest.mark.parametrize(
    "given",
    [{}, {"context": {"model": "large", "unknown": 1}}, {"config": {"configurable": {"model": "large", "unknown": 1}}}],
    ids=["nothing", "context", "configurable"],
)
async def test_context_is_made_by_its_schema_also_when_none_is_sent(pair: Pair, graph: str, given: Json) -> None:
    answer = await same(pair, lambda client: wait(client, graph, **given))
    assert answer != {"text": "x", "found": None}


async def test_values_are_limited_to_the_output_schema(pair: Pair) -> None:
    question = {"question": "q"}
    assert await same(pair, lambda client: wait(client, "private", question)) == {"answer": "answer to q"}
    frames = await same(pair, lambda client: stream(client, "private", question, stream_mode=["values", "updates"]))
    assert "private" not in str(frames)


async def test_thread_state_is_not_limited_to_the_output_schema(pair: Pair) -> None:
    async def state(client: LangGraphClient) -> Any:
        thread = (await client.threads.create())["thread_id"]
        await client.runs.wait(thread, "private", input={"question": "q"})
        return (await client.threads.get_state(thread))["values"], (await client.threads.get(thread))["values"]

    whole = {"question": "q", "notes": "private notes on q", "answer": "answer to q"}
    assert await same(pair, state) == [whole, whole]


async def test_a_question_comes_with_the_part_of_the_state_that_callers_see(pair: Pair) -> None:
    assert "private" not in str(await same(pair, lambda client: wait(client, "private_asking", {"question": "q"})))


async def test_nodes_see_the_metadata_of_assistant_thread_run_and_config(pair: Pair) -> None:
    async def metadata(client: LangGraphClient) -> Any:
        assistant = await client.assistants.create("metadata", metadata={"assistant": "a", "same": "assistant"})
        values = await wait(
            client,
            assistant["assistant_id"],
            thread_metadata={"thread": "t", "same": "thread"},
            config={"metadata": {"config": "c", "same": "config"}},
            metadata={"run": "r", "same": "run", "run_attempt": 77},
        )
        return values["found"]

    metadata_seen = await same(pair, metadata)
    assert {"assistant": "a", "thread": "t", "config": "c", "run": "r", "same": "run"}.items() <= metadata_seen.items()
    assert metadata_seen["run_attempt"] == 1


async def test_history_is_found_by_the_metadata_of_its_runs(pair: Pair) -> None:
    async def found(client: LangGraphClient) -> list[int]:
        thread = (await client.threads.create())["thread_id"]
        for name in ("first", "second"):
            await client.runs.wait(thread, "defaults", input={"text": "x"}, metadata={"named": name})
        filters: list[Any] = [{"named": "first"}, {"named": "nobody"}]
        return [len(await client.threads.get_history(thread, metadata=each)) for each in filters]

    assert await same(pair, found) == [3, 0]


async def test_a_run_shows_the_config_with_its_ids(pair: Pair) -> None:
    async def shown(client: LangGraphClient) -> Any:
        thread = (await client.threads.create())["thread_id"]
        await client.runs.wait(thread, "defaults", input={"text": "x"})
        run: Any = (await client.runs.list(thread))[0]
        named = run["kwargs"]["config"]["configurable"]
        assert (named["run_id"], named["thread_id"]) == (run["run_id"], thread)
        return named

    assert (await same(pair, shown)).keys() == {"run_id", "thread_id", "graph_id", "assistant_id"}


TALK = {"messages": [{"role": "user", "content": "hi", "id": "asked"}]}


@pytest.mark.parametrize(
    ("graph", "input", "options"),
    [
        ("defaults", {"text": "x"}, {"stream_mode": "events"}),
        ("nested", {"text": "x"}, {"stream_mode": ["events", "values"], "stream_subgraphs": True}),
        ("nested", {"text": "x"}, {"stream_mode": "debug"}),
        ("nested", {"text": "x"}, {"stream_mode": "debug", "stream_subgraphs": True}),
        ("nested", {"text": "x"}, {"stream_mode": "tasks"}),
        ("talking", TALK, {"stream_mode": ["messages-tuple", "events"]}),
        ("talking", TALK, {"stream_mode": ["messages-tuple"]}),
        ("talking", TALK, {"stream_mode": ["messages", "updates"]}),
        ("pairs", {"text": "x"}, {"stream_mode": ["values", "updates", "debug"]}),
    ],
    ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) and "stream_mode" in value else "",
)
async def test_stream_frames_are_the_same(pair: Pair, graph: str, input: Json, options: Json) -> None:
    frames = await same(pair, lambda client: stream(client, graph, input, **options))
    assert len(frames) > 2


async def test_events_leave_out_langgraphs_own_steps(pair: Pair) -> None:
    frames = await same(pair, lambda client: stream(client, "talking", TALK, stream_mode="events"))
    assert "__start__" not in {data.get("name") for _, data in frames}


@pytest.mark.parametrize("graph", ["late", "rejected", "bad_message"])
async def test_failed_run_gives_the_same_error_and_frees_its_thread(pair: Pair, graph: str) -> None:
    async def failed(client: LangGraphClient) -> Any:
        thread = (await client.threads.create())["thread_id"]
        answer = await client.runs.wait(thread, graph, input={"text": "x"}, raise_error=False)
        [run] = await client.runs.list(thread)
        return answer, run["status"], (await client.threads.get(thread))["status"]

    answer, *statuses = await same(pair, failed)
    assert "__error__" in answer
    assert statuses == ["error", "error"]


async def test_an_update_can_be_a_list_of_pairs(pair: Pair) -> None:
    async def updated(client: LangGraphClient) -> Any:
        thread = (await client.threads.create())["thread_id"]
        await client.runs.wait(thread, "pairs", input={"text": "x"})
        command: Any = {"update": [["listed", ["one"]], ["listed", ["two"]], ["text", "y"]]}
        return await client.runs.wait(thread, "pairs", command=command)

    assert (await same(pair, updated))["text"] == "y"


@pytest.mark.parametrize(
    "wrong", [{"config": {"recursion_limit": "x"}}, {"checkpoint_id": "zzz"}], ids=["recursion_limit", "checkpoint_id"]
)
async def test_malformed_options_are_refused(pair: Pair, wrong: Json) -> None:
    async def status(client: LangGraphClient) -> int:
        with pytest.raises(httpx.HTTPStatusError) as refused:
            await wait(client, "defaults", **wrong)
        return refused.value.response.status_code

    assert await same(pair, status) == 422


async def test_graph_with_a_remote_node_is_drawn(pair: Pair) -> None:
    drawn = await same(pair, lambda client: client.assistants.get_graph("remote"))
    assert [node["id"] for node in drawn["nodes"]] == ["__start__", "elsewhere", "__end__"]


async def test_subgraph_on_a_server_that_does_not_answer_is_drawn_as_a_node(pair: Pair) -> None:
    """Their server answers with 500."""
    drawn = await pair.ours.assistants.get_graph("remote", xray=True)
    assert [node["id"] for node in drawn["nodes"]] == ["__start__", "elsewhere", "__end__"]


async def test_data_classes_of_the_project_are_kept_without_a_list(pair: Pair) -> None:
    """In the state, in a question, and as the answer that its schema makes."""

    async def answered(client: LangGraphClient) -> Any:
        thread = (await client.threads.create())["thread_id"]
        asked = await client.runs.wait(thread, "own_types", input={"text": "x"}, raise_error=False)
        command: Any = {"resume": {"title": "shorter", "offers": [{"price": 5}]}}
        done = await client.runs.wait(thread, "own_types", command=command, raise_error=False)
        return asked, done, (await client.threads.get_state(thread))["values"]

    asked, done, _ = await same(pair, answered)
    assert "__interrupt__" in asked
    assert done["answer"][0] in ("Plan", "dict")


async def test_a_run_without_input_asks_again_after_the_graph_refused_an_answer(pair: Pair) -> None:
    async def asked_again(client: LangGraphClient) -> Any:
        thread = (await client.threads.create())["thread_id"]
        seen: list[Any] = []

        async def wait(**given: Any) -> Any:
            said: Any = await client.runs.wait(thread, "refusing", raise_error=False, **given)
            [run, *_], found = await client.runs.list(thread), await client.threads.get(thread)
            seen.append((said.get("__interrupt__"), run["status"], found["status"], found["interrupts"]))
            return said

        [question] = (await wait(input={"text": "x"}))["__interrupt__"]
        await wait(command={"resume": {question["id"]: {"number": 3}}})
        await wait(input=None)
        await wait(command={"resume": {question["id"]: {"number": 4}}})
        return seen

    asked, failed, again, done = await same(pair, asked_again)
    assert (again, failed[1], done[2]) == (asked, "error", "idle")
