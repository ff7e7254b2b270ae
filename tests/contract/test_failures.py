"""What becomes of a run whose graph fails in a way that reaches its thread's state, on every queue: it ends, its thread
shows what can be read, whoever follows it is told, and the next run begins."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from assent.identity.model.access import DEFAULT_TENANT
from assent.kernel.ids import new_id
from assent.review.rows import items
from assent.runs.project.loader import LoadedGraphs, load_graphs
from assent.runs.project.manifest import read_manifest
from assent.settings import Settings
from assent.threads.model.frames import END
from assent.threads.model.runs import Cancel, Run, RunStatus, Strategy
from assent.threads.model.threads import ThreadStatus
from assent.threads.rows import runs
from assent.threads.run_requests import RunRequest
from tests.contract.queues import CALLER, Site, Trace, queue, queue_settings
from tests.contract.stores import outside
from tests.waiting import until

__all__ = ["queue", "queue_settings"]

HOSTILE = Path(__file__).parents[1] / "graphs_malformed" / "langgraph.json"
GOOD = {"messages": [{"role": "user", "content": "hi"}]}
WRONG = {"messages": [{"x": 1}]}
REFUSE = {
    "embedded": (
        "CREATE TRIGGER refuse BEFORE {change} ON {table} BEGIN SELECT RAISE(ABORT, 'the table is closed'); END",
    ),
    "procrastinate": (
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'the table is closed'; END $$",
        "CREATE TRIGGER refuse BEFORE {change} ON {table} FOR EACH ROW EXECUTE FUNCTION refuse()",
    ),
}


class Hostile(Trace):
    def graphs(self) -> LoadedGraphs:
        return load_graphs(read_manifest(HOSTILE))


@pytest.fixture
async def site(queue: str, queue_settings: Settings) -> AsyncIterator[Site]:
    site = Site(queue_settings, Hostile())
    async with site.processes(1):
        yield site


async def start(site: Site, thread_id: str, graph: str, input: Any, **asked: Any) -> Run:
    return await site.engine.runs.create(CALLER, thread_id, RunRequest(graph, input=input, **asked))


async def ended(site: Site, run: Run) -> Run:
    async def over() -> bool:
        run_row = await site.run(run)
        return run_row is not None and not run_row.status.active

    await until(over, f"{run.id} goes on")
    run_row = await site.run(run)
    assert run_row is not None
    return run_row


def close_table(site: Site, queue: str, table: str, change: str) -> None:
    """From now on the database refuses this change."""
    with outside(site.settings.database).connect() as connection:
        for statement in REFUSE[queue]:
            connection.execute(text(statement.format(table=table, change=change)))


async def test_a_run_whose_input_a_reducer_refuses_fails_and_the_thread_keeps_its_state(site: Site) -> None:
    thread = await site.thread()
    await ended(site, await start(site, thread, "chat", GOOD))
    before = (await site.row(thread)).values
    run_id = new_id()
    followed = site.engine.runs.follow(CALLER, run_id)
    request = RunRequest("chat", input=WRONG)
    failed = await ended(site, await site.engine.runs.create(CALLER, thread, request, run_id=run_id))
    assert failed.status is RunStatus.ERROR
    row = await site.row(thread)
    assert (row.status, row.values, row.error) == (ThreadStatus.ERROR, before, failed.error)
    assert "MESSAGE_COERCION_FAILURE" in str(row.error)
    last = await asyncio.wait_for(followed.end(), 10)
    assert (last.event, json.loads(last.data)) == (END, {"__error__": failed.error})
    await ended(site, await start(site, thread, "chat", GOOD))
    row = await site.row(thread)
    assert (row.status, len(row.values["messages"])) == (ThreadStatus.IDLE, 4)


@pytest.mark.parametrize(
    ("graph", "input", "reason"),
    [
        ("clash", {"kind": "both"}, "Can receive only one value per step"),
        ("refusing", {"kind": "unheard"}, "boom"),
        ("refusing", {"kind": "node cancelled"}, ""),
        ("raising", {"kind": "unheard"}, "boom"),
        ("raising", {"kind": "mute"}, "has no text"),
        ("raising", {"kind": "cancelled"}, "CancelledError"),
    ],
)
async def test_run_ends_with_the_reason_for_any_exception_of_its_graph(
    site: Site, graph: str, input: Any, reason: str
) -> None:
    thread = await site.thread()
    run = await start(site, thread, graph, input)
    behind = await start(site, thread, graph, {"kind": "fine"}, multitask_strategy=Strategy.ENQUEUE)
    failed = await ended(site, run)
    assert (failed.status, failed.attempt) == (RunStatus.ERROR, 1)
    assert failed.error is not None
    assert reason in failed.error["message"]
    assert (await ended(site, behind)).status is RunStatus.SUCCESS


async def test_a_state_that_its_model_refuses_fails_every_run_with_the_reason_and_shows_the_step_before(
    site: Site,
) -> None:
    """LangGraph checks the whole state before each step, so what is wrong with it stays wrong."""
    thread = await site.thread()
    for input in ({"kind": "node", "count": 7}, {"kind": "fine"}):
        failed = await ended(site, await start(site, thread, "modelled", input))
        assert failed.error is not None
        assert "valid integer" in failed.error["message"]
    row = await site.row(thread)
    assert (row.status, row.values["count"]) == (ThreadStatus.ERROR, 7)


async def test_the_time_out_of_a_node_is_not_the_time_out_of_the_run(site: Site) -> None:
    failed = await ended(site, await start(site, await site.thread(), "raising", {"kind": "timeout"}))
    assert (failed.status, failed.error) == (RunStatus.ERROR, {"error": "TimeoutError", "message": "my own"})


async def test_an_answered_question_is_not_asked_again_when_a_reducer_refuses_what_came_of_it(site: Site) -> None:
    """The answer is stored, and so is the output that is refused: nobody could answer a second time."""
    thread = await site.thread()
    await ended(site, await start(site, thread, "questioning", {"kind": "fine"}))
    [question] = (await site.row(thread)).pending
    command = {"resume": {question["id"]: "plain"}}
    failed = await ended(site, await start(site, thread, "questioning", None, command=command))
    assert failed.error == {"error": "ValueError", "message": "boom"}
    row = await site.row(thread)
    assert (row.status, row.pending) == (ThreadStatus.ERROR, [])
    assert await site.store.write(DEFAULT_TENANT, items.open_of_thread, thread) == []
    await site.engine.threads.states.repair(CALLER, thread)
    await ended(site, await start(site, thread, "questioning", None))
    assert len((await site.row(thread)).pending) == 1, "set back, it asks again"


async def test_a_question_beside_an_output_that_is_refused_stays_open(site: Site) -> None:
    thread = await site.thread()
    await ended(site, await start(site, thread, "questioning_beside", {"kind": "plain"}))
    row = await site.row(thread)
    assert (row.status, [pending_item["value"] for pending_item in row.pending]) == (ThreadStatus.ERROR, ["which?"])
    state = await site.engine.threads.states.read(CALLER, thread)
    assert [interrupt["value"] for interrupt in state["interrupts"]] == ["which?"]


async def test_a_question_that_cannot_be_stored_fails_its_run(site: Site, queue: str) -> None:
    close_table(site, queue, "items", "INSERT")
    thread = await site.thread()
    failed = await ended(site, await start(site, thread, "asking", {"kind": "nul"}))
    assert failed.status is RunStatus.ERROR
    assert failed.error is not None
    assert "the outcome of the run cannot be stored" in failed.error["message"]
    assert "the table is closed" in failed.error["message"]
    row = await site.row(thread)
    assert (row.status, row.values, row.pending) == (ThreadStatus.ERROR, {"kind": "nul"}, [])
    fine = await ended(site, await start(site, thread, "asking", {"kind": "fine"}))
    assert fine.status is RunStatus.SUCCESS


async def test_a_run_of_which_no_state_can_be_stored_ends_all_the_same(site: Site, queue: str) -> None:
    thread = await site.thread()
    close_table(site, queue, "threads", 'UPDATE OF "values"')
    behind = [Strategy.REJECT, Strategy.ENQUEUE]
    for run in [await start(site, thread, "raising", {"kind": "plain"}, multitask_strategy=one) for one in behind]:
        assert (await ended(site, run)).error == {"error": "ValueError", "message": "boom"}
    row = await site.row(thread)
    assert (row.status, row.values) == (ThreadStatus.ERROR, None)


async def test_a_run_of_a_graph_that_is_gone_keeps_what_its_thread_shows(site: Site) -> None:
    thread = await site.thread()
    await ended(site, await start(site, thread, "asking", {"kind": "bytes"}))
    before = await site.row(thread)
    assert before.waits
    project = site.engine.project
    loaded, project.loaded = project.loaded, replace(project.loaded, graphs={})
    command = {"resume": {before.pending[0]["id"]: "yes"}}
    failed = await ended(site, await start(site, thread, "asking", None, command=command))
    assert failed.error is not None
    assert "not served here" in failed.error["message"]
    row = await site.row(thread)
    assert (row.status, row.values, row.pending) == (ThreadStatus.ERROR, before.values, before.pending)
    project.loaded = loaded
    again = await ended(site, await start(site, thread, "asking", None, command=command))
    assert again.status is RunStatus.SUCCESS, "the question can still be answered"


async def test_cancelling_frees_a_thread_whose_state_cannot_be_read(site: Site, queue: str) -> None:
    """Left by an older version: the run is marked as running, and the output of its node is refused each time."""
    thread = await site.thread()
    run = await ended(site, await start(site, thread, "clash", {"kind": "both"}))
    with outside(site.settings.database).connect() as connection:
        again = "UPDATE runs SET status = 'pending', cancel = 'interrupt', ended_at = NULL WHERE run_id = :id"
        connection.execute(text(again), {"id": run.id})
        connection.execute(text("UPDATE threads SET status = 'busy'"))
    await site.store.write(DEFAULT_TENANT, runs.resume, thread)
    stopped = await ended(site, run)
    assert (stopped.status, stopped.cancel) == (RunStatus.INTERRUPTED, Cancel.INTERRUPT)
    assert (await site.row(thread)).status is not ThreadStatus.BUSY
