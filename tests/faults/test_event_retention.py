"""Events of runs whose frames were removed: the end and open questions are told, and nothing is left out behind a
number that a client has read."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

from assent.identity.model.access import Principal
from assent.kernel.ids import new_id
from assent.runs.events.model.events import Event
from tests.contract.stores import both_databases
from tests.faults.arena import Arena, open_arena
from tests.graphs_gated.attempts import script

LONG = timedelta(hours=2)


async def events(arena: Arena, reader: Principal, thread: str, since: int = 0) -> list[Event]:
    """Up to the end of the run."""
    seen: list[Event] = []
    async with asyncio.timeout(90):
        async for event in arena.house.engine.events.open(reader, thread, lambda event: True, since=since):
            if event is not None:
                seen.append(event)
                if event.method == "lifecycle" and not event.namespace and event.data["event"] != "running":
                    return seen
    raise AssertionError("the stream ended")


async def started(arena: Arena, thread: str, graph: str, input: Any) -> None:
    params = {"assistant_id": graph, "input": input}
    sent = {"id": 1, "method": "run.start", "params": params}
    told = (await arena.agent.post(f"/threads/{thread}/commands", json=sent)).json()
    assert told["type"] == "success", told


def methods(seen: list[Event]) -> list[str]:
    return [event.method for event in seen]


@both_databases
async def test_a_run_without_frames_tells_its_end_and_its_question(folder: Path, database: str) -> None:
    async with open_arena(folder, database) as arena:
        thread, owner = new_id(), await _owner(arena)
        await started(arena, thread, "gated", _script(arena))
        whole = await events(arena, owner, thread)
        arena.house.pass_time(LONG)
        assert (await arena.house.services.retention.prune()).frames > 0
        rest = await events(arena, owner, thread)
        assert methods(rest) == ["lifecycle", "input.requested", "lifecycle"]
        assert rest[1].data == next(event.data for event in whole if event.method == "input.requested")


@both_databases
async def test_the_end_is_told_behind_any_number_once_the_frames_are_gone(folder: Path, database: str) -> None:
    async with open_arena(folder, database) as arena:
        thread, owner = new_id(), await _owner(arena)
        await started(arena, thread, "free", {"log": str(arena.log), "tag": "x"})
        whole = await events(arena, owner, thread)
        arena.house.pass_time(LONG)
        assert (await arena.house.services.retention.prune()).frames > 0
        for read in whole[:-1]:
            rest = await events(arena, owner, thread, read.seq)
            assert rest[-1].data == whole[-1].data
            assert [event.seq for event in rest] == sorted(event.seq for event in rest)
            assert rest[0].seq > read.seq


@both_databases
async def test_the_frames_of_a_run_stay_together_until_it_has_ended_for_long(folder: Path, database: str) -> None:
    async with open_arena(folder, database) as arena:
        thread, owner, hold = new_id(), await _owner(arena), arena.log.with_name("held")
        await started(arena, thread, "free", {"log": str(arena.log), "tag": "x", "hold": str(hold)})
        reading = asyncio.create_task(events(arena, owner, thread))
        async with asyncio.timeout(90):
            while not hold.with_suffix(".started").exists():  # noqa: ASYNC110 - the graph decides when
                await asyncio.sleep(0.01)
        arena.house.pass_time(LONG)
        hold.with_suffix(".go").touch()
        whole = await reading
        assert (await arena.house.services.retention.prune()).frames == 0
        assert [event.id for event in await events(arena, owner, thread)] == [event.id for event in whole]


async def _owner(arena: Arena) -> Principal:
    return await arena.house.services.access.by_key(arena.agent.headers["x-api-key"])


def _script(arena: Arena) -> Any:
    return script({"log": str(arena.log), "tag": "x"})
