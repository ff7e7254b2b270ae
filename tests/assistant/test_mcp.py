"""The MCP client in both eras: forms and logins become questions to a person, and outlive both sides."""

from __future__ import annotations

import asyncio
import sys
import traceback
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastmcp import FastMCP
from fastmcp.tools.base import ToolResult
from mcp_types import BlobResourceContents, EmbeddedResource, ImageContent, ResourceLink, TextResourceContents
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from assent import LocalInbox
from assent.assistant.calendar.server import create_server, http_app
from assent.assistant.failures import McpFailed, McpLost, McpRefused
from assent.assistant.mcp.client import McpClient
from assent.assistant.mcp.configured import create_client
from assent.assistant.mcp.faults import unreachable
from assent.assistant.mcp.questions import Asked
from assent.assistant.mcp.servers import McpServers
from assent.assistant.mcp.targets import server_at
from assent.errors import ConfigError
from assent.review.model.questions import Verb, Verdict
from assent.settings import read_assistant_settings
from tests.assistant.calendars import ERAS, calendar_process, served
from tests.assistant.conftest import Opener
from tests.assistant.desk import Aviary, Desk, client_of, every_call_is_answered_once, nodes_of
from tests.assistant.models import call, calls

eras = pytest.mark.parametrize("era", ERAS)
ACCEPT, DECLINE = Verdict("0", Verb.ACCEPT), Verdict("0", Verb.DECLINE)
NEW = {"start": "2030-01-01T09:00:00+00:00", "name": "Standup"}
ROOM = {"start": "2030-01-01T09:00:00+00:00", "name": "Review"}


async def connect(link: str) -> None:
    """What the person does in a browser: opens the link, and agrees."""
    async with httpx.AsyncClient(trust_env=False, timeout=30) as browser:
        page = await browser.get(link)
        href = page.text.rpartition('href="')[2].partition('"')[0]
        agreed = await browser.get(httpx.URL(link).join(href))
        assert "close this tab" in agreed.text


async def events(server: FastMCP, mode: str = "auto") -> list[str]:
    client = client_of(server, mode)
    listed_events = await client.call("list_events", {"start_time": "2030-01-01"})
    await client.close()
    return [event["name"] for event in listed_events.structured["events"]]


class TestForms:
    @eras
    async def test_form_pauses_the_run_and_its_answer_continues_the_call(
        self, desk: Opener, aviary: Aviary, era: str
    ) -> None:
        there = desk(calls(call("nest", bird="wren")), mode=era)
        await there.say("build")
        form = await there.approve()
        assert (form["kind"], form["message"]) == ("form_elicitation", "How large?")
        assert form["schema"]["properties"] == {"size": {"type": "integer"}}
        assert await there.answer(Verdict("0", Verb.ACCEPT, args={"size": 3})) is None
        assert aviary.done == [("nest", ("wren", 3))]
        [grant] = there.grants()
        assert grant.status == "done"
        assert every_call_is_answered_once(there.messages)

    @eras
    async def test_declined_form_ends_the_call(self, desk: Opener, aviary: Aviary, era: str) -> None:
        there = desk(calls(call("nest", bird="wren")), mode=era)
        await there.say("build")
        await there.approve()
        assert await there.answer(DECLINE) is None
        assert aviary.done == []
        assert "no nest: decline" in str(there.messages[-2].content)

    @eras
    async def test_each_call_gets_its_own_answer(self, desk: Opener, aviary: Aviary, era: str) -> None:
        there = desk(calls(call("nest", bird="wren"), call("feed", bird="tit"), call("nest", bird="owl")), mode=era)
        await there.say("build")
        await there.answer(*(Verdict(str(n), Verb.APPROVE) for n in range(3)))
        assert await there.answer(Verdict("0", Verb.ACCEPT, args={"size": 3})) is None
        # Both calls ask the same, so one answer is the answer to both; what was made before is not made again.
        assert sorted(aviary.done, key=str) == [("feed", "tit"), ("nest", ("owl", 3)), ("nest", ("wren", 3))]
        assert every_call_is_answered_once(there.messages)

    @eras
    async def test_client_matches_answers_by_key(self, aviary: Aviary, era: str) -> None:
        client = client_of(aviary.server, era)
        with pytest.raises(Asked) as asked:
            await client.call("nest", {"bird": "wren"})
        paused, [key] = asked.value.paused, asked.value.questions
        other = {"something else": {"action": "accept", "content": {"size": 1}}}
        with pytest.raises(Asked):
            await client.call("nest", {"bird": "wren"}, paused, other)
        mine = {**other, key: {"action": "accept", "content": {"size": 2}}}
        assert (await client.call("nest", {"bird": "wren"}, paused, mine)).text == "wren has a nest of 2"
        await client.close()


class TestLogin:
    @eras
    @pytest.mark.promise("ASST-05", "ASST-19")
    async def test_the_approved_call_is_made_after_the_login(self, inbox: LocalInbox, folder: Path, era: str) -> None:
        server = create_server(folder / "calendar.db", login=True)
        with served(http_app(server)) as address:
            nodes = nodes_of(server, inbox, calls(call("create_event", **NEW)), types=["calendar"])
            client = McpClient(server_at(f"{address}/mcp", {}), name="calendar", mode=era)
            there = Desk(folder / "gate.db", _with(nodes, client))
            await there.say("add it")
            login = await there.approve()
            assert login["kind"] == "oauth_url"
            assert login["url"].startswith(f"{address}/auth/connect/")
            again = await there.answer(ACCEPT)  # too early: it is asked again, with the same link
            assert again["url"] == login["url"]
            await connect(login["url"])
            assert await there.answer(ACCEPT) is None
            assert "Standup" in str(there.messages[-2].content)
            [grant] = there.grants()
            assert grant.status == "done"
            await client.close()
        assert await events(server, "legacy") == ["Standup"]

    @eras
    async def test_a_login_that_is_declined_ends_the_call(self, inbox: LocalInbox, folder: Path, era: str) -> None:
        server = create_server(folder / "calendar.db", login=True, url="http://127.0.0.1:1")
        made = calls(call("create_event", **NEW), call("list_calendars"))
        there = Desk(folder / "gate.db", nodes_of(server, inbox, made, types=["calendar"], mode=era))
        await there.say("add it")
        assert (await there.approve())["kind"] == "oauth_url"
        assert await there.answer(DECLINE) is None
        failed = [message for message in there.messages if message.type == "tool"]
        assert [getattr(one, "status", "") for one in failed] == ["error", "error"]
        [grant] = there.grants()
        assert grant.status == "failed"

    @eras
    async def test_call_with_login_and_form_gets_each_answer(self, inbox: LocalInbox, folder: Path, era: str) -> None:
        """Once the login is there the form comes first: by position, the login's answer would go to the form."""
        server = create_server(folder / "calendar.db", login=True)
        with served(http_app(server)) as address:
            nodes = nodes_of(server, inbox, calls(call("book_room", **ROOM)), types=["calendar"])
            client = McpClient(server_at(f"{address}/mcp", {}), name="calendar", mode=era)
            there = Desk(folder / "gate.db", _with(nodes, client))
            await there.say("book")
            login = await there.approve()
            await connect(login["url"])
            form = await there.answer(ACCEPT)
            assert form["kind"] == "form_elicitation"
            assert await there.answer(Verdict("0", Verb.ACCEPT, args={"people": 3})) is None
            assert "Review" in str(there.messages[-2].content)
            await client.close()

    @eras
    async def test_pending_login_survives_a_restart_of_both_sides(
        self, inbox: LocalInbox, folder: Path, era: str
    ) -> None:
        from langgraph.checkpoint.memory import InMemorySaver

        saver = InMemorySaver()
        server = calendar_process(folder / "calendar.db")
        server.start()
        first = self._desk(server.url, inbox, folder, era, saver, calls(call("book_room", **ROOM)))
        await first.say("book")
        form = await first.approve()
        first.decide(Verdict("0", Verb.ACCEPT, args={"people": 3}))
        await first.nodes.client.close()
        server.kill()
        server.start()
        second = self._desk(server.url, inbox, folder, era, saver)
        assert form["kind"] == "form_elicitation"
        assert await second.go_on() is None
        assert "Review" in str(second.messages[-2].content)
        await second.nodes.client.close()
        server.kill()
        assert await events(create_server(folder / "calendar.db")) == ["Review"]

    def _desk(self, address: str, inbox: LocalInbox, folder: Path, era: str, saver: Any, *script: Any) -> Desk:
        nodes = nodes_of(FastMCP("unused"), inbox, *script, types=["calendar"])
        client = McpClient(server_at(f"{address}/mcp", {}), name="calendar", mode=era)
        return Desk(folder / "gate.db", _with(nodes, client), saver)


class TestConnections:
    async def test_configured_headers_are_sent(self) -> None:
        from fastmcp.server.dependencies import get_http_headers

        server = FastMCP("headers")

        @server.tool
        def who() -> str:
            return get_http_headers(include_all=True).get("x-who", "nobody")

        with served(server.http_app(path="/mcp")) as address:
            environment = {"ASSISTANT_MCP_URL": f"{address}/mcp", "ASSISTANT_MCP_HEADERS": '{"X-Who": "ana"}'}
            client = create_client(read_assistant_settings(environment))
            assert (await client.call("who", {})).text == "ana"
            await client.close()

    async def test_command_starts_the_server(self, folder: Path) -> None:
        command = f"{sys.executable} -m assent calendar --stdio --database {folder / 'c.db'}"
        client = create_client(read_assistant_settings({"ASSISTANT_MCP_COMMAND": command}))
        assert "create_event" in [tool.name for tool in await client.tools()]
        await client.close()

    async def test_without_a_server_the_calendar_runs_in_this_process(self, folder: Path) -> None:
        client = create_client(read_assistant_settings({"ASSISTANT_CALENDAR": str(folder / "c.db")}))
        tools_by_name = {tool.name: tool for tool in await client.tools()}
        assert tools_by_name["list_events"].reads_only
        assert tools_by_name["create_event"].idempotent
        assert tools_by_name["create_event"].tags == ("calendar",)
        await client.close()

    @pytest.mark.parametrize("era", ["auto", *ERAS])
    async def test_unreachable_server_is_reported(self, desk: Opener, era: str) -> None:
        there = desk()
        client = McpClient(server_at("http://127.0.0.1:9/mcp", {}), name="http://127.0.0.1:9/mcp", mode=era)
        there = Desk(there.file, _with(there.nodes, client))
        async with asyncio.timeout(90):
            with pytest.raises(McpFailed, match=r"the MCP server http://127\.0\.0\.1:9/mcp cannot be reached"):
                await there.say("hello")

    async def test_server_address_is_shown_without_secrets(self, caplog: pytest.LogCaptureFixture) -> None:
        environment = {"ASSISTANT_MCP_URL": "http://ana:s3cret@127.0.0.1:9/t0ken/mcp?key=hidden"}
        client = create_client(read_assistant_settings(environment))
        with pytest.raises(McpFailed, match=r"the MCP server http://127\.0\.0\.1:9 cannot be reached") as caught:
            await client.tools()
        told = "".join(traceback.format_exception(caught.value)) + caplog.text
        assert "call MCP server http://127.0.0.1:9 failed" in told
        assert not [word for word in ("s3cret", "t0ken", "hidden") if word in told]

    @eras
    async def test_server_that_dies_during_a_call_gives_mcp_lost(self, era: str) -> None:
        server = FastMCP("deadly")

        @server.tool
        async def die() -> str:
            await asyncio.sleep(60)
            return "never"

        with served(server.http_app(path="/mcp")) as address:
            client = McpClient(server_at(f"{address}/mcp", {}), name="deadly", mode=era)
            await client.ready("die")
            calling = asyncio.ensure_future(client.call("die", {}))
            await asyncio.sleep(0.5)
        with pytest.raises(McpLost):
            async with asyncio.timeout(90):
                await calling
        if era == ERAS[0]:  # the later one connects without a word, and does not tell one from the other
            with pytest.raises(McpFailed) as refused:
                await client.call("die", {})
            assert not isinstance(refused.value, McpLost)

    @pytest.mark.parametrize("status", [401, 403])
    @eras
    async def test_refused_credentials_are_reported_as_such(self, era: str, status: int) -> None:
        refuse = Route("/mcp", lambda _: Response(status_code=status), methods=["GET", "POST", "DELETE"])
        with served(Starlette(routes=[refuse]), lifespan=False) as address:
            client = McpClient(server_at(f"{address}/mcp", {}), name="strict", mode=era)
            with pytest.raises(McpRefused, match=rf"refused the credentials \({status}\): check ASSISTANT_MCP_HEADERS"):
                await client.tools()

    async def test_resources_in_results_are_text_for_the_model(self) -> None:
        server = FastMCP("library")

        @server.tool
        def read() -> ToolResult:
            text = TextResourceContents(uri="file:///notes.txt", text="buy milk")
            blob = BlobResourceContents(uri="file:///photo.png", mime_type="image/png", blob="AAAA")
            return ToolResult(
                content=[
                    EmbeddedResource(type="resource", resource=text),
                    EmbeddedResource(type="resource", resource=blob),
                    ResourceLink(type="resource_link", name="plan", uri="file:///plan.md", description="of the year"),
                    ImageContent(type="image", data="AAAA", mime_type="image/png"),
                ]
            )

        result = await McpClient(lambda: server, name="library").call("read", {})
        assert result.text.splitlines() == [
            *("file:///notes.txt:", "buy milk"),
            *("[file:///photo.png, image/png, 3 bytes]", "[plan](file:///plan.md) of the year"),
            "[image, image/png, 3 bytes]",
        ]

    @pytest.mark.parametrize(
        "error", [httpx.ConnectError("refused"), ExceptionGroup("all", [httpx.ConnectError("no")])]
    )
    def test_refused_connection_counts_as_never_sent(self, error: Exception) -> None:
        assert type(unreachable("it", error, sent=True)) is McpFailed
        assert type(unreachable("it", httpx.ReadTimeout("late"), sent=True)) is McpLost

    async def test_a_command_gets_its_environment(self, folder: Path) -> None:
        script = folder / "server.py"
        script.write_text(
            "import os\nfrom fastmcp import FastMCP\nserver = FastMCP('s')\n"
            "@server.tool\ndef token() -> str:\n    return os.environ.get('TOKEN', 'none')\n"
            "server.run(show_banner=False)\n"
        )
        environment = {"ASSISTANT_MCP_COMMAND": f"{sys.executable} {script}", "ASSISTANT_MCP_ENV": '{"TOKEN": "abc"}'}
        client = create_client(read_assistant_settings(environment))
        assert (await client.call("token", {})).text == "abc"
        await client.close()

    @eras
    async def test_approval_survives_an_unreachable_server(self, inbox: LocalInbox, folder: Path, era: str) -> None:
        server = calendar_process(folder / "calendar.db")
        server.start()
        there = TestLogin()._desk(server.url, inbox, folder, era, None, calls(call("create_event", **NEW)))
        await there.say("add it")
        server.kill()
        with pytest.raises(McpFailed):
            await there.approve()
        with served(http_app(create_server(folder / "calendar.db"))) as other:
            moved = McpClient(server_at(f"{other}/mcp", {}), name="calendar", mode=era)
            there = Desk(there.file, _with(there.nodes, moved), there.graph.checkpointer)
            assert await there._ran(None) is None
            await moved.close()
        assert await events(create_server(folder / "calendar.db")) == ["Standup"]

    @eras
    async def test_protocol_error_is_passed_to_the_model(self, aviary: Aviary, era: str) -> None:
        from fastmcp.server.middleware import Middleware
        from mcp.shared.exceptions import MCPError

        class Broken(Middleware):
            async def on_call_tool(self, context: Any, call_next: Any) -> Any:
                raise MCPError(-32602, "no such luck")

        aviary.server.add_middleware(Broken())
        client = client_of(aviary.server, era)
        tool_result = await client.call("watch", {"bird": "wren"})
        assert (tool_result.failed, tool_result.text) == (True, "Error -32602: no such luck")
        await client.close()

    @pytest.mark.parametrize(
        ("environment", "said"),
        [
            ({"ASSISTANT_MCP_URL": "ftp://x"}, "ASSISTANT_MCP_URL"),
            ({"ASSISTANT_MCP_MODE": "2024"}, "ASSISTANT_MCP_MODE"),
            ({"ASSISTANT_TOOL_MAPPING": "{"}, "ASSISTANT_TOOL_MAPPING"),
        ],
    )
    def test_a_wrong_setting_names_its_variable(self, environment: dict[str, str], said: str) -> None:
        with pytest.raises(ConfigError, match=said):
            read_assistant_settings(environment)

    @pytest.mark.promise("ASST-08", "ASST-20")
    def test_third_party_variable_names_are_read(self) -> None:
        environment = {
            "ASSISTANT_MCP_URL": "http://127.0.0.1:8001/mcp",
            "OPENAI_API_KEY": "o",
            "GOOGLE_API_KEY": "g",
            "LANGFUSE_PUBLIC_KEY": "p",
            "LANGFUSE_SECRET_KEY": " ",
            "ASSISTANT_TOOL_MAPPING": '{"files": ["read_*"]}',
            "ASSISTANT_HITL_TOOLS": "read_secret, write_file",
        }
        assistant_settings = read_assistant_settings(environment)
        assert (assistant_settings.mcp_url, assistant_settings.model) == ("http://127.0.0.1:8001/mcp", "offline")
        assert assistant_settings.openai_api_key is not None
        assert assistant_settings.openai_api_key.get_secret_value() == "o"
        assert assistant_settings.langfuse_secret_key is None
        assert assistant_settings.tool_mapping == {"files": ("read_*",)}
        assert assistant_settings.hitl_tools == ("read_secret", "write_file")
        assert read_assistant_settings({}).mcp_url is None


def _with(nodes: Any, client: McpClient) -> Any:
    from dataclasses import replace

    return replace(nodes, client=McpServers({"server": client}))
