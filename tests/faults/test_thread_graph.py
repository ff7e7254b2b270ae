"""The graph of a thread is the one that ran on it: no client names another, by whose policy its questions would be
judged."""

from __future__ import annotations

from typing import Any

import pytest

from assent.threads.model.threads import Thread
from tests.faults.arena import Arena

pytestmark = pytest.mark.promise("P10")

LENIENT_ELSEWHERE = {"rules": [{"name": "free", "graph": "stock", "tool": "*", "then": "advise"}], "default": "ask"}


@pytest.mark.parametrize("named", [{"graph_id": "stock"}, {"graph_id": None}, {"graph_id": 5}])
async def test_client_does_not_change_the_graph_of_a_thread_that_ran(arena: Arena, named: dict[str, Any]) -> None:
    thread = await arena.stopped()
    before = (await arena.state(thread))["metadata"]
    for client in (arena.agent, arena.ana):
        refused = await client.patch(f"/threads/{thread}", json={"metadata": {**named, "mine": 1}})
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request")
    assert (await arena.state(thread))["metadata"] == before


async def test_metadata_of_a_thread_is_sent_back_with_its_graph(arena: Arena) -> None:
    thread = await arena.stopped()
    before = (await arena.state(thread))["metadata"]
    sent = {**before, "assistant_id": "another", "mine": 1}  # which is left out, as everywhere
    kept = await arena.agent.patch(f"/threads/{thread}", json={"metadata": sent})
    assert kept.json()["metadata"] == {**before, "mine": 1}


async def test_graph_is_named_once_on_a_thread_that_has_none(arena: Arena) -> None:
    thread = await arena.thread()
    path = f"/threads/{thread}"
    first = await arena.agent.patch(path, json={"metadata": {"graph_id": "stock"}})
    assert first.json()["metadata"] == {"graph_id": "stock"}
    assert (await arena.agent.patch(path, json={"metadata": {"graph_id": "stopping"}})).status_code == 422


async def test_thread_that_is_there_keeps_its_graph_when_it_is_made_again(arena: Arena) -> None:
    thread = await arena.stopped()
    body = {"thread_id": thread, "if_exists": "do_nothing", "metadata": {"graph_id": "stock"}}
    assert (await arena.agent.post("/threads", json=body)).json()["metadata"]["graph_id"] == "stopping"


@pytest.mark.parametrize("graph", ["stopping", "nested", "after"])
async def test_copy_asks_under_the_terms_of_the_original_after_a_run_of_another_graph(arena: Arena, graph: str) -> None:
    await arena.policy(LENIENT_ELSEWHERE)
    thread = await arena.stopped(graph)
    asked = await arena.item(thread)
    queued = await arena.run(thread, "stock", how="", input={"tag": "x"}, after_seconds=600)
    assert queued.status_code == 200, queued.text
    copied = (await arena.agent.post(f"/threads/{thread}/copy")).json()["thread_id"]
    copy = await arena.item(copied)
    assert (copy["gated"], copy["policy"]["effect"]) == (asked["gated"], asked["policy"]["effect"])


@pytest.mark.parametrize("more", [{"after_seconds": 600}, {"multitask_strategy": "enqueue"}])
async def test_run_of_another_graph_that_waits_does_not_change_the_graph_of_its_thread(
    arena: Arena, more: dict[str, Any]
) -> None:
    thread = await arena.stopped()
    before = (await arena.state(thread))["metadata"]
    queued = await arena.run(thread, "stock", how="", input={"tag": "x"}, **more)
    assert queued.status_code == 200, queued.text
    assert (await arena.state(thread))["metadata"] == before


async def test_run_of_another_graph_that_is_refused_does_not_change_the_graph_of_its_thread(arena: Arena) -> None:
    """Refused when it is asked for, and when it would begin: it is steered past a breakpoint of its own graph."""
    thread = await arena.thread()
    assert (await arena.run(thread, "free", input={"log": str(arena.log), "tag": "x"})).status_code == 200
    before = (await arena.state(thread))["metadata"]
    refused = await arena.run(thread, "stopping", command={"update": {"__start__": 1}})
    assert refused.status_code == 422, refused.text
    steered = await arena.run(thread, "stopping", command={"goto": "pay"})
    assert "ThreadWaits" in steered.text
    assert (await arena.state(thread))["metadata"] == before
    assert arena.effects == ["x"]


async def test_run_of_another_graph_names_its_graph_on_the_thread_when_it_begins(arena: Arena) -> None:
    thread = await arena.thread()
    given = {"log": str(arena.log), "tag": "x"}
    assert (await arena.run(thread, "free", input=given)).status_code == 200
    assert (await arena.run(thread, "stopping", input=given)).status_code == 200
    assert (await arena.state(thread))["metadata"]["graph_id"] == "stopping"


async def test_control_graph_set_before_the_start_is_changed_by_a_waiting_run(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Thread, "graph_id", None)
    thread = await arena.stopped()
    await arena.run(thread, "stock", how="", input={"tag": "x"}, after_seconds=600)
    assert (await arena.state(thread))["metadata"]["graph_id"] == "stock"
