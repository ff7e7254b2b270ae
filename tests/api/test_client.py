"""The Python client against the real app: create, wait, decide; retries that do nothing twice; a light import."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, get_type_hints

import httpx
import pytest

from assent.client import AsyncInbox, Comment, Event, Item, inbox
from assent.client.views import Decision, Summary
from assent.errors import AlreadyDecided, Forbidden, NotFound, StaleRevision, Unavailable
from tests.api.house import LOOPBACK, Builder
from tests.api.reviewing import Office, open_office


@pytest.fixture(scope="module")
async def office(tmp_path_factory: pytest.TempPathFactory, migrated_file: Path) -> AsyncIterator[Office]:
    folder = tmp_path_factory.mktemp("client")
    async with AsyncExitStack() as stack:
        yield await open_office(Builder(folder, migrated_file, stack))


def client(office: Office, of: httpx.AsyncClient, transport: httpx.AsyncBaseTransport | None = None) -> AsyncInbox:
    over = transport or httpx.ASGITransport(office.house.app, client=("127.0.0.1", 40000))
    return AsyncInbox(LOOPBACK, of.headers["x-api-key"], transport=over)


async def test_a_service_creates_waits_and_a_person_decides(office: Office) -> None:
    service, ana = client(office, office.agent), client(office, office.ana)
    item = await service.create("deploy", "Deploy the ledger", payload={"to": "prod"}, dedupe_key="deploy-2.1")
    assert (await service.create("deploy", "Deploy the ledger", dedupe_key="deploy-2.1"))["id"] == item["id"]
    waiting = asyncio.create_task(service.wait(item["id"], timeout=30))
    assert [listed["id"] async for listed in ana.list("is:pending ledger")] == [item["id"]]
    await ana.comment(item["id"], "at night, please")
    await ana.request_revision(item, "say when")
    sent_back = await waiting
    assert (sent_back["status"], sent_back["decisions"][-1]["notes"]) == ("REVISION_REQUESTED", "say when")
    revised = await service.resubmit(item["id"], payload={"to": "prod", "at": "02:00"})
    with pytest.raises(StaleRevision) as stale:
        await ana.approve(item)
    assert stale.value.extra["revision"] == 2
    waiting = asyncio.create_task(service.wait(item["id"], timeout=30))
    await ana.approve(revised, notes="go")
    assert (await waiting)["status"] == "APPROVED"
    with pytest.raises(AlreadyDecided) as late:
        await ana.reject(revised, "no")
    assert late.value.extra["decision"]["notes"] == "go"
    assert [event["kind"] for event in await service.timeline(item["id"])][-1] == "item.approved"
    assert len(await service.revisions(item["id"])) == 2
    assert [comment["text"] for comment in await service.comments(item["id"])] == ["at night, please"]


async def test_wait_polls_where_the_server_offers_no_events(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "_POLL_SECONDS", 0.05)
    monkeypatch.setattr(inbox, "EVENTS", "/api/inbox/nothing")
    service, ana = client(office, office.agent), client(office, office.ana)
    item = await service.create("deploy", "Without events")
    waiting = asyncio.create_task(service.wait(item["id"], timeout=30))
    await ana.reject(item, "no")
    assert (await waiting)["status"] == "REJECTED"


async def test_wait_gives_up_after_its_time(office: Office) -> None:
    service = client(office, office.agent)
    item = await service.create("deploy", "Nobody comes")
    with pytest.raises(TimeoutError, match=f"item {item['id']} is not decided after 0.05 seconds"):
        await service.wait(item["id"], timeout=0.05)


async def test_wait_outlasts_the_grace_period(office: Office) -> None:
    """A decision that is undone in time is none."""
    service, ana = client(office, office.agent), client(office, office.ana)
    item = await service.create("deploy", "Too early")
    await ana.decide(item, "approve", grace_seconds=60)
    with pytest.raises(TimeoutError):
        await service.wait(item["id"], timeout=0.2)
    await ana.undo(item["id"])
    await ana.reject(await ana.get(item["id"]), "no")
    assert (await service.wait(item["id"], timeout=30))["status"] == "REJECTED"


async def test_agents_collaborate_and_do_not_decide(office: Office) -> None:
    agent, thread = client(office, office.agent), await office.thread()
    item = await agent.create("deploy", "Advise me")
    assert (await agent.claim(item["id"]))["claim"]
    assert (await agent.release(item["id"]))["claim"] is None
    assert (await agent.recommend(item, "approve", "tests pass"))["text"].endswith("tests pass")
    assert (await agent.link(item["id"], thread))["links"] == [thread]
    assert (await agent.unlink(item["id"], thread))["links"] == []
    with pytest.raises(Forbidden):
        await agent.approve(item)
    with pytest.raises(NotFound):
        await agent.get("0197c5a0-0000-7000-8000-000000000000")
    assert (await agent.cancel(item["id"], notes="changed my mind"))["status"] == "CANCELLED"


class Unreliable(httpx.AsyncBaseTransport):
    """Loses every first answer after the server has acted."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner, self.lost = inner, set[str]()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._inner.handle_async_request(request)
        name = f"{request.method} {request.url.path}"
        if name not in self.lost:
            self.lost.add(name)
            await response.aread()
            raise httpx.ReadError("connection reset", request=request)
        return response


async def test_lost_answers_are_retried_and_nothing_happens_twice(office: Office) -> None:
    inner = httpx.ASGITransport(office.house.app, client=("127.0.0.1", 40000))
    service = client(office, office.agent, Unreliable(inner))
    item = await service.create("deploy", "Only once, please")
    await service.comment(item["id"], "once")
    assert [comment["text"] for comment in await service.comments(item["id"])] == ["once"]
    assert len(await office.items("Only once, please")) == 1


async def test_an_unreachable_server_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assent.client.connection._PAUSES_SECONDS", (0.0,))
    with pytest.raises(Unavailable, match="does not answer"):
        await AsyncInbox("http://127.0.0.1:1", "asnt_agent_x").get("x")


def has_fields(real: dict[str, Any], kind: type) -> None:
    assert set(get_type_hints(kind)) <= real.keys(), kind


async def test_types_are_those_of_real_responses(office: Office) -> None:
    service, ana = client(office, office.agent), client(office, office.ana)
    item = await service.create("deploy", "Typed")
    decided = await ana.approve(item)
    has_fields(dict(decided), Item)
    has_fields(dict(decided["decisions"][0]), Decision)
    has_fields(dict((await ana.page("Typed"))["items"][0]), Summary)
    has_fields(dict(await ana.comment(item["id"], "x")), Comment)
    has_fields(dict((await ana.timeline(item["id"]))[0]), Event)


def test_the_import_loads_no_server() -> None:
    heavy = "{'fastapi', 'starlette', 'sqlalchemy', 'langgraph', 'langchain_core', 'pydantic', 'typer'}"
    code = f"import sys, assent.client; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
