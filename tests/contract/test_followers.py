"""Followers of runs and threads, in one process or several: they get every frame and are released at the end."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from assent.runs.engine.histories import Update
from assent.threads.bus import Subscription
from assent.threads.model.frames import Frame, position_of
from assent.threads.model.runs import Cancel, Strategy
from tests.contract.queues import CALLER, Site, queue, queue_settings, site

__all__ = ["queue", "queue_settings", "site"]

PATIENCE = 60.0


async def ended(follower: Subscription) -> bytes:
    return (await asyncio.wait_for(follower.end(), PATIENCE)).data


async def told(follower: Subscription, count: int) -> list[Frame]:
    return [await asyncio.wait_for(follower.next(), PATIENCE) for _ in range(count)]


@pytest.mark.parametrize("how", ["interrupt", "rollback", "delete", "many", "interrupted", "rolled back", "removed"])
async def test_follower_of_a_run_that_never_begins_is_released(site: Site, how: str) -> None:
    thread = await site.thread()
    await site.start(thread, "held", hold=True)
    run = await site.start(thread, "behind", multitask_strategy=Strategy.ENQUEUE)
    follower, runs = site.engines[-1].runs.follow(CALLER, run.id), site.engine.runs
    match how:
        case "interrupt" | "rollback":
            await runs.cancel(CALLER, thread, run.id, Cancel(how))
        case "delete":
            await runs.delete(CALLER, thread, run.id)
        case "many":
            await runs.cancel_many(CALLER, Cancel.INTERRUPT, thread_id=thread, run_ids=[run.id], statuses=())
        case "interrupted":
            await site.start(thread, "newer", multitask_strategy=Strategy.INTERRUPT)
        case "rolled back":
            await site.start(thread, "newer", multitask_strategy=Strategy.ROLLBACK)
        case _:
            await site.engine.threads.delete(CALLER, thread)
    assert await ended(follower) == b"null"
    site.trace.gate("held").set()
    await site.until_idle()


async def test_follower_of_a_run_of_a_deleted_thread_is_released(site: Site) -> None:
    thread = await site.thread()
    run = await site.start(thread, "held", hold=True)
    follower = site.engines[-1].runs.follow(CALLER, run.id)
    assert (await told(follower, 1))[0].event == "metadata"
    await site.engine.threads.delete(CALLER, thread)
    await ended(follower)


async def test_follower_of_a_thread_gets_its_runs_and_edits(site: Site) -> None:
    thread = await site.thread()
    follower = await site.engines[-1].runs.follow_thread(CALLER, thread)
    run = await site.start(thread, "one", stream_mode=("updates",))
    seen = await told(follower, 4)
    assert [frame.event for frame in seen] == ["metadata", "updates", "updates", "metadata"]
    assert json.loads(seen[-1].data) == {"status": "run_done", "run_id": run.id}
    await site.engine.threads.states.update(CALLER, thread, Update({"done": ["by hand"]}))
    (edit,) = await told(follower, 1)
    assert edit.event == "state_update"
    news: Any = json.loads(edit.data)
    assert news["state"]["values"]["done"] == ["one.a", "one.b", "by hand"]
    follower.close()


async def test_returning_follower_of_a_thread_gets_missed_frames(site: Site) -> None:
    thread = await site.thread()
    asked: Any = {"stream_mode": ("updates",), "stream_resumable": True, "multitask_strategy": Strategy.ENQUEUE}
    follower = await site.engines[-1].runs.follow_thread(CALLER, thread)
    for tag in ("one", "two"):
        await site.start(thread, tag, **asked)
    live = await told(follower, 8)
    await site.start(thread, "lost", stream_mode=("updates",))
    await site.until_idle()
    runs = site.engines[-1].runs
    assert await runs.missed_frames(CALLER, thread, (0, 0)) == live
    for place, frame in enumerate(live):
        position = position_of(frame.id)
        assert position is not None
        assert await runs.missed_frames(CALLER, thread, position) == live[place + 1 :]
    follower.close()


async def test_frames_not_yet_stored_are_among_the_missed_frames(site: Site) -> None:
    thread = await site.thread()
    follower = site.engine.runs.follow(
        CALLER, (run := await site.start(thread, "held", hold=True, stream_resumable=True)).id
    )
    seen = await told(follower, 2)
    missed = await site.engine.runs.missed_frames(CALLER, thread, (0, 0))
    assert missed == seen
    site.trace.gate("held").set()
    await ended(follower)
    assert await site.run(run) is not None
