"""Crons on LangGraph's own server and on ours: the same answers, and the same statuses for what is refused.

The differences, each on purpose: an `end_time` that is no time, a `multitask_strategy` that does not exist, and a
`context` beside a `configurable` are refused when the cron is created, not when it fires; a schedule that is never due
is 422, not 400; null is the same as absent. Ours have more fields: `owner`, `last_run_id`, `last_run_date`, `missed`
and `problem`.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from langgraph_sdk.client import LangGraphClient

from tests.conformance.conftest import Pair
from tests.conformance.test_runs import same
from tests.conformance.test_store import answer, http

Json = dict[str, Any]

CRONS = "/runs/crons"
YEARLY = {"assistant_id": "defaults", "schedule": "0 0 1 1 *", "input": {"text": "x"}}
NOTHING = "0197c5a0-0000-7000-8000-000000000000"
OURS = {"owner", "last_run_id", "last_run_date", "missed", "problem"}


def theirs(cron: Json) -> Json:
    return {name: value for name, value in cron.items() if name not in OURS}


async def create(client: LangGraphClient, **more: Any) -> Json:
    response = await http(client).post(CRONS, json={**YEARLY, **more})
    assert response.status_code == 200, response.text
    made: Json = response.json()
    return made


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"schedule": "@daily"},
        {"schedule": "* * 1 1 * 0"},
        {"timezone": "America/New_York"},
        {"end_time": "2035-01-01T00:00:00+00:00"},
        {"enabled": False},
        {"on_run_completed": "keep"},
        {"metadata": {"a": 1}},
        {"config": {"tags": ["t"], "configurable": {"model": "m"}}},
        {"context": {"model": "m"}},
        {"input": [{"text": "x"}]},
        {"stream_mode": "updates"},
        {"interrupt_before": ["*"]},
        {"unknown": 1},
    ],
)
async def test_created_crons_look_alike(pair: Pair, change: Json) -> None:
    async def made(client: LangGraphClient) -> Json:
        return theirs(await create(client, **change))

    await same(pair, made)


@pytest.mark.parametrize(
    "change",
    [
        {"schedule": "bad"},
        {"schedule": "60 * * * *"},
        {"schedule": None},
        {"schedule": 5},
        {"timezone": "Mars/X"},
        {"timezone": 5},
        {"assistant_id": "nope"},
        {"assistant_id": NOTHING},
        {"on_run_completed": "x"},
        {"enabled": "x"},
        {"metadata": []},
        {"stream_mode": "bad"},
        {"durability": "x"},
        {"interrupt_before": "x"},
        {"config": {"recursion_limit": "x"}},
    ],
)
async def test_refused_crons(pair: Pair, change: Json) -> None:
    status, _ = await same(pair, lambda client: answer(client, "POST", CRONS, json={**YEARLY, **change}))
    assert status in (404, 422)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"schedule": "0 12 1 1 *"},
        {"timezone": "Europe/Paris"},
        {"end_time": "2035-01-01T00:00:00+00:00"},
        {"end_time": None},
        {"enabled": False},
        {"metadata": {"b": 2}},
        {"input": {"text": "y"}},
        {"config": {"configurable": {"model": "z"}}},
        {"on_run_completed": "keep"},
        {"assistant_id": "required"},
        {"schedule": "x"},
        {"timezone": "x"},
        {"enabled": "x"},
    ],
)
async def test_changes(pair: Pair, change: Json) -> None:
    async def changed(client: LangGraphClient) -> tuple[int, Any]:
        made = await create(client, metadata={"a": 1}, config={"configurable": {"model": "m"}})
        status, cron = await answer(client, "PATCH", f"{CRONS}/{made['cron_id']}", json=change)
        return status, theirs(cron) if cron else None

    await same(pair, changed)


async def test_the_life_of_crons(pair: Pair) -> None:
    mark = {"mark": uuid4().hex}

    async def lived(client: LangGraphClient) -> list[Any]:
        thread = (await client.threads.create())["thread_id"]
        first = await create(client, metadata=mark)
        bound: Any = await client.crons.create_for_thread(thread, "defaults", schedule="@yearly", metadata=mark)
        seen: list[Any] = [theirs(bound)]
        wanted: tuple[Json, ...] = ({}, {"enabled": False}, {"thread_id": thread}, {"limit": 1, "offset": 1})
        for each in wanted:
            seen.append([theirs(dict(cron)) for cron in await client.crons.search(metadata=mark, **each)])
        ordered: Json = {"sort_by": "created_at", "sort_order": "asc"}
        seen.append(await client.crons.search(metadata=mark, select=["schedule"], **ordered))
        seen.append(await client.crons.count(metadata=mark))
        requests: tuple[tuple[str, str, Json], ...] = (
            ("GET", f"{CRONS}/{first['cron_id']}", {}),
            ("GET", f"{CRONS}/{NOTHING}", {}),
            ("GET", f"{CRONS}/x", {}),
            ("PATCH", f"{CRONS}/{NOTHING}", {"json": {"enabled": False}}),
            ("POST", f"/threads/{NOTHING}/runs/crons", {"json": YEARLY}),
            ("POST", "/threads/x/runs/crons", {"json": YEARLY}),
            ("POST", f"{CRONS}/search", {"json": {"assistant_id": "defaults"}}),
            ("POST", f"{CRONS}/search", {"json": {"limit": 0}}),
            ("POST", f"{CRONS}/search", {"json": {"select": ["x"]}}),
            ("DELETE", f"{CRONS}/{first['cron_id']}", {}),
            ("DELETE", f"{CRONS}/{first['cron_id']}", {}),
            ("DELETE", f"{CRONS}/x", {}),
        )
        seen += [(await answer(client, method, path, **sent))[0] for method, path, sent in requests]
        await client.threads.delete(thread)
        return [*seen, await client.crons.count(metadata=mark)]

    assert (await same(pair, lived))[-1] == 0
