"""Resources of MCP servers, which the model reads as the policy allows, and prompts, which people send."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastmcp import FastMCP
from fastmcp.server.middleware import Middleware
from mcp.shared.exceptions import MCPError

from assent import LocalInbox
from assent.assistant.failures import McpFailed
from assent.assistant.mcp import sharing
from assent.assistant.mcp.client import McpClient
from assent.assistant.mcp.prompts import Argument
from assent.assistant.mcp.resources import LIST, READ
from assent.assistant.mcp.servers import McpServers
from assent.assistant.mcp.targets import server_at
from assent.errors import Invalid, NotFound
from assent.identity.model.access import Kind, Scope
from assent.settings import Mode
from tests.api.house import LOOPBACK, Builder, House
from tests.api.talking import GRAPHS
from tests.assistant.calendars import ERAS, served
from tests.assistant.conftest import Opener
from tests.assistant.desk import Aviary, Desk, nodes_of
from tests.assistant.library import ATLAS, COVER, library
from tests.assistant.models import call, calls

OURS = {"origin": LOOPBACK, "sec-fetch-site": "same-origin"}
PAGE = "/inbox/assistant"


def client_of(server: FastMCP, mode: str = "auto", **options: Any) -> McpClient:
    return McpClient(lambda: server, name="library", mode=mode, **options)


class TestResources:
    @pytest.mark.parametrize("era", ERAS)
    async def test_resources_are_listed_and_read(self, era: str) -> None:
        client = client_of(library(), era)
        assert [tool.name for tool in await client.tools()] == ["lend", LIST, READ]
        listed = (await client.call(LIST, {})).text.splitlines()
        assert f"[atlas]({ATLAS}) Maps of the world" in listed
        assert "books://{title}/summary: What a book is about" in listed
        assert (await client.call(READ, {"uri": ATLAS})).text == f"{ATLAS}:\nHere be dragons."
        assert (await client.call(READ, {"uri": COVER})).text == f"[{COVER}, image/png, 5 bytes]"
        assert "it ends well" in (await client.call(READ, {"uri": "books://emma/summary"})).text
        missing = await client.call(READ, {"uri": "books://none"})
        assert missing.failed
        assert "Error" in missing.text
        await client.close()

    async def test_server_without_resources_has_no_such_tools(self, aviary: Aviary) -> None:
        client = client_of(aviary.server)
        assert not {LIST, READ} & {tool.name for tool in await client.tools()}
        await client.close()

    async def test_tool_of_the_server_takes_precedence(self) -> None:
        server = library()
        server.tool(lambda uri: f"the server's own {uri}", name=READ)
        client = client_of(server)
        assert sorted(tool.name for tool in await client.tools()) == ["lend", LIST, READ]
        assert (await client.call(READ, {"uri": ATLAS})).text == f"the server's own {ATLAS}"
        await client.close()

    async def test_server_that_cannot_list_its_resources_keeps_its_tools(self) -> None:
        class Broken(Middleware):
            async def on_list_resources(self, context: Any, call_next: Any) -> Any:
                raise MCPError(code=-32603, message="out of order")

        server = library()
        server.add_middleware(Broken())
        client = client_of(server)
        assert [tool.name for tool in await client.tools()] == ["lend"]
        await client.close()

    async def test_resources_of_two_servers_get_their_names_as_prefix(self) -> None:
        servers = McpServers({"home": client_of(library()), "work": client_of(library())})
        assert {f"home_{READ}", f"work_{READ}"} <= {tool.name for tool in await servers.tools()}
        assert "dragons" in (await servers.call(f"work_{READ}", {"uri": ATLAS})).text
        await servers.close()

    @pytest.mark.parametrize("trusted", [True, False])
    async def test_reading_needs_approval_unless_the_server_is_trusted(
        self, inbox: LocalInbox, folder: Path, trusted: bool
    ) -> None:
        servers = McpServers({"library": client_of(library(), trusted=trusted)})
        nodes = nodes_of(FastMCP("none"), inbox, calls(call(READ, uri=ATLAS)), types=["resources"])
        there = Desk(folder / "gate.db", replace(nodes, client=servers))
        asked = await there.say("what does the atlas say?")
        if not trusted:
            assert [made["tool_name"] for made in asked["tool_calls"]] == [READ]
            await there.approve()
        assert there.messages[-2].content == f"{ATLAS}:\nHere be dragons."
        await servers.close()

    async def test_read_without_a_uri_is_corrected_by_the_model(self, desk: Opener) -> None:
        there = desk(calls(call(READ)), server=library(), types=["resources"])
        await there.say("read")
        assert "the call was not made" in str(there.messages[-2].content)


class TestPrompts:
    @pytest.mark.parametrize("era", ERAS)
    async def test_prompts_are_listed_and_filled_in(self, era: str) -> None:
        servers = McpServers({"library": client_of(library(), era)})
        prompts, failures = await servers.prompts()
        by_name = {prompt.name: prompt for prompt in prompts}
        assert failures == []
        assert by_name["recommend"].description == "Ask for a book."
        assert [(one.name, one.required) for one in by_name["recommend"].arguments] == [
            ("topic", True),
            ("mood", False),
        ]
        assert isinstance(by_name["recommend"].arguments[0], Argument)
        assert await servers.prompt("recommend", {"topic": "sea"}) == "Recommend a book about sea; mood: any."
        assert await servers.prompt("greet", {}) == "Good morning.\n\nassistant: Good morning to you."
        await servers.close()

    async def test_prompts_of_servers_that_are_up_are_listed(self, aviary: Aviary) -> None:
        down = McpClient(server_at("http://127.0.0.1:9/mcp", {}), name="down")
        servers = McpServers(
            {"a": client_of(library()), "b": client_of(library()), "down": down, "c": client_of(aviary.server)}
        )
        prompts, failures = await servers.prompts()
        assert {"a_greet", "b_greet"} <= {prompt.name for prompt in prompts}
        assert len(failures) == 1
        with pytest.raises(McpFailed):
            await servers.prompt("unknown", {})
        await servers.close()

    async def test_refusal_of_the_server_is_told_and_its_connection_stays(self) -> None:
        servers = McpServers({"library": client_of(library())})
        with pytest.raises(Invalid, match="refused the prompt"):
            await servers.prompt("recommend", {})
        with pytest.raises(NotFound):
            await servers.prompt("unknown", {})
        assert await servers.prompt("greet", {})
        await servers.close()


@pytest.fixture(scope="module")
async def building(tmp_path_factory: pytest.TempPathFactory, migrated_file: Path) -> AsyncIterator[House]:
    folder = tmp_path_factory.mktemp("library")
    with pytest.MonkeyPatch.context() as patch:
        async with AsyncExitStack() as stack:
            url = stack.enter_context(served(library().http_app(path="/mcp")))
            patch.setenv("ASSISTANT_MCP_URL", f"{url}/mcp")
            builder = Builder(folder, migrated_file, stack)
            yield await builder(Mode.SERVE, config=GRAPHS, assistant="scripted")
            await sharing.close_all()


@pytest.fixture
async def house(building: House) -> House:
    await building.sweep()
    return building


@pytest.fixture
async def ana(house: House) -> httpx.AsyncClient:
    return house.client(await house.person("ana"))


class TestOverHttp:
    async def test_prompts_are_listed_with_their_arguments(self, ana: httpx.AsyncClient) -> None:
        listed = (await ana.get("/prompts", timeout=60)).json()
        by_name = {prompt["name"]: prompt for prompt in listed["prompts"]}
        arguments = by_name["recommend"]["arguments"]
        assert [(one["name"], one["required"]) for one in arguments] == [("topic", True), ("mood", False)]
        assert listed["problems"] == []

    async def test_text_is_sent_as_a_request(self, ana: httpx.AsyncClient) -> None:
        body = {"name": "recommend", "arguments": {"topic": "sea", "mood": ""}}
        text = (await ana.post("/prompts", json=body, timeout=60)).json()["text"]
        assert text == "Recommend a book about sea; mood: any."
        said = await ana.post("/run", json={"thread_id": "prompted", "user_request": text}, timeout=60)
        assert said.json()["status"] == "success"

    @pytest.mark.parametrize(
        ("body", "status", "message"),
        [
            ({"name": "recommend"}, 422, "arguments.topic: is required"),
            ({"name": "greet", "arguments": {"x": "y"}}, 422, "arguments.x: is not an argument of this prompt"),
            ({"name": "unknown"}, 404, "no server has a prompt 'unknown'"),
        ],
    )
    async def test_what_cannot_be_filled_in_is_refused(
        self, ana: httpx.AsyncClient, body: Any, status: int, message: str
    ) -> None:
        refused = await ana.post("/prompts", json=body, timeout=60)
        assert (refused.status_code, refused.json()["status"]) == (status, "error")
        assert message in refused.json()["message"]

    async def test_prompts_need_the_right_to_run(self, house: House) -> None:
        watcher = house.client(await house.key(Kind.SERVICE, Scope.ITEMS_READ))
        assert (await watcher.get("/prompts")).status_code == 403
        assert (await house.client().get("/prompts")).status_code == 401


class TestOnThePage:
    async def test_prompt_fills_in_a_new_request(self, house: House) -> None:
        browser = await house.signed_in("ana")
        assert f'href="{PAGE}/prompts"' in (await browser.get(PAGE)).text
        page = (await browser.get(f"{PAGE}/prompts", timeout=60)).text
        assert 'name="argument.topic"' in page
        sent = {"name": "recommend", "argument.topic": "<sea>"}
        filled = await browser.post(f"{PAGE}/prompts", data=sent, headers=OURS, timeout=60)
        assert "Recommend a book about <sea>; mood: any.</textarea>" in unescape(filled.text)

    async def test_prompt_fills_in_the_next_request_of_a_conversation(self, house: House) -> None:
        browser = await house.signed_in("ana")
        talk = (await browser.post(PAGE, data={"text": "nothing"}, headers=OURS)).headers["location"]
        thread = talk.rpartition("/")[2]
        assert f"{PAGE}/prompts?thread={thread}" in (await browser.get(talk)).text
        sent = {"name": "greet"}
        filled = await browser.post(f"{PAGE}/prompts?thread={thread}", data=sent, headers=OURS, timeout=60)
        assert "Good morning to you.</textarea>" in filled.text
        assert f'action="{talk}/message"' in filled.text

    async def test_missing_argument_is_named_and_the_others_are_kept(self, house: House) -> None:
        browser = await house.signed_in("ana")
        sent = {"name": "recommend", "argument.mood": "gloomy"}
        page = await browser.post(f"{PAGE}/prompts", data=sent, headers=OURS, timeout=60)
        assert page.status_code == 422
        assert "arguments.topic: is required" in page.text
        assert 'value="gloomy"' in page.text
