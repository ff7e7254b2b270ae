"""Event streaming on LangGraph's own server and on ours: the same events, and answers to commands.

What differs is listed here, with its reason:

- `seq` is a position of the thread that is the same on every connection; LangGraph's server counts per connection.
- A question is told when its run has ended, so that it can be answered at once: after the events of its subgraph's end.
- A question has `value` beside `payload`, which the Python SDK reads.
- Updates, checkpoints, tools and custom events are sent too, as LangGraph's JavaScript server does.
- Values are limited to the graph's output schema, as in run streams; LangGraph's server shows the private state here.
- A busy thread refuses a second run by default (`reject`), and new input never answers a question.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.conformance.test_runs import alike

CHANNELS = ["values", "messages", "lifecycle", "input"]
_TASK = re.compile(r":[0-9a-f-]{36}")
_SAID = re.compile(r"lc_run--[0-9a-f-]+")


@pytest.fixture
async def both(addresses: list[str]) -> AsyncIterator[list[httpx.AsyncClient]]:
    clients = [httpx.AsyncClient(base_url=url, timeout=30) for url in addresses]
    yield clients
    for client in clients:
        await client.aclose()


async def command(http: httpx.AsyncClient, thread: str, method: str, **params: Any) -> tuple[int, Any]:
    answer = await http.post(f"/threads/{thread}/commands", json={"id": 1, "method": method, "params": params})
    return answer.status_code, answer.json()


async def read(http: httpx.AsyncClient, thread: str, ends: int = 1, **body: Any) -> list[Any]:
    """The events until so many runs have ended or wait for an answer, and what comes with the last one."""
    seen: list[Any] = []
    asked = {"channels": CHANNELS, **body}
    async with asyncio.timeout(90):
        async with http.stream("POST", f"/threads/{thread}/stream/events", json=asked) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            async for line in answer.aiter_lines():
                if line.startswith("data:"):
                    seen.append(json.loads(line.removeprefix("data:")))
                    ends -= _is_end(seen[-1])
                if ends == 0:
                    return seen
    raise AssertionError("the stream ended")


def _is_end(event: Any) -> bool:
    root = event["method"] == "lifecycle" and not event["params"]["namespace"]
    return root and event["params"]["data"]["event"] in ("completed", "failed", "interrupted")


def seen_alike(events: list[Any]) -> list[Any]:
    """Method, namespace, node and data, without ids, times and numbers."""
    told = []
    for event in events:
        assert event.keys() == {"type", "event_id", "seq", "method", "params"}
        params = {name: value for name, value in event["params"].items() if name != "timestamp"}
        if event["method"] == "input.requested":
            params["data"] = {name: value for name, value in params["data"].items() if name != "value"}
        text = _SAID.sub("SAID", _TASK.sub(":TASK", json.dumps([event["method"], alike(params)])))
        told.append(json.loads(text))
    return told


async def started(http: httpx.AsyncClient, graph: str, input: Any) -> str:
    thread = str(uuid4())
    status, told = await command(http, thread, "run.start", assistant_id=graph, input=input)
    assert (status, told["type"]) == (200, "success"), told
    return thread


GIVEN: list[tuple[str, Any]] = [
    ("talking", {"messages": [{"role": "user", "content": "hi", "id": "asked"}]}),
    ("nested", {"text": "x"}),
    ("defaults", {"text": "x"}),
    ("pairs", {"text": "x"}),
    ("late", {"text": "x"}),
]


@pytest.mark.parametrize(("graph", "input"), GIVEN, ids=[graph for graph, _ in GIVEN])
async def test_a_run_has_the_same_events(both: list[httpx.AsyncClient], graph: str, input: Any) -> None:
    theirs, ours = [seen_alike(await read(http, await started(http, graph, input))) for http in both]
    assert ours == theirs


async def test_values_are_limited_to_the_output_schema_by_us(both: list[httpx.AsyncClient]) -> None:
    theirs, ours = [await read(http, await started(http, "private", {"question": "q"})) for http in both]
    assert "private notes" in str(theirs)
    assert "private notes" not in str(ours)
    assert ours[-2]["params"]["data"] == {"answer": "answer to q"}


@pytest.mark.parametrize("graph", ["refusing", "own_types"])
async def test_a_question_and_its_answer_have_the_same_events(both: list[httpx.AsyncClient], graph: str) -> None:
    told = []
    for http in both:
        thread = await started(http, graph, {"question": "q", "text": "x"})
        events = await read(http, thread)
        asked = next(event for event in events if event["method"] == "input.requested")
        given = {
            "interrupt_id": asked["params"]["data"]["interrupt_id"],
            "response": {"number": 2, "title": "t"},
            "namespace": [],
        }
        status, answer = await command(http, thread, "input.respond", **given)
        rest = await read(http, thread, since=events[-1]["seq"], ends=1)
        told.append([seen_alike(events), status, answer, seen_alike([e for e in rest if not _repeats(e, events)])])
    theirs, ours = told
    assert ours == theirs


def _repeats(event: Any, before: list[Any]) -> bool:
    """LangGraph's server sends the values of the question after it; where reading stopped there, they come later."""
    return bool(event["event_id"].split(":")[0] != "synth" and event["seq"] <= before[-1]["seq"] + 1)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("run.start", {}),
        ("run.start", {"assistant_id": "defaults", "config": {"configurable": {"checkpoint_id": ""}}}),
        ("run.start", {"assistant_id": "defaults", "config": {"configurable": {"checkpoint_id": "x"}}}),
        ("run.start", {"assistant_id": "defaults", "langsmith_tracer": []}),
        ("run.start", {"assistant_id": "defaults", "langsmith_tracer": {"project_name": 1}}),
        ("input.respond", {}),
        ("input.respond", {"responses": []}),
        ("input.respond", {"responses": [1]}),
        ("input.respond", {"responses": [{}]}),
        ("input.respond", {"interrupt_id": "0" * 32, "namespace": "x", "response": 1}),
        ("agent.getTree", {}),
        ("state.get", {}),
        ("input.inject", {}),
    ],
)
async def test_a_refused_command_has_the_same_answer(both: list[httpx.AsyncClient], method: str, params: Any) -> None:
    told = []
    for http in both:
        thread = await started(http, "defaults", {"text": "x"})
        await read(http, thread)
        told.append(await command(http, thread, method, **params))
    theirs, ours = told
    assert ours == theirs


async def test_an_unknown_question_has_the_same_code(both: list[httpx.AsyncClient]) -> None:
    for http in both:
        thread = await started(http, "private_asking", {"question": "q"})
        await read(http, thread)
        status, told = await command(http, thread, "input.respond", interrupt_id="0" * 32, response=1, namespace=[])
        assert (status, told["type"], told["error"]) == (200, "error", "no_such_interrupt")


@pytest.mark.parametrize("body", [{}, {"id": "1", "method": "run.start"}, {"id": 1, "method": 2}, []])
async def test_a_body_that_is_no_command_has_the_same_answer(both: list[httpx.AsyncClient], body: Any) -> None:
    theirs, ours = [await http.post(f"/threads/{uuid4()}/commands", json=body) for http in both]
    assert (ours.status_code, ours.json()) == (theirs.status_code, theirs.json())


@pytest.mark.parametrize("channels", [None, [], "values", ["debug"], [1], ["custom:"]])
async def test_a_bad_selection_has_the_same_status(both: list[httpx.AsyncClient], channels: Any) -> None:
    body = {"channels": channels}
    theirs, ours = [await http.post(f"/threads/{uuid4()}/stream/events", json=body) for http in both]
    assert (ours.status_code, ours.json().keys() >= {"detail"}) == (theirs.status_code, True)
