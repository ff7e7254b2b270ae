"""Two processes on one Postgres: when the one that follows a deployment is killed, the other takes over."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.federation.desk import ask
from tests.postgres import Cluster
from tests.scoreboard import Count, RecordScore
from tests.servers import ServerProcess, dev_server, running
from tests.waiting import until

Json = dict[str, Any]

WITHIN_SECONDS = 5.0


async def threads_listed(http: httpx.AsyncClient, server: ServerProcess, deployment: str) -> list[str]:
    """The threads of the open items of a deployment, as this process lists them."""
    query = {"filter": f"is:pending deployment:{deployment}", "limit": "100"}
    listed: Json = (await http.get(f"{server.url}/api/inbox/items", params=query)).json()
    return [item["source"]["remote"]["thread_id"] for item in listed["items"]]


@dataclass
class Outcome:
    """What was measured so far: also a test that fails has a result."""

    gaps: list[float] = field(default_factory=list)
    duplicates: int | None = None

    def __str__(self) -> str:
        gap = f"longest gap {max(self.gaps):.1f} s after {len(self.gaps)} kills" if self.gaps else "no kill measured"
        doubled = "duplicates not counted" if self.duplicates is None else f"{self.duplicates or 'no'} duplicate"
        return f"{gap}, {doubled}"


@pytest.mark.scoreboard
async def test_other_process_follows_when_the_leader_is_killed(
    postgres: Cluster, assent_url: str, tmp_path: Path, count: Count, record_score: RecordScore
) -> None:
    kills, outcome = count(full=10, quick=2), Outcome()
    (tmp_path / "langgraph.json").write_text('{"dependencies": ["."], "graphs": {}}')
    try:
        with postgres.database() as database:
            servers = [dev_server(database, config=tmp_path / "langgraph.json") for _ in range(2)]
            await kill_leaders(servers, assent_url, kills, outcome)
    finally:
        measure = f"the process that follows a deployment killed {kills} times, two processes on Postgres"
        record_score(measure, "no gap over 5 s, no duplicate", outcome)
    assert outcome.duplicates == 0
    assert max(outcome.gaps) < (WITHIN_SECONDS if kills == 10 else 3 * WITHIN_SECONDS)  # other runs share their machine


async def kill_leaders(servers: Sequence[ServerProcess], assent_url: str, kills: int, outcome: Outcome) -> None:
    """The first process leads, because it is alone when the deployment is added; then each in turn."""
    leading, other = servers
    asked = set[str]()
    with running(leading):
        key = {"x-api-key": leading.printed("reviewer key")}
        async with httpx.AsyncClient(headers=key, timeout=30) as http:
            body = {"url": assent_url, "name": "followed", "graphs": ["led"]}
            added = (await http.post(f"{leading.url}/api/deployments", json=body)).json()
            assert added["problem"] is None, added
            asked.add(await ask(assent_url, "before?", graph="led"))

            async def all_listed() -> bool:
                return set(await threads_listed(http, leading, added["id"])) >= asked

            await until(all_listed, "the first process does not follow")
            with running(other):
                for _ in range(kills):
                    await asyncio.to_thread(leading.kill)
                    begun = time.monotonic()
                    leading, other = other, leading
                    asked.add(await ask(assent_url, "who follows?", graph="led"))
                    try:
                        await until(all_listed, "nobody follows")
                    finally:
                        outcome.gaps.append(time.monotonic() - begun)
                    await asyncio.to_thread(other.start)
            listed = await threads_listed(http, leading, added["id"])
            outcome.duplicates = len(listed) - len(set(listed))
