"""The differential suite: the same conversations with LangGraph's own server and with ours, compared word by word.

A normal run takes a seeded part of them; `make scoreboard` takes all. What differs on purpose is in `allowed.py`.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import AsyncExitStack

import httpx
import pytest

from tests.conformance.allowed import ALLOWED, listed, unexplained
from tests.conformance.cases import GRAPHS
from tests.conformance.comparing import alike, differences
from tests.conformance.scenarios import scenarios
from tests.conformance.talking import Json, Scenario, Talk
from tests.scoreboard import Count, RecordScore

_AT_ONCE = 30
_SEED = 14


@pytest.mark.scoreboard
@pytest.mark.promise("SERVE-01", "DROP-05", "DROP-10")
async def test_both_servers_answer_the_same(addresses: list[str], count: Count, record_score: RecordScore) -> None:
    everything = scenarios()
    chosen = _chosen(everything, count(full=len(everything), quick=60))
    theirs, ours = await asyncio.gather(*(_recorded(address, chosen) for address in addresses))
    found = [difference for name in chosen for difference in differences(name, alike(theirs[name]), alike(ours[name]))]
    used: Counter[str] = Counter()
    left = unexplained(found, used)
    record_score(
        f"the same calls to LangGraph's server and to ours, {len(GRAPHS)} graphs, all stream modes",
        "0 unexplained differences",
        f"{len(chosen)} conversations with {sum(map(len, ours.values()))} calls: {len(left)} unexplained",
    )
    assert not left, listed(left)
    if len(chosen) == len(everything):
        assert [row.reason for row in ALLOWED if row.reason not in used and not row.depends_on_speed] == []


def test_a_difference_that_no_row_allows_is_reported() -> None:
    """The control: one changed value, one missing call and one additional field."""
    theirs: list[Json] = [{"call": "GET /x", "status": 200, "body": {"values": {"text": "x"}}}]
    for ours in (
        [{"call": "GET /x", "status": 200, "body": {"values": {"text": "y"}}}],
        [],
        [{"call": "GET /x", "status": 200, "body": {"values": {"text": "x", "more": 1}}}],
    ):
        assert len(unexplained(differences("linear/wait", theirs, ours), Counter())) == 1


def test_no_row_allows_an_internal_error_of_ours() -> None:
    theirs: list[Json] = [{"null": {"status": 422}}]
    for status, left in ((200, 0), (500, 1)):
        ours: list[Json] = [{"null": {"status": status}}]
        found = differences("field/new thread/ttl", theirs, ours)
        assert len(unexplained(found, Counter())) == left


def _chosen(everything: dict[str, Scenario], size: int) -> dict[str, Scenario]:
    names = random.Random(_SEED).sample(list(everything), size)
    return {name: everything[name] for name in names}


async def _recorded(address: str, chosen: dict[str, Scenario]) -> dict[str, list[Json]]:
    limit = asyncio.Semaphore(_AT_ONCE)
    async with AsyncExitStack() as stack:
        limits = httpx.Limits(max_keepalive_connections=0)  # a server may close a connection that is not in use
        http = await stack.enter_async_context(httpx.AsyncClient(base_url=address, timeout=120, limits=limits))

        async def record(scenario: Scenario) -> list[Json]:
            async with limit:
                talk = Talk(http)
                try:
                    await scenario(talk)
                except Exception as error:  # noqa: BLE001 - shown as a difference, with what was said before
                    talk.note("failed", body=repr(error))
                return talk.said

        said = await asyncio.gather(*map(record, chosen.values()))
    return dict(zip(chosen, said, strict=True))
