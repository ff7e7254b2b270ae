"""A run that is tagged as hidden stops and asks like any other: LangGraph streams nothing of what such a run asks, and
does not count its steps among all.

The controls leave the tag in the config, or believe the stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from httpx import Response

from assent.runs.engine import runner
from assent.threads.model import configs
from tests.faults.arena import Arena

pytestmark = pytest.mark.promise("P1")

HIDDEN: dict[str, Any] = {"tags": ["langsmith:hidden", "mine"]}


async def by_the_request(arena: Arena, graph: str, **given: Any) -> str:
    thread = await arena.thread()
    given = {"log": str(arena.log), "tag": "asked", **given}
    assert (await arena.run(thread, graph, input=given, config=HIDDEN)).status_code == 200
    return thread


async def by_an_assistant(arena: Arena, graph: str, **given: Any) -> str:
    own = await arena.agent.post("/assistants", json={"graph_id": graph, "config": HIDDEN})
    assert own.status_code == 200, own.text
    thread, given = await arena.thread(), {"log": str(arena.log), "tag": "asked", **given}
    assert (await arena.run(thread, own.json()["assistant_id"], input=given)).status_code == 200
    return thread


def _keep(tags: Sequence[str]) -> list[str]:
    return list(tags)


@pytest.fixture
def uncleaned(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (configs, runner):
        monkeypatch.setattr(module, "clean_tags", _keep)


@pytest.mark.parametrize("hide", [by_the_request, by_an_assistant])
@pytest.mark.parametrize("graph", ["before_all", "after_all"])
async def test_hidden_run_stops_at_breakpoints_of_all_nodes(arena: Arena, graph: str, hide: Any) -> None:
    thread = await hide(arena, graph)
    item = await arena.item(thread)
    assert (item["dialect"], item["gated"], arena.effects) == ("breakpoint", True, [])


@pytest.mark.usefixtures("uncleaned")
@pytest.mark.parametrize("graph", ["before_all", "after_all"])
async def test_control_hidden_run_with_its_tag_passes_breakpoints_of_all_nodes(arena: Arena, graph: str) -> None:
    """The control."""
    await by_the_request(arena, graph)
    assert arena.effects == ["asked"]


@pytest.mark.parametrize("hide", [by_the_request, by_an_assistant])
async def test_question_of_a_hidden_run_is_an_item(arena: Arena, hide: Any) -> None:
    thread = await hide(arena, "asking")
    assert (await arena.state(thread))["status"] == "interrupted"
    assert (await arena.item(thread))["dialect"] == "clarification"


@pytest.mark.parametrize("modes", [["values"], ["updates"], ["events"]])
async def test_question_that_the_author_hides_is_an_item(arena: Arena, modes: list[str]) -> None:
    thread = await arena.stopped_with("asking_unseen", stream_mode=modes)
    assert (await arena.item(thread))["dialect"] == "clarification"


@pytest.mark.parametrize("modes", [["values"], ["events"]])
async def test_stop_in_a_called_graph_that_the_author_hides_is_an_item(arena: Arena, modes: list[str]) -> None:
    thread = await arena.stopped_with("looked_up_unseen", stream_mode=modes)
    assert (await arena.item(thread))["dialect"] == "breakpoint"
    assert arena.effects == []


async def test_control_hidden_question_is_lost_when_only_the_stream_is_read(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control."""
    monkeypatch.setattr(runner, "has_asked", lambda config: False)
    thread = await arena.thread()
    await arena.run(thread, "asking_unseen", input={"log": str(arena.log), "tag": "asked"})
    assert await arena.items(thread) == []


async def test_only_the_tags_of_langgraph_are_dropped(arena: Arena) -> None:
    thread = await by_the_request(arena, "asking")
    [run] = (await arena.agent.get(f"/threads/{thread}/runs")).json()
    assert run["kwargs"]["config"]["tags"] == ["mine"]


async def decided_by_the_caller_of_the_turn(arena: Arena) -> Response:
    """A person starts a hidden run, an agent continues the turn, and the person approves what it asks."""
    await arena.policy({"default": {"name": "two", "then": "ask", "separate_duties": True}})
    thread = await arena.thread(visibility="shared")
    await arena.run(thread, "wiring", arena.ana, input={"log": str(arena.log), "tag": "asked"}, config=HIDDEN)
    await arena.run(thread, "wiring", how="", input=None, multitask_strategy="enqueue")
    await arena.rests(thread)
    decided: Response = await arena.decide(await arena.item(thread), "approve")
    return decided


@pytest.mark.promise("P6")
async def test_hidden_run_does_not_end_the_turn_of_its_caller(arena: Arena) -> None:
    refused = await decided_by_the_caller_of_the_turn(arena)
    assert (refused.status_code, refused.json()["code"]) == (403, "self_approval")
    assert arena.effects == []


@pytest.mark.usefixtures("uncleaned")
async def test_hidden_run_ends_the_turn_of_its_caller_where_only_the_stream_is_believed(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control."""
    monkeypatch.setattr(runner, "has_asked", lambda config: False)
    assert (await decided_by_the_caller_of_the_turn(arena)).status_code == 200
