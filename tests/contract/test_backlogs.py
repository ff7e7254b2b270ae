"""Checkpoints that are stored later than they are made: as soon as the run waits, and at the latest with its end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from langgraph.graph import START, StateGraph

from assent.errors import Unavailable
from assent.identity.model.access import DEFAULT_TENANT
from assent.kernel.store.transaction import Tx
from assent.runs.checkpoints import backlog
from assent.runs.engine import endings, records
from assent.settings import Settings
from assent.threads.model.runs import Cancel, RunStatus
from assent.threads.rows.state import checkpoints
from tests.contract.queues import CALLER, Site, State, Trace, queue, queue_settings, site
from tests.waiting import until

__all__ = ["queue", "queue_settings", "site"]

_STEPS = 4
"""The checkpoints of a run with two nodes: its input, the state before the nodes, and after each of them."""


async def _stored(site: Site, thread_id: str) -> int:
    def count(tx: Tx) -> int:
        return len(checkpoints.history(tx, thread_id, "", before=None, limit=None))

    return await site.store.read(DEFAULT_TENANT, count)


async def _is_inside(site: Site, thread_id: str) -> bool:
    return bool(site.trace.inside.get(thread_id))


async def test_finished_steps_are_stored_while_a_node_waits(site: Site) -> None:
    thread = await site.thread()
    await site.start(thread, "held", hold=True)

    async def is_stored() -> bool:
        return await _stored(site, thread) == 2

    await until(is_stored, "the steps before the waiting node were not stored")
    site.trace.gate("held").set()
    await site.until_idle()
    assert await _stored(site, thread) == _STEPS


async def test_attempt_whose_writes_are_lost_while_it_ends_is_repeated(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database fails with the writes of the first node when the graph has ended. The later writes refer to parts of
    the lost ones."""
    second, failed = asyncio.Event(), list[bool]()
    visit = site.trace.visit

    def fails(write: Any) -> Any:
        async def failing(tenant: str, function: Any, *given: Any, **named: Any) -> Any:
            if function is backlog.store_all and not failed:
                failed.append(True)
                await second.wait()
                for _ in range(200):  # turns of the event loop, in which the graph ends
                    await asyncio.sleep(0)
                raise Unavailable("the database is gone")
            return await write(tenant, function, *given, **named)

        return failing

    async def visited(thread_id: str, state: Any, node: str) -> None:
        await visit(thread_id, state, node)
        if node == "b":
            second.set()

    for store in site.stores:
        monkeypatch.setattr(store, "write", fails(store.write))
    monkeypatch.setattr(site.trace, "visit", visited)
    thread = await site.thread()
    run = await site.start(thread, "lost")
    await site.until_idle()
    ended = await site.run(run)
    assert failed
    assert ended is not None
    assert (ended.status, ended.attempt) == (RunStatus.SUCCESS, 2)
    assert await _stored(site, thread) == _STEPS
    assert await site.done(thread) == ["lost.a", "lost.b"]
    past = await site.engine.threads.states.history(CALLER, thread, limit=10)
    assert [snapshot["values"].get("done", []) for snapshot in past] == [["lost.a", "lost.b"], ["lost.a"], [], []]


@pytest.mark.parametrize("durability", ["async", "sync"])
async def test_last_step_is_stored_with_the_end_unless_it_has_to_be_stored_before(
    site: Site, queue: str, monkeypatch: pytest.MonkeyPatch, durability: str
) -> None:
    """With several processes, the run may wait for its bus before the end."""
    rests = list[int]()

    def noted(tx: Tx, writes: Sequence[Any]) -> None:
        rests.append(len(writes))
        backlog.store_all(tx, writes)

    monkeypatch.setattr(endings, "store_all", noted)
    thread = await site.thread()
    await site.start(thread, "short", durability=durability)
    await site.until_idle()
    assert await _stored(site, thread) == _STEPS
    if durability == "sync":
        assert rests[-1] == 0
    elif queue == "embedded":
        assert rests[-1] > 0


async def test_cancelled_run_keeps_the_steps_that_it_has_finished(site: Site) -> None:
    thread = await site.thread()
    run = await site.start(thread, "held", hold=True)
    await until(lambda: _is_inside(site, thread), "the run did not start")
    await site.engine.runs.cancel(CALLER, thread, run.id, Cancel.INTERRUPT)
    await site.until_idle()
    assert await _stored(site, thread) == 2


async def test_end_is_stored_with_its_checkpoints_or_not_at_all(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database fails after the checkpoints of the end: the same end is stored again, and nothing twice."""
    finish, failed = endings.finish, list[bool]()

    def failing(*given: Any, **named: Any) -> None:
        finish(*given, **named)
        if not failed:
            failed.append(True)
            raise Unavailable("the database is gone")

    monkeypatch.setattr(records, "finish", failing)
    thread = await site.thread()
    run = await site.start(thread, "once")
    await site.until_idle()
    ended = await site.run(run)
    assert failed
    assert ended is not None
    assert (ended.status, ended.attempt) == (RunStatus.SUCCESS, 1)
    assert await _stored(site, thread) == _STEPS
    assert [node for *_, node in site.trace.entered] == ["a", "b"]


class OwnLoop(Trace):
    """Its second node runs a graph that has checkpoints, in an event loop of its own."""

    def _node(self, name: str) -> Any:
        node = super()._node(name)
        if name == "a":
            return node
        inner = StateGraph(State).add_node("inner", node).add_edge(START, "inner").compile(checkpointer=True)

        def own(state: State) -> State:
            return {"done": asyncio.run(inner.ainvoke({"tag": state["tag"], "done": []}))["done"]}

        return own


async def test_node_with_an_event_loop_of_its_own_reads_and_writes_checkpoints(queue_settings: Settings) -> None:
    site = Site(queue_settings, OwnLoop())
    async with site.processes(1):
        threads = [await site.thread() for _ in range(6)]
        started = [await site.start(thread, "own") for thread in threads]
        await site.until_idle()
        ended = [await site.run(run) for run in started]
        assert [run and (run.status, run.attempt) for run in ended] == [(RunStatus.SUCCESS, 1)] * 6
        assert [await site.done(thread) for thread in threads] == [["own.a", "own.b"]] * 6
