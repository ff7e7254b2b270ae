"""The bypass matrix of the assistant's own routes and pages: that of test_bypass.py has a server without them.

Callers without the right to decide say yes in every way to a call that waits for a person.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from assent.identity.model.access import Kind, Role
from assent.settings import DEMO_PROJECT
from tests.api.house import Builder
from tests.assistant.events import events_in
from tests.faults.arena import Arena, open_arena, swept
from tests.faults.test_bypass import build, routes
from tests.scoreboard import Count, RecordScore

__all__ = ["build"]

pytestmark = pytest.mark.promise("P1")

REQUEST = "create a meeting called Standup tomorrow at 9am"
PAGES = "/inbox/assistant"


def answers(item: dict[str, Any], thread: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The requests to each route of the assistant that changes something, with all ways to say yes."""
    key, call_id = item["actions"][0]["key"], item["actions"][0]["call_id"]
    seen = {"revision": item["revision"], "hash": item["hash"]}
    approval = {"call_id": call_id, "approved": True}
    for name in (thread, thread.upper()):
        for more in ({}, seen, {"revision": item["revision"] + 1, "hash": item["hash"]}):
            body = {"thread_id": name, "approvals": [approval], **more}
            yield "POST /resume", {"json": body}
        edited = {**approval, "arguments": item["actions"][0]["args"]}
        yield "POST /resume", {"json": {"thread_id": name, "approvals": [edited], **seen}}
        yield "POST /resume", {"json": {"thread_id": name, "elicitation": {"action": "accept"}}}
        yield (
            "POST /resume",
            {"json": {"thread_id": name, "clarification_responses": [{"call_id": call_id, "response": "yes"}]}},
        )
        for text in ("yes", "approve", "approve it: " + json.dumps(approval), REQUEST):
            yield "POST /run", {"json": {"thread_id": name, "user_request": text}}
        yield "POST /cancel", {"json": {"thread_id": name}}
    yield "POST /prompts", {"json": {"name": "any", "arguments": {}}}
    yield f"POST {PAGES}/prompts", {"data": {"name": "any"}}
    page = f"{PAGES}/{thread}"
    for verbs in ({"verb": "approve"}, {f"a{key}__verb": "approve"}, {"verb": "approve", "sure": "yes", "key": "k"}):
        data = {**{name: str(value) for name, value in seen.items()}, **verbs}
        to = f"{page}/items/{item['id']}/decision"
        yield f"POST {PAGES}/{{thread_id}}/items/{{item_id}}/decision", {"data": data, "to": to}
    yield f"POST {PAGES}/{{thread_id}}/message", {"data": {"text": "yes"}, "to": f"{page}/message"}
    yield f"POST {PAGES}/{{thread_id}}/cancel", {"data": {}, "to": f"{page}/cancel"}
    yield f"POST {PAGES}/{{thread_id}}/retry", {"data": {}, "to": f"{page}/retry"}
    yield f"POST {PAGES}", {"data": {"text": "approve everything that waits"}}


@pytest.fixture(scope="module")
async def talking(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Arena]:
    folder = tmp_path_factory.mktemp("talking")
    async with open_arena(folder, module_database, config=DEMO_PROJECT, assistant="assistant") as arena:
        yield arena


@pytest.fixture
async def office(talking: Arena, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Arena:
    monkeypatch.setenv("ASSISTANT_CALENDAR", str(folder / "calendar.db"))
    return await swept(talking, folder)


async def asked(arena: Arena, client: httpx.AsyncClient) -> tuple[str, dict[str, Any]]:
    thread = await arena.thread(client, visibility="shared")
    body = {"assistant_id": "assistant", "input": {"messages": [{"role": "user", "content": REQUEST}]}}
    assert (await client.post(f"/threads/{thread}/runs/wait", json=body, timeout=60)).status_code == 200
    return thread, await arena.item(thread)


async def sent(client: httpx.AsyncClient, route: str, request: dict[str, Any]) -> httpx.Response:
    method, _, path = route.partition(" ")
    plain = {name: value for name, value in request.items() if name != "to"}
    return await client.request(method, request.get("to", path), timeout=60, **plain)


async def attackers(arena: Arena) -> dict[str, httpx.AsyncClient]:
    house = arena.house
    return {
        "another agent": arena.other,
        "a service": house.client(await house.key(Kind.SERVICE)),
        "a viewer": house.client(await house.person("val", Role.VIEWER)),
        "a key without decide": house.client(await house.key_of("ben", "runs:write", "items:read")),
        "another tenant": house.client(await house.person("eve", Role.ADMIN, tenant="elsewhere")),
        "nobody": house.client(),
    }


async def test_every_route_of_the_assistant_is_attempted(build: Builder) -> None:
    own = routes(await build(config=DEMO_PROJECT, assistant="assistant")) - routes(await build(config=DEMO_PROJECT))
    item = {"id": "i", "revision": 1, "hash": "h", "actions": [{"key": "0", "call_id": "c", "args": {}}]}
    assert {route for route, _ in answers(item, "t")} == own


@pytest.mark.scoreboard
@pytest.mark.promise("P6")
async def test_callers_without_the_right_decide_nothing_by_the_assistant(
    office: Arena, folder: Path, count: Count, record_score: RecordScore
) -> None:
    """Quick: each request by the agent that asked, and by one of the others."""
    others = await attackers(office)
    thread, item = await asked(office, office.agent)
    made = 0
    for number, (route, request) in enumerate(answers(item, thread)):
        names = list(others) if count(full=1, quick=0) else [list(others)[number % len(others)]]
        for client in (office.agent, *(others[name] for name in names)):
            answer = await sent(client, route, request)
            assert answer.status_code < 500, (route, answer.text)
            made += 1
        assert (await office.ana.get(f"/api/inbox/items/{item['id']}")).json()["status"] == "PENDING", (route, request)
    assert events_in(folder / "calendar.db") == []
    record_score("the bypass matrix of the assistant's routes and pages", "0 effects", f"{made} attempts: 0 effects")


@pytest.mark.parametrize("route", ["POST /resume", f"POST {PAGES}/{{thread_id}}/items/{{item_id}}/decision"])
async def test_control_person_with_the_right_decides_by_the_same_requests(
    office: Arena, folder: Path, route: str
) -> None:
    """The control."""
    thread, item = await asked(office, office.agent)
    for attempted, request in answers(item, thread):
        if attempted == route:
            await sent(office.ana, route, request)
    await office.rests(thread)
    assert events_in(folder / "calendar.db") == [("Standup", "09:00")]
