"""Synchronous nodes of graphs can take every thread of the event loop's own pool. The server does not depend on it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from tests.faults.arena import Arena

LONG = {"metadata": {"text": ["x" * 100] * 200}}
"""A body that is not read on the event loop."""


@pytest.fixture
async def full_pool() -> AsyncIterator[None]:
    """As many calls as no pool has threads for, none of which ends."""
    release, loop = threading.Event(), asyncio.get_running_loop()
    calls = [loop.run_in_executor(None, release.wait) for _ in range(100)]
    yield
    release.set()
    await asyncio.gather(*calls)


@pytest.mark.usefixtures("full_pool")
async def test_pages_bodies_and_states_are_served_while_nodes_hold_the_pool(arena: Arena) -> None:
    async with asyncio.timeout(90):
        page = await arena.ana.get("/inbox", headers={"accept": "text/html"})
        made = await arena.agent.post("/threads", json=LONG)
        read = await arena.agent.get(f"/threads/{made.json()['thread_id']}/state")
        asked = await arena.agent.post("/api/inbox/items", json={"type": "note", "title": "Look", "text": "x" * 20_000})
    assert [page.status_code, made.status_code, read.status_code] == [200, 200, 200]
    assert asked.status_code < 500


@pytest.mark.usefixtures("full_pool")
async def test_control_the_pool_is_full() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await asyncio.to_thread(int)
