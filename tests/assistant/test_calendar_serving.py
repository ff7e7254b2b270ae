"""The calendar as a process of its own, over HTTP and over stdio, and inside another application."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from assent.assistant.calendar.server import http_app, mounted
from tests.assistant.calendars import ERAS, LEGACY, Asked, calendar, calendar_process, call, refused, served
from tests.cli.command import execute
from tests.servers import running

DAY = "2026-11-17"


async def test_events_over_http_survive_a_kill(tmp_path: Path) -> None:
    """In both eras, with a form, and what was written is there when the process comes back."""
    process = calendar_process(tmp_path / "calendar.db")
    for number, era in enumerate(ERAS, 1):
        with running(process):
            endpoint = process.printed("MCP")
            assert endpoint == f"{process.url}/mcp"
            person = Asked({"people": 3})
            await call(endpoint, "book_room", era=era, person=person, start=f"{DAY}T10:00")
            events = await call(endpoint, "list_events", era=era, start_time=DAY)
            assert len(events["events"]) == number
            process.kill()


def test_sigterm_stops_the_calendar(tmp_path: Path) -> None:
    process = calendar_process(tmp_path / "deep" / "calendar.db")
    with running(process):
        assert process.stop() == 0
    assert (tmp_path / "deep" / "calendar.db").exists()


async def test_login_option_demands_a_login_for_calendar_tools(tmp_path: Path) -> None:
    process = calendar_process(tmp_path / "calendar.db", "--login", "on")
    with running(process):
        assert await call(f"{process.url}/mcp", "search_places", query="cafe")
        assert f"{process.url}/auth/connect/" in await refused(f"{process.url}/mcp", "list_calendars")


@pytest.mark.parametrize("era", ERAS)
async def test_calendar_over_stdio_lists_and_runs_its_tools(tmp_path: Path, era: Any) -> None:
    file = tmp_path / "calendar.db"
    arguments = ["-m", "assent", "calendar", "--stdio", "--database", f"sqlite:///{file}"]
    transport = StdioTransport(sys.executable, arguments, env=dict(os.environ), cwd=str(tmp_path))
    async with Client(transport, mode=era, elicitation_handler=Asked({"people": 2})) as client:
        assert len(await client.list_tools()) == 8
        made = await client.call_tool("create_event", {"start": f"{DAY}T09:00", "name": "Standup"})
        await client.call_tool("book_room", {"start": f"{DAY}T10:00"})
        wrong = await client.call_tool("create_event", {"start": "x", "name": "y"}, raise_on_error=False)
        events = await client.call_tool("list_events", {"start_time": DAY})
    assert wrong.is_error
    assert made.structured_content
    assert events.structured_content
    assert [event["name"] for event in events.structured_content["events"]] == ["Standup", "Meeting"]
    assert file.exists()


@pytest.mark.parametrize(
    "arguments", [("--stdio", "--login", "on"), ("--database", "postgresql://x/y"), ("--database", "")]
)
def test_invalid_options_are_refused_in_one_line(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    result = execute(tmp_path, "calendar", *arguments)
    assert (result.code, result.out) == (3, "")
    assert result.err.startswith("assent: ")
    assert "Traceback" not in result.err


def test_other_commands_do_not_import_fastmcp() -> None:
    code = "import sys, assent.surfaces.cli.main as m; m.application(); sys.exit('fastmcp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


class TestInsideAnotherApplication:
    @pytest.fixture
    def parent(self, tmp_path: Path) -> FastAPI:
        @asynccontextmanager
        async def lifespan(app: FastAPI) -> Any:
            async with mounted(app, calendar(tmp_path, login=True), allowed_hosts=["calendar.example"]):
                yield

        return FastAPI(lifespan=lifespan)

    async def test_mounted_tools_and_pages_are_below_the_path(self, parent: FastAPI) -> None:
        with served(parent) as url:
            assert await call(f"{url}/calendar/mcp", "search_places", query="cafe")
            text = await refused(f"{url}/calendar/mcp", "list_calendars")
            link = text[text.index(f"{url}/calendar/auth/connect/") :].split()[0]
            async with httpx.AsyncClient(trust_env=False, timeout=30) as browser:
                page = (await browser.get(link)).text
                assert 'href="/calendar/auth/callback?state=' in page
                state = page.split("callback?state=")[1].split('"')[0]
                assert "close this tab" in (await browser.get(f"{url}/calendar/auth/callback?state={state}")).text
            assert await call(f"{url}/calendar/mcp", "list_calendars", era=LEGACY)

    @pytest.mark.parametrize(
        ("headers", "status"),
        [
            ({}, 200),
            ({"Host": "calendar.example"}, 200),
            ({"Host": "rebound.example"}, 421),
            ({"Origin": "https://elsewhere.example"}, 403),
        ],
    )
    def test_unknown_hosts_and_origins_are_refused(self, parent: FastAPI, headers: dict[str, str], status: int) -> None:
        with served(parent) as url:
            assert httpx.get(f"{url}/calendar/ok", headers=headers).status_code == status

    def test_control_without_protection_unknown_hosts_are_accepted(self, tmp_path: Path) -> None:
        with served(calendar(tmp_path).http_app()) as url:
            assert httpx.get(f"{url}/ok", headers={"Host": "rebound.example"}).status_code == 200
        with served(http_app(calendar(tmp_path))) as url:
            assert httpx.get(f"{url}/ok", headers={"Host": "rebound.example"}).status_code == 421
