"""A cron fires while nobody is there: its runs never decide, only its owner changes what it runs, and only the owner
sees the data of its runs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import pytest

from assent.identity.model.access import Kind, Principal
from assent.review.model.secrets import MASK
from assent.runs.crons import crons
from tests.faults.arena import Arena, Json

CRONS = "/runs/crons"


@pytest.fixture
async def quiet(arena: Arena) -> AsyncIterator[Arena]:
    """Crons fire only when the test says so."""
    await arena.house.engine.firing.close()
    yield arena
    arena.house.reset_time()


async def _cron(client: httpx.AsyncClient, thread: str | None, graph: str, **more: Any) -> Json:
    path = f"/threads/{thread}/runs/crons" if thread else CRONS
    made = await client.post(path, json={"assistant_id": graph, "schedule": "0 * * * *", **more})
    assert made.status_code == 200, made.text
    return dict(made.json())


async def _fire(arena: Arena, thread: str) -> None:
    arena.house.pass_time(timedelta(minutes=61))
    await arena.house.engine.firing.look()
    await arena.rests(thread)


async def _stopped(arena: Arena, strategy: str | None) -> str:
    """A thread with a cron of a reviewer that goes on without input, before a breakpoint that she has not seen."""
    thread = await arena.thread(visibility="shared")
    more = {"multitask_strategy": strategy} if strategy else {}
    await _cron(arena.ana, thread, "stopping", input=None, **more)
    await arena.run(thread, "stopping", input={"log": str(arena.log), "tag": "asked"})
    assert (await arena.state(thread))["status"] == "interrupted"
    return thread


@pytest.mark.promise("P5", "P6")
@pytest.mark.parametrize("strategy", [None, "interrupt", "rollback", "enqueue", "reject"])
async def test_cron_of_a_reviewer_does_not_pass_a_gated_breakpoint(quiet: Arena, strategy: str | None) -> None:
    thread = await _stopped(quiet, strategy)
    await _fire(quiet, thread)
    assert quiet.effects == []


async def test_control_with_the_right_to_decide_the_cron_passes_the_breakpoint(
    quiet: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Principal, "without", lambda self, scope: self)
    thread = await _stopped(quiet, None)
    await _fire(quiet, thread)
    assert quiet.effects == ["asked"]


@pytest.mark.promise("P6")
@pytest.mark.parametrize("who", ["ana", "agent"])
async def test_cron_does_not_answer_a_gated_question_through_its_config(quiet: Arena, who: str) -> None:
    thread = await quiet.thread(visibility="shared")
    script = json.dumps([{"name": "act", "args": {"log": str(quiet.log), "tag": "as asked"}}])
    await quiet.run(thread, "gated", input={"messages": [{"role": "user", "content": script}]})
    item = await quiet.item(thread)
    [[pending]] = (await quiet.state(thread))["interrupts"].values()
    answer = {"__pregel_resuming": True, "__pregel_resume_map": {pending["id"]: {"type": "approve"}}}
    await _cron(getattr(quiet, who), thread, "gated", input=None, config={"configurable": answer})
    await _fire(quiet, thread)
    assert quiet.effects == []
    assert (await quiet.item(thread))["id"] == item["id"]


@pytest.mark.parametrize(
    "change", [{"enabled": True}, {"end_time": None}, {"end_time": "2999-01-01T00:00:00Z"}], ids=str
)
async def test_only_the_owner_starts_or_prolongs_a_cron(quiet: Arena, change: Json) -> None:
    end = "2998-01-01T00:00:00Z"
    cron = await _cron(quiet.agent, None, "gated", input={}, enabled=False, end_time=end)
    url = f"{CRONS}/{cron['cron_id']}"
    assert (await quiet.ana.patch(url, json=change)).status_code == 403
    assert (await quiet.ana.patch(url, json={"enabled": False})).status_code == 200
    assert (await quiet.ana.patch(url, json={"end_time": "2997-01-01T00:00:00Z"})).status_code == 200
    assert (await quiet.agent.patch(url, json=change)).status_code == 200


async def test_disabling_a_cron_keeps_a_change_of_its_owner_at_the_same_time(
    quiet: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    cron = await _cron(quiet.agent, None, "gated", input={"version": "old"})
    url, check = f"{CRONS}/{cron['cron_id']}", crons.Crons._check

    async def change_meanwhile(self: crons.Crons, caller: Principal, draft: Any) -> None:
        await check(self, caller, draft)
        if caller.kind is Kind.REVIEWER:
            assert (await quiet.agent.patch(url, json={"input": {"version": "new"}})).status_code == 200

    monkeypatch.setattr(crons.Crons, "_check", change_meanwhile)
    assert (await quiet.ana.patch(url, json={"enabled": False})).status_code == 200
    present = (await quiet.agent.get(url)).json()
    assert (present["payload"]["input"], present["enabled"]) == ({"version": "new"}, False)


@pytest.mark.promise("P10")
async def test_only_the_owner_sees_the_data_of_the_runs(quiet: Arena) -> None:
    data = {"input": {"password": "hunter2"}, "config": {"tags": ["hunter2"]}, "metadata": {"note": "x"}}
    cron = await _cron(quiet.agent, None, "gated", **data)
    for read in (await quiet.ana.get(f"{CRONS}/{cron['cron_id']}"), await quiet.ana.post(f"{CRONS}/search", json={})):
        assert "hunter2" not in read.text
        assert MASK in read.text
    assert (await quiet.agent.get(f"{CRONS}/{cron['cron_id']}")).json()["payload"]["input"] == data["input"]


@pytest.mark.promise("P10")
async def test_secrets_in_metadata_are_masked_and_matched_for_the_owner_only(quiet: Arena) -> None:
    metadata = {"team": "a", "api_key": "hunter2", "inner": [{"token": "hunter2"}]}
    cron = await _cron(quiet.agent, None, "gated", metadata=metadata)
    for client, shown in ((quiet.agent, True), (quiet.ana, False)):
        read = await client.get(f"{CRONS}/{cron['cron_id']}")
        assert read.json()["metadata"]["team"] == "a"
        assert ("hunter2" in read.text) is shown
        for filter in ({"api_key": "hunter2"}, {"inner": [{"token": "hunter2"}]}):
            counted = await client.post(f"{CRONS}/count", json={"metadata": filter})
            listed = (await client.post(f"{CRONS}/search", json={"metadata": filter})).json()
            assert (counted.json(), len(listed)) == (int(shown), int(shown)), filter
        assert (await client.post(f"{CRONS}/count", json={"metadata": {"team": "a"}})).json() == 1, "the control"


@pytest.mark.parametrize("end", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
async def test_end_time_beyond_the_calendar_is_refused(quiet: Arena, end: str) -> None:
    body = {"assistant_id": "gated", "schedule": "0 * * * *", "end_time": end}
    assert (await quiet.agent.post(CRONS, json=body)).status_code == 422
