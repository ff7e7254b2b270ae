"""`client.crons` of the stock Python SDK, every method, with and without await."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
from langgraph_sdk.client import LangGraphClient, SyncLangGraphClient
from langgraph_sdk.errors import NotFoundError, UnprocessableEntityError

from tests.e2e.holding import new_thread
from tests.waiting import until

pytestmark = pytest.mark.promise("SERVE-01")

YEARLY = "0 0 1 1 *"
EVERY_SECOND = "* * * * * *"


async def test_crons_are_made_changed_found_counted_and_deleted(client: LangGraphClient) -> None:
    mark = uuid4().hex
    end = datetime.now(UTC) + timedelta(days=900)
    made: Any = await client.crons.create(
        "echo",
        schedule=YEARLY,
        input={"text": "x"},
        metadata={"mark": mark},
        config={"tags": ["t"]},
        webhook="https://example.com/hook",
        on_run_completed="keep",
        end_time=end,
        enabled=False,
        timezone=ZoneInfo("America/New_York"),
        stream_mode=["values"],
        durability="sync",
    )
    assert (made["schedule"], made["timezone"], made["enabled"]) == (YEARLY, "America/New_York", False)
    assert datetime.fromisoformat(made["end_time"]) == end
    assert made["next_run_date"].endswith("-01-01T05:00:00+00:00")
    cron_id = made["cron_id"]
    changed: Any = await client.crons.update(
        cron_id, schedule="0 12 * * *", timezone="Europe/Paris", enabled=True, end_time=None, metadata={"more": 1}
    )
    assert (changed["schedule"], changed["timezone"], changed["end_time"]) == ("0 12 * * *", "Europe/Paris", None)
    assert changed["metadata"] == {"mark": mark, "more": 1}
    assert changed["payload"]["input"] == {"text": "x"}
    matching = await client.crons.search(metadata={"mark": mark}, assistant_id=made["assistant_id"], enabled=True)
    assert [cron["cron_id"] for cron in matching] == [cron_id]
    picked: Any = await client.crons.search(
        metadata={"mark": mark}, select=["schedule"], sort_by="next_run_date", sort_order="asc"
    )
    assert picked == [{"schedule": "0 12 * * *"}]
    assert await client.crons.count(metadata={"mark": mark}) == 1
    await client.crons.delete(cron_id)
    assert await client.crons.count(metadata={"mark": mark}) == 0
    with pytest.raises(NotFoundError):
        await client.crons.delete(cron_id)


async def test_cron_fires_by_itself(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    made: Any = await client.crons.create_for_thread(
        thread, "echo", schedule=EVERY_SECOND, input={"text": "by a cron"}, multitask_strategy="enqueue"
    )
    try:

        async def fired() -> bool:
            return len(await client.runs.list(thread, status="success")) >= 2

        await until(fired, patience=60)
    finally:
        await client.crons.delete(made["cron_id"])
    runs = await client.runs.list(thread, limit=100)
    due = [(run["metadata"] or {})["cron_due"] for run in runs]
    assert {(run["metadata"] or {})["cron_id"] for run in runs} == {made["cron_id"]}
    assert len(set(due)) == len(due)
    assert (await client.threads.get_state(thread))["values"]["text"] == "by a cron"  # type: ignore[call-overload]


async def test_wrong_crons_raise_the_errors_of_the_sdk(client: LangGraphClient) -> None:
    with pytest.raises(UnprocessableEntityError, match="Invalid cron schedule"):
        await client.crons.create("echo", schedule="whenever")
    with pytest.raises(UnprocessableEntityError, match="Invalid timezone"):
        await client.crons.create("echo", schedule=YEARLY, timezone="Mars/Olympus")
    with pytest.raises(NotFoundError, match="Assistant 'nobody' not found"):
        await client.crons.create("nobody", schedule=YEARLY)
    with pytest.raises(NotFoundError):
        await client.crons.create_for_thread(str(uuid4()), "echo", schedule=YEARLY)


def test_crons_without_await(sync_client: SyncLangGraphClient) -> None:
    mark = {"mark": uuid4().hex}
    thread = sync_client.threads.create()["thread_id"]
    bound: Any = sync_client.crons.create_for_thread(thread, "echo", schedule=YEARLY, metadata=mark)
    free: Any = sync_client.crons.create("echo", schedule=YEARLY, metadata=mark)
    assert (bound["thread_id"], free["thread_id"]) == (thread, None)
    assert [cron["cron_id"] for cron in sync_client.crons.search(thread_id=thread)] == [bound["cron_id"]]
    changed: Any = sync_client.crons.update(free["cron_id"], enabled=False)
    assert changed["enabled"] is False
    assert sync_client.crons.count(metadata=mark) == 2
    sync_client.threads.delete(thread)
    assert sync_client.crons.count(metadata=mark) == 1
    sync_client.crons.delete(free["cron_id"])
