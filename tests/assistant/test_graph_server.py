"""The assistant under the server, as the demo names it: people decide in the inbox, the server keeps the grants."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from assent.assistant.calendar.server import create_server, http_app
from assent.identity.model.access import operator
from assent.settings import DEMO_PROJECT, Mode
from tests.api.conftest import build
from tests.api.house import LOOPBACK, Builder
from tests.assistant.calendars import served
from tests.assistant.desk import Aviary
from tests.assistant.events import events_in
from tests.assistant.models import Allowing, Scripted, call, calls

__all__ = ["build"]


class Office:
    def __init__(self, agent: httpx.AsyncClient, ana: httpx.AsyncClient, file: Path) -> None:
        self.agent, self.ana, self.file = agent, ana, file
        self.thread = ""

    async def say(self, text: str) -> dict[str, Any]:
        self.thread = (await self.agent.post("/threads", json={})).json()["thread_id"]
        body = {"assistant_id": "assistant", "input": {"messages": [{"role": "user", "content": text}]}}
        response = await self.agent.post(f"/threads/{self.thread}/runs/wait", json=body, timeout=60)
        assert response.status_code == 200, response.text
        return await self.item()

    async def item(self) -> dict[str, Any]:
        """The one that waits."""
        listed_items = (await self.ana.get("/api/inbox/items", params={"filter": "is:pending"})).json()["items"]
        assert len(listed_items) == 1, listed_items
        item: dict[str, Any] = (await self.ana.get(f"/api/inbox/items/{listed_items[0]['id']}")).json()
        return item

    async def decide(self, item: dict[str, Any], **said: Any) -> httpx.Response:
        verdicts = [{"key": action["key"], **said} for action in item["actions"]]
        body = {"revision": item["revision"], "hash": item["hash"], "actions": verdicts}
        return await self.ana.post(f"/api/inbox/items/{item['id']}/decision", json=body)

    async def settled(self) -> dict[str, Any]:
        with anyio.fail_after(30):
            while True:
                thread: dict[str, Any] = (await self.agent.get(f"/threads/{self.thread}")).json()
                if thread["status"] in ("idle", "error"):
                    return thread
                await anyio.sleep(0.05)

    @property
    def events(self) -> list[tuple[str, str]]:
        connection = sqlite3.connect(self.file)
        event_rows = connection.execute("SELECT name, substr(start, 12, 5) FROM events ORDER BY starts_at").fetchall()
        connection.close()
        return event_rows


@pytest.fixture
async def office(build: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Office:
    monkeypatch.setenv("ASSISTANT_CALENDAR", str(tmp_path / "calendar.db"))
    house = await build(Mode.SERVE, config=DEMO_PROJECT)
    agent, ana = house.client(await house.key()), house.client(await house.person("ana"))
    return Office(agent, ana, tmp_path / "calendar.db")


@pytest.mark.promise("P1", "ASST-40")
async def test_call_approved_in_the_inbox_runs_once(office: Office) -> None:
    item = await office.say("create a meeting called Standup tomorrow at 9am")
    assert (item["gated"], item["dialect"], item["type"]) == (True, "confirmation", "tool")
    assert office.events == []
    first = await office.decide(item, verb="approve")
    others = [await office.decide(item, verb="approve") for _ in range(2)]
    assert [first.status_code, *(other_item.status_code for other_item in others)] == [200, 409, 409]
    assert (await office.settled())["status"] == "idle"
    assert office.events == [("Standup", "09:00")]


async def test_call_edited_in_the_inbox_runs_as_edited(office: Office) -> None:
    item = await office.say("create a meeting called Standup tomorrow at 9am")
    args = {**item["actions"][0]["args"], "name": "Stand-up"}
    assert (await office.decide(item, verb="edit", args=args)).status_code == 200
    assert (await office.settled())["status"] == "idle"
    assert office.events == [("Stand-up", "09:00")]


@pytest.mark.promise("P6")
async def test_an_agent_cannot_approve_by_resuming(office: Office) -> None:
    item = await office.say("create a meeting called Standup tomorrow at 9am")
    state = (await office.agent.get(f"/threads/{office.thread}/state")).json()
    [pause] = state["tasks"][0]["interrupts"]
    answer = {"approvals": [{"call_id": item["actions"][0]["call_id"], "approved": True}]}
    body = {"assistant_id": "assistant", "command": {"resume": {pause["id"]: answer}}}
    response = await office.agent.post(f"/threads/{office.thread}/runs/wait", json=body)
    assert response.status_code == 403
    assert office.events == []


async def test_question_can_be_answered_in_the_inbox(office: Office) -> None:
    item = await office.say("schedule something")
    assert item["dialect"] == "clarification"
    texts = {"verb": "respond", "message": "a meeting tomorrow at 3pm"}
    assert (await office.decide(item, **texts)).status_code == 200
    with anyio.fail_after(30):
        while (next_item := await _next(office))["dialect"] != "confirmation":  # noqa: ASYNC110 - it moves in the server
            await anyio.sleep(0.05)
    assert (await office.decide(next_item, verb="approve")).status_code == 200
    assert (await office.settled())["status"] == "idle"
    assert [at for _, at in office.events] == ["15:00"]


async def _next(office: Office) -> dict[str, Any]:
    listed_items = (await office.ana.get("/api/inbox/items", params={"filter": "is:pending"})).json()["items"]
    return await office.item() if listed_items else {"dialect": None}


async def test_item_asked_by_the_policy_is_linked_and_continues_after_the_decision(
    build: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSISTANT_CALENDAR", str(tmp_path / "calendar.db"))
    house = await build(Mode.SERVE, config=DEMO_PROJECT, assistant="assistant")
    rule = {"name": "look", "tool": "list_events", "then": "ask"}
    await house.services.policies.put(operator(), {"rules": [rule], "default": "advise"})
    ana = house.client(await house.person("ana"))
    office = Office(ana, ana, tmp_path / "calendar.db")
    question = {"thread_id": "looking", "user_request": "what's on my calendar tomorrow?"}
    asked = await ana.post("/run", json=question, timeout=60)
    item = await office.item()
    assert (asked.status_code, asked.json()["status"]) == (202, "decision_required")
    assert asked.json()["url"] == f"{LOOPBACK}/inbox/{item['id']}"
    action = asked.json()["pending_action"]
    assert (action["kind"], action["item_id"], action["title"]) == ("other", item["id"], "list_events")
    again = await ana.post("/run", json=question, timeout=60)
    assert (again.status_code, again.json()["pending_action"]) == (409, action)
    refused = await ana.post("/resume", json={"thread_id": "looking", "approvals": []})
    assert (refused.status_code, refused.json()["pending_action"]) == (409, action)
    assert (await office.decide(item, verb="approve")).status_code == 200
    office.thread = item["source"]["thread_id"]
    thread = await office.settled()
    assert "Nothing is in the calendar tomorrow" in str(thread["values"]["messages"][-1]["content"])


@pytest.mark.promise("P4")
async def test_answer_to_an_unreachable_server_can_be_given_again(
    build: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "calendar.db"
    house = await build(Mode.SERVE, config=DEMO_PROJECT, assistant="assistant")
    ana = house.client(await house.person("ana"))
    with served(http_app(create_server(file))) as url:
        monkeypatch.setenv("ASSISTANT_MCP_URL", f"{url}/mcp")
        request = {"thread_id": "t", "user_request": "create a meeting called Standup tomorrow at 9am"}
        asked = (await ana.post("/run", json=request, timeout=60)).json()["pending_action"]
    [call] = asked["tool_calls"]
    answer = {"thread_id": "t", "approvals": [{"call_id": call["call_id"], "approved": True}]}
    failed = await ana.post("/resume", json=answer, timeout=60)
    assert (failed.status_code, failed.json()["code"]) == (502, "assistant_failed")
    other = {"thread_id": "t", "approvals": [{"call_id": call["call_id"], "approved": False, "feedback": "no"}]}
    assert (await ana.post("/resume", json=other)).status_code == 409
    assert (await ana.post("/resume", json=answer, timeout=60)).status_code == 502
    with served(http_app(create_server(file))) as url:
        monkeypatch.setenv("ASSISTANT_MCP_URL", f"{url}/mcp")
        again = await ana.post("/resume", json=answer, timeout=60)
        assert (again.status_code, again.json()["status"]) == (200, "success")
        assert (await ana.post("/resume", json=answer, timeout=60)).status_code == 409
    assert events_in(file) == [("Standup", "09:00")]


@pytest.mark.parametrize("limit", ["60s", "1s"], ids=["lost", "too slow"])
async def test_call_without_a_known_outcome_is_shown_as_a_doubt_with_its_link(
    build: Builder, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setenv("ASSISTANT_MCP_TIMEOUTS", json.dumps({"ponder": limit}))
    aviary = Aviary()
    aviary.hangs = True
    house = await build(Mode.SERVE, config=DEMO_PROJECT, assistant="assistant")
    ana = house.client(await house.person("ana"))
    scripted = Scripted(script=[calls(call("ponder", bird="tit"))])
    monkeypatch.setattr("assent.assistant.graph.executor_model", lambda _: scripted)
    monkeypatch.setattr("assent.assistant.graph.router_model", lambda _: Allowing(types=["birds"]))
    request = {"thread_id": "t", "user_request": "ponder the tit"}
    with served(aviary.server.http_app(path="/mcp")) as url:
        monkeypatch.setenv("ASSISTANT_MCP_URL", f"{url}/mcp")
        [asked] = (await ana.post("/run", json=request, timeout=60)).json()["pending_action"]["tool_calls"]
        answer = {"thread_id": "t", "approvals": [{"call_id": asked["call_id"], "approved": True}]}
        resuming = asyncio.ensure_future(ana.post("/resume", json=answer, timeout=60))
        with anyio.fail_after(30):
            while not aviary.done:  # noqa: ASYNC110 - it happens in the MCP server
                await anyio.sleep(0.02)
        if limit != "60s":
            await resuming
    first = await resuming
    [doubt] = (await ana.get("/api/inbox/items", params={"filter": "is:in-doubt"})).json()["items"]
    link = f"{LOOPBACK}/inbox/{doubt['id']}"
    assert (first.status_code, first.json()["status"], first.json()["url"]) == (202, "decision_required", link)
    assert "record its outcome" in first.json()["message"]
    again = await ana.post("/resume", json=answer)
    assert (again.status_code, again.json()["pending_action"]["item_id"]) == (409, doubt["id"])
    assert "record its outcome" in again.json()["message"]


async def test_changed_arguments_are_checked_before_they_are_approved(office: Office) -> None:
    item = await office.say("create a meeting called Standup tomorrow at 9am")
    args = {**item["actions"][0]["args"], "duration_minutes": "long"}
    refused = await office.decide(item, verb="edit", args=args)
    assert (refused.status_code, refused.json()["errors"][0]["path"]) == (422, "actions[0].args.duration_minutes")
    assert (await office.item())["status"] == "PENDING"


async def test_change_names_its_event(build: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSISTANT_CALENDAR", str(tmp_path / "calendar.db"))
    house = await build(Mode.SERVE, config=DEMO_PROJECT, assistant="assistant")
    ana = house.client(await house.person("ana"))
    request = {"thread_id": "t", "user_request": "create a meeting called Standup tomorrow at 9am"}
    [call] = (await ana.post("/run", json=request, timeout=60)).json()["pending_action"]["tool_calls"]
    assert "description" not in call
    answer = {"thread_id": "t", "approvals": [{"call_id": call["call_id"], "approved": True}]}
    assert (await ana.post("/resume", json=answer, timeout=60)).status_code == 200
    request = {"thread_id": "u", "user_request": "move the standup to 10am"}
    [call] = (await ana.post("/run", json=request, timeout=60)).json()["pending_action"]["tool_calls"]
    assert call["description"].startswith("“Standup”, now at 20")
    edited = [{"call_id": call["call_id"], "approved": True, "arguments": {**call["arguments"], "start": 5}}]
    refused = await ana.post("/resume", json={"thread_id": "u", "approvals": edited}, timeout=60)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["path"] == "approvals[0].arguments.start"
    [item] = (await ana.get("/api/inbox/items", params={"filter": "is:pending"})).json()["items"]
    assert item["status"] == "PENDING"


async def test_unreachable_server_is_reported_and_the_thread_stays_usable(
    build: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSISTANT_CALENDAR", str(tmp_path / "calendar.db"))
    monkeypatch.setenv("ASSISTANT_MCP_URL", "http://127.0.0.1:9/mcp")
    house = await build(Mode.SERVE, config=DEMO_PROJECT, assistant="assistant")
    ana = house.client(await house.person("ana"))
    request = {"thread_id": "t", "user_request": "create a meeting called Standup tomorrow at 9am"}
    failed = await ana.post("/run", json=request, timeout=60)
    assert (failed.status_code, failed.json()["code"]) == (502, "assistant_failed")
    assert "the MCP server that it needs does not answer" in failed.json()["message"]
    assert "127.0.0.1:9" not in failed.text
    attempts = await house.services.store.read(None, lambda tx: tx.sql("SELECT attempt FROM runs").all())
    assert [tuple(row) for row in attempts] == [(1,)]
    monkeypatch.delenv("ASSISTANT_MCP_URL")
    assert (await ana.post("/run", json=request, timeout=60)).json()["status"] == "confirmation_required"
