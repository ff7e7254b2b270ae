"""Servers that announce their questions by a webhook: these appear without waiting for the next search."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from assent.federation import sync
from assent.settings import Mode
from tests.api.house import Builder
from tests.federation.desk import Desk, begun
from tests.receiver import receiving
from tests.waiting import until

Json = dict[str, Any]
SENDERS = [("langgraph", "sqlite"), ("langgraphjs", "sqlite"), ("assent", "sqlite"), ("assent", "postgres")]


@pytest.mark.parametrize(("server_url", "build_on_both"), SENDERS, indirect=True)
async def test_announced_question_is_an_item_without_a_search_by_time(
    build_on_both: Builder, server_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_SOON", "_LATEST"):
        monkeypatch.setattr(sync, name, 3600.0)
    desk = await Desk.at(await build_on_both(Mode.DEV))
    added = await desk.add(server_url, graphs=["asking"])
    async with announced(desk, added) as webhook:
        await searched(desk, added)
        silent, told = [
            await begun(server_url, "asking", {"questions": [f"{name}?"]}, webhook=address)
            for name, address in (("silent", None), ("told", webhook))
        ]
        await desk.item_of(added, told)
        await desk.item_of(added, silent)  # the search shows all
    assert (await desk.deployment(added["id"]))["called_at"] is not None


@pytest.mark.parametrize("build_on_both", ["postgres"], indirect=True)
async def test_call_to_another_process_reaches_the_one_that_follows(
    build_on_both: Builder, assent_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_SOON", "_LATEST"):
        monkeypatch.setattr(sync, name, 3600.0)
    desk = await Desk.at(await build_on_both(Mode.DEV))
    added = await desk.add(assent_url, graphs=["asking"])
    other = await build_on_both(Mode.DEV, database=desk.house.settings.database)
    webhook = (await desk.admin.post(f"/api/deployments/{added['id']}/webhook")).json()["url"]
    await searched(desk, added)
    thread_id = await begun(assent_url, "asking", {"questions": ["told elsewhere?"]})
    assert (await other.client().post(webhook)).status_code == 204
    await desk.item_of(added, thread_id)


async def searched(desk: Desk, added: Json) -> None:
    """Waits for the search that follows the last change of the deployment; the next one is hours away."""

    async def noted() -> bool:
        shown = await desk.deployment(added["id"])
        return bool(shown["synced_at"] and shown["synced_at"] > shown["updated_at"])

    await until(noted, "the deployment is not followed")


@asynccontextmanager
async def announced(desk: Desk, added: Json) -> AsyncIterator[str]:
    """The address of the deployment's webhook on a real socket."""
    made = await desk.admin.post(f"/api/deployments/{added['id']}/webhook")
    assert made.status_code == 201, made.text
    path = made.json()["url"].removeprefix(str(desk.admin.base_url))
    async with receiving() as receiver:

        async def forward() -> None:
            calls, anybody = 0, desk.house.client()
            while True:
                call = (await receiver.has(calls + 1))[calls]
                assert (await anybody.post(call.path, content=call.content)).status_code == 204
                calls += 1

        forwarding = asyncio.create_task(forward())
        yield f"{receiver.url}{path}"
        forwarding.cancel()
        with suppress(asyncio.CancelledError):
            await forwarding
