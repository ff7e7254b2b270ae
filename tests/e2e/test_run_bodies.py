"""An invalid request for a run is refused at once with the name of the field, and no run is made."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.faults.malformed import UNKNOWN_ID
from tests.servers import ServerProcess

ECHO = {"assistant_id": "echo", "input": {"text": "a"}}
RESUMING = {"__pregel_resuming": True}


@pytest.fixture
def http(server: ServerProcess) -> Any:
    with httpx.Client(base_url=server.url, timeout=30) as http:
        yield http


@pytest.fixture
def thread(http: httpx.Client) -> str:
    return str(http.post("/threads", json={}).json()["thread_id"])


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("config", {"config": 5}),
        ("config.configurable", {"config": {"configurable": "x"}}),
        ("config.metadata", {"config": {"metadata": [1]}}),
        ("config.tags", {"config": {"tags": "x"}}),
        ("config.tags.0", {"config": {"tags": [5]}}),
        ("config.recursion_limit", {"config": {"recursion_limit": "x"}}),
        ("config.recursion_limit", {"config": {"recursion_limit": 0}}),
        *(
            ("config.configurable.__pregel_resume_map", {"config": {"configurable": {**RESUMING, **given}}})
            for given in ({"__pregel_resume_map": "text"}, {"__pregel_resume_map": 5}, {"__pregel_resume_map": [1]})
        ),
        ("context", {"context": [1]}),
        ("command.goto", {"command": {"goto": 5}}),
        ("command.goto", {"command": {"goto": {"input": 5}}}),
        ("command.goto", {"command": {"goto": ["a", {"node": 5}]}}),
        ("command.update", {"command": {"update": "x"}}),
        ("checkpoint_id", {"checkpoint_id": "zzz"}),
        ("checkpoint.checkpoint_id", {"checkpoint": {"checkpoint_id": "zzz"}}),
        ("checkpoint.checkpoint_ns", {"checkpoint": {"checkpoint_ns": 5}}),
        ("stream_mode", {"stream_mode": ["x"]}),
        ("stream_mode", {"stream_mode": False}),
        ("after_seconds", {"after_seconds": "5"}),
        ("after_seconds", {"after_seconds": True}),
        ("interrupt_before", {"interrupt_before": 5}),
        ("durability", {"durability": "x"}),
        ("stream_subgraphs", {"stream_subgraphs": 0}),
        ("stream_resumable", {"stream_resumable": 1}),
        ("checkpoint_during", {"checkpoint_during": 0}),
        ("config.max_concurrency", {"config": {"max_concurrency": 0}}),
        ("config.max_concurrency", {"config": {"max_concurrency": "5"}}),
        ("config.run_name", {"config": {"run_name": 5}}),
        ("input.a[0].b is an integer beyond 64 bits", {"input": {"a": [{"b": 2**64}]}}),
        ("command.update.text is an integer beyond 64 bits", {"command": {"update": {"text": -(2**63) - 1}}}),
    ],
)
def test_a_field_of_the_wrong_shape_is_refused_by_its_name(
    http: httpx.Client, thread: str, field: str, body: dict[str, Any]
) -> None:
    for path in (f"/threads/{thread}/runs", f"/threads/{thread}/runs/wait", f"/threads/{thread}/runs/stream"):
        refused = http.post(path, json={**ECHO, **body})
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request"), refused.text
        assert field in refused.json()["detail"]
    assert http.get(f"/threads/{thread}/runs").json() == []


def test_unknown_checkpoint_is_404(http: httpx.Client, thread: str) -> None:
    refused = http.post(f"/threads/{thread}/runs", json={**ECHO, "checkpoint_id": UNKNOWN_ID})
    assert (refused.status_code, refused.json()["detail"]) == (404, f"Checkpoint {UNKNOWN_ID} not found")


def test_thread_created_by_a_run_needs_a_uuid(http: httpx.Client) -> None:
    refused = http.post("/threads/mine/runs", json={**ECHO, "if_not_exists": "create"})
    assert (refused.status_code, refused.json()["detail"]) == (422, "thread_id: not a UUID")


def test_an_update_by_pairs_reaches_the_state(http: httpx.Client, thread: str) -> None:
    body = {"assistant_id": "echo", "command": {"update": [["text", "a"], ["reply", "b"]], "goto": "echo"}}
    answer = http.post(f"/threads/{thread}/runs/wait", json=body)
    assert answer.json() == {"text": "a", "reply": "a"}


@pytest.mark.parametrize("command", [{}, {"update": None}, {"goto": []}, {"goto": ""}, {"update": {}, "goto": None}])
def test_a_command_that_asks_nothing_counts_as_absent(http: httpx.Client, thread: str, command: Any) -> None:
    answer = http.post(f"/threads/{thread}/runs/wait", json={**ECHO, "command": command})
    assert answer.json() == {"text": "a", "reply": "a"}


def test_long_integers_in_metadata_and_config_stay_exact(http: httpx.Client, thread: str) -> None:
    long = {"long": 10**30}
    http.patch(f"/threads/{thread}", json={"metadata": {"of_thread": 10**25}})
    given = {"metadata": long, "config": {"configurable": long}}
    assert http.post(f"/threads/{thread}/runs/wait", json={**ECHO, **given}).json() == {"text": "a", "reply": "a"}
    [latest, *_] = http.post(f"/threads/{thread}/history", json={"limit": 5, "metadata": long}).json()
    assert (latest["metadata"]["long"], latest["metadata"]["of_thread"]) == (10**30, 10**25)


def test_long_integers_in_a_state_are_refused(http: httpx.Client, thread: str) -> None:
    http.post(f"/threads/{thread}/runs/wait", json=ECHO)
    update = {"values": {"text": 2**64}}
    refused = [
        http.post(f"/threads/{thread}/state", json=update),
        *(
            http.post("/threads", json={"metadata": {"graph_id": "echo"}, "supersteps": [{"updates": [written]}]})
            for written in (
                {**update, "as_node": "echo"},
                {"command": {"update": {"text": 2**64}}, "as_node": "echo", "values": None},
            )
        ),
    ]
    assert [answer.status_code for answer in refused] == [422] * 3, [answer.text for answer in refused]
    assert all("beyond 64 bits" in answer.json()["detail"] for answer in refused)


def test_the_name_of_a_run_is_that_of_its_events(http: httpx.Client) -> None:
    body = {**ECHO, "config": {"run_name": "mine"}, "stream_mode": ["events"]}
    assert '"name":"mine"' in http.post("/runs/stream", json=body).text


def test_null_field_counts_as_absent(http: httpx.Client, thread: str) -> None:
    nothing = {"config": {"recursion_limit": None, "tags": None, "configurable": None}, "checkpoint": None}
    answer = http.post(f"/threads/{thread}/runs/wait", json={**ECHO, **nothing, "command": None})
    assert answer.json() == {"text": "a", "reply": "a"}
