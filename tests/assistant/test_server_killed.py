"""`assent demo` and its calendar as processes of their own, over real sockets: what happens once happens once."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from anyio import to_thread
from fastmcp import FastMCP
from fastmcp.server.middleware import Middleware

from assent.assistant.calendar.server import create_server, http_app
from tests.assistant.calendars import served
from tests.assistant.events import events_in
from tests.cli.terminal import terminal
from tests.servers import ServerProcess, running
from tests.waiting import wait_until

STANDUP = "create a meeting called Standup tomorrow at 9am"
TALK = "killed"


class Held(Middleware):
    """Holds calls that change something before or after their effect, until it is told to let go."""

    def __init__(self, when: str) -> None:
        self._when = when
        self.arrived, self.let_go = threading.Event(), threading.Event()

    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        if context.message.name != "create_event":
            return await call_next(context)
        if self._when == "before":
            await self._hold()
        result = await call_next(context)
        if self._when == "after":
            await self._hold()
        return result

    async def _hold(self) -> None:
        self.arrived.set()
        await to_thread.run_sync(self.let_go.wait, 30)


class Demo:
    """A demo whose database outlives it, and the person beside it."""

    def __init__(self, folder: Path, **surroundings: str) -> None:
        database = f"sqlite:///{folder / 'demo.db'}"
        command = [sys.executable, "-m", "assent", "demo", "--port", "0", "--database", database]
        self.process = ServerProcess(command, surroundings)

    def post(self, path: str, **body: Any) -> httpx.Response:
        given = {"thread_id": TALK, **body}
        return httpx.post(f"{self.process.url}{path}", json=given, trust_env=False, timeout=30)

    def proposed(self) -> list[dict[str, Any]]:
        """The approval of what the assistant wants to do."""
        asked = self.post("/run", user_request=STANDUP)
        assert asked.status_code == 202, asked.text
        return [
            {"call_id": tool_call["call_id"], "approved": True}
            for tool_call in asked.json()["pending_action"]["tool_calls"]
        ]

    def thread(self) -> dict[str, Any]:
        query = {"metadata": {"assistant_thread_id": TALK}}
        [thread_listed] = httpx.post(
            f"{self.process.url}/threads/search", json=query, trust_env=False, timeout=30
        ).json()
        thread: dict[str, Any] = thread_listed
        return thread


def approved(demo: Demo, approvals: list[dict[str, Any]]) -> threading.Thread:
    """Approves in the background: whoever is killed never answers."""

    def approve() -> None:
        with pytest.raises(httpx.TransportError):
            demo.post("/resume", approvals=approvals)

    waiting = threading.Thread(target=approve)
    waiting.start()
    return waiting


@contextmanager
def calendar_at(server: FastMCP) -> Iterator[str]:
    with served(http_app(server)) as url:
        yield f"{url}/mcp"


@pytest.mark.promise("P2", "P4")
@pytest.mark.parametrize("when", ["before", "after"])
def test_kill_between_approval_and_tool_makes_one_event(tmp_path: Path, when: str) -> None:
    file, held = tmp_path / "calendar.db", Held(when)
    calendar = create_server(file)
    calendar.add_middleware(held)
    with calendar_at(calendar) as url:
        demo = Demo(tmp_path, ASSISTANT_MCP_URL=url)
        with running(demo.process):
            approvals = demo.proposed()
            waiting = approved(demo, approvals)
            assert held.arrived.wait(30)
            demo.process.kill()
            waiting.join(30)
        assert events_in(file) == ([("Standup", "09:00")] if when == "after" else [])
        held.let_go.set()
        with running(demo.process):
            wait_until(lambda: demo.thread()["status"] == "idle", "it does not go on")
            assert "Done: Standup" in str(demo.thread()["values"]["messages"][-1]["content"])
            assert demo.post("/resume", approvals=approvals).status_code == 409
    assert events_in(file) == [("Standup", "09:00")]


def test_control_without_a_kill_makes_one_event(tmp_path: Path) -> None:
    file, held = tmp_path / "calendar.db", Held("after")
    held.let_go.set()
    calendar = create_server(file)
    calendar.add_middleware(held)
    with calendar_at(calendar) as url:
        demo = Demo(tmp_path, ASSISTANT_MCP_URL=url)
        with running(demo.process):
            assert demo.post("/resume", approvals=demo.proposed()).json()["status"] == "success"
            assert held.arrived.is_set()
    assert events_in(file) == [("Standup", "09:00")]


@pytest.mark.promise("P4")
def test_three_identical_answers_at_once_make_one_event(tmp_path: Path) -> None:
    demo = Demo(tmp_path, ASSISTANT_CALENDAR=str(tmp_path / "calendar.db"))
    with running(demo.process), ThreadPoolExecutor(3) as people:
        for number in range(1, 4):
            approvals = demo.proposed()
            answers = [people.submit(demo.post, "/resume", approvals=approvals) for _ in range(3)]
            results = [answer.result() for answer in answers]
            assert sorted(response.status_code for response in results) == [200, 409, 409]
            winners = {response.json()["decision"]["id"] for response in results if response.status_code == 409}
            assert len(winners) == 1
            assert events_in(tmp_path / "calendar.db") == [("Standup", "09:00")] * number


@pytest.mark.promise("P2")
def test_call_of_a_tool_without_retries_is_in_doubt_with_the_inbox_link(tmp_path: Path) -> None:
    made: list[str] = []
    arrived, let_go = threading.Event(), threading.Event()
    server = FastMCP("letters")

    @server.tool(tags={"calendar"})
    async def create_event(start: str, name: str) -> dict[str, str]:
        """Add an event to the calendar."""
        made.append(name)
        arrived.set()
        await to_thread.run_sync(let_go.wait, 30)
        return {"event_id": "1"}

    with calendar_at(server) as url:
        demo = Demo(tmp_path, ASSISTANT_MCP_URL=url)
        with running(demo.process):
            key = {"x-api-key": demo.process.printed("reviewer key")}
            waiting = approved(demo, demo.proposed())
            assert arrived.wait(30)
            demo.process.kill()
            waiting.join(30)
        let_go.set()
        with running(demo.process):
            wait_until(lambda: demo.thread()["status"] == "interrupted", "it asks nobody")
            refused = demo.post("/run", user_request=STANDUP)
            action = refused.json()["pending_action"]
            assert (refused.status_code, action["kind"]) == (409, "other")
            assert "record its outcome in the inbox" in action["message"]
            assert demo.post("/resume", approvals=[]).json()["pending_action"] == action
            link = f"{demo.process.url}{action['url']}"
            with terminal(tmp_path, "chat", "--url", demo.process.url, "--thread", TALK) as person:
                person.expect("a decision in the inbox:", link, "Enter when it is decided: ")
                where = f"{demo.process.url}/api/inbox/items/{action['item_id']}/in-doubt"
                settled = httpx.post(where, json={"outcome": "done"}, headers=key, trust_env=False, timeout=30)
                assert settled.status_code == 200, settled.text
                person.type("")
                person.expect("assistant:\n  | ", "you> ")
    assert made == ["Standup"]
