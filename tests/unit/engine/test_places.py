"""The order in which free places are given: answers first, then one actor after the other."""

from __future__ import annotations

import asyncio

from assent.runs.queues.places import Places


async def test_runs_of_one_actor_do_not_delay_runs_of_another() -> None:
    places, order = Places(1), list[str]()
    assert places.take()

    async def execute(name: str, turn: str) -> None:
        await places.wait(turn)
        order.append(name)
        places.leave()

    waiting = [asyncio.create_task(execute(f"many {number}", "many")) for number in range(5)]
    waiting += [asyncio.create_task(execute("another", "another")), asyncio.create_task(execute("answer", ""))]
    await asyncio.sleep(0)
    places.leave()
    await asyncio.gather(*waiting)
    assert order == ["answer", "many 0", "another", "many 1", "many 2", "many 3", "many 4"]


async def test_place_of_a_cancelled_waiter_goes_to_the_next() -> None:
    places = Places(1)
    assert places.take()
    gone, next_one = asyncio.create_task(places.wait("a")), asyncio.create_task(places.wait("b"))
    await asyncio.sleep(0)
    gone.cancel()
    places.leave()
    await asyncio.wait_for(next_one, 90)
    assert gone.cancelled() or gone.done()
    places.leave()
    assert places.take()


async def test_closing_cancels_waiters_and_gives_no_more_places() -> None:
    places, begun = Places(1), list[str]()
    assert places.take()

    async def execute(name: str) -> None:
        await places.wait(name)
        begun.append(name)

    waiting = [asyncio.create_task(execute(name)) for name in "abc"]
    await asyncio.sleep(0)
    places.close()
    places.leave()
    await asyncio.wait(waiting, timeout=90)
    late = asyncio.create_task(execute("late"))
    await asyncio.wait([late], timeout=90)
    assert all(task.cancelled() for task in [*waiting, late])
    assert begun == []
