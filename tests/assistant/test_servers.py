"""Several MCP servers at once, configured as other clients configure them, and kept between turns."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from fastmcp import FastMCP

from assent.assistant.failures import McpFailed, McpLost
from assent.assistant.mcp import sharing
from assent.assistant.mcp.client import McpClient
from assent.assistant.mcp.configured import create_client, shared_client
from assent.assistant.mcp.servers import McpServers
from assent.assistant.mcp.targets import server_at
from assent.errors import ConfigError
from assent.settings import DEMO_PROJECT, Mode, read_assistant_settings
from assent.surfaces import extensions
from tests.api.conftest import build
from tests.api.house import Builder
from tests.assistant.calendars import served
from tests.assistant.desk import Aviary
from tests.assistant.models import Allowing, Scripted, call, calls
from tests.waiting import wait_until

__all__ = ["build"]

PROCESS = """
import asyncio, os
from fastmcp import FastMCP
server = FastMCP("process")
os.makedirs("started", exist_ok=True)
open(f"started/{os.getpid()}", "w").close()

@server.tool
def pid() -> int:
    return os.getpid()

@server.tool
def variable(name: str) -> str:
    return os.environ.get(name, "none")

@server.tool
async def hang() -> str:
    open("hanging", "w").close()
    await asyncio.sleep(60)
    return "never"

server.run(show_banner=False)
"""


def of_tool(name: str, answer: str) -> McpClient:
    server = FastMCP(answer)
    server.tool(lambda: answer, name=name)
    return McpClient(lambda: server, name=answer)


def settings_for(servers: dict[str, Any], **variables: str) -> Any:
    return read_assistant_settings({"ASSISTANT_MCP_SERVERS": json.dumps({"mcpServers": servers}), **variables})


@pytest.fixture
def process(tmp_path: Path) -> dict[str, Any]:
    """A server that this process starts."""
    (tmp_path / "server.py").write_text(PROCESS)
    return {"command": sys.executable, "args": [str(tmp_path / "server.py")], "cwd": str(tmp_path)}


@pytest.fixture
async def closing() -> AsyncIterator[None]:
    yield
    await sharing.close_all()


class TestTools:
    async def test_tools_of_the_same_name_get_their_server_as_prefix(self) -> None:
        servers = McpServers({"my work": of_tool("find", "w"), "home": of_tool("find", "h"), "b": of_tool("look", "l")})
        names = [tool.name for tool in await servers.tools()]
        assert names == ["my_work_find", "home_find", "look"]
        assert [(await servers.call(name, {})).text for name in names] == ["w", "h", "l"]
        await servers.close()

    async def test_server_that_is_down_takes_only_its_own_tools_away(self) -> None:
        down = McpClient(server_at("http://127.0.0.1:9/mcp", {}), name="down")
        servers = McpServers({"down": down, "up": of_tool("look", "l")})
        assert [tool.name for tool in await servers.tools()] == ["look"]
        assert isinstance(await servers.missing("other"), McpFailed)
        assert await servers.missing("look") is None
        with pytest.raises(McpFailed):
            await McpServers({"down": down}).tools()
        await servers.close()

    async def test_calls_of_several_threads_run_at_once(self) -> None:
        both_there = asyncio.Barrier(2)
        server = FastMCP("slow")

        @server.tool
        async def meet() -> str:
            async with asyncio.timeout(90):
                await both_there.wait()
            return "met"

        with served(server.http_app(path="/mcp")) as address:
            client = create_client(settings_for({"slow": {"url": f"{address}/mcp"}}))
            results = await asyncio.gather(client.call("meet", {}), client.call("meet", {}))
            assert [result.text for result in results] == ["met", "met"]
            await client.close()


@pytest.mark.usefixtures("closing")
class TestKept:
    async def test_second_turn_uses_the_process_of_the_first(self, process: dict[str, Any]) -> None:
        settings = settings_for({"process": process})
        first = await shared_client(settings).call("pid", {})
        assert await shared_client(settings).call("pid", {}) == first

    async def test_calls_at_once_share_the_process(self, process: dict[str, Any], tmp_path: Path) -> None:
        """One is at work when the others come."""
        servers = shared_client(settings_for({"process": process}))
        hanging = asyncio.ensure_future(servers.call("hang", {}))
        await asyncio.to_thread(wait_until, (tmp_path / "hanging").exists, "the call does not arrive")
        await servers.ready("pid")
        assert len(list((tmp_path / "started").iterdir())) == 1
        hanging.cancel()

    async def test_stopping_server_ends_its_processes(self, process: dict[str, Any]) -> None:
        pid = int((await shared_client(settings_for({"process": process})).call("pid", {})).text)
        os.kill(pid, 0)
        await extensions.close()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)

    async def test_other_settings_get_another_process(self, process: dict[str, Any]) -> None:
        first = await shared_client(settings_for({"process": process})).call("pid", {})
        other = settings_for({"process": {**process, "env": {"A": "b"}}})
        assert await shared_client(other).call("pid", {}) != first

    async def test_killed_server_is_restarted_for_the_next_call(self, process: dict[str, Any], tmp_path: Path) -> None:
        servers = shared_client(settings_for({"process": process}))
        pid = int((await servers.call("pid", {})).text)
        hanging = asyncio.ensure_future(servers.call("hang", {}))
        await asyncio.to_thread(wait_until, (tmp_path / "hanging").exists, "the call does not arrive")
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(McpLost):
            await hanging
        assert int((await servers.call("pid", {})).text) != pid


class TestSettings:
    async def test_file_with_variables_is_read(
        self, process: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MY_TOKEN", "s3cret")
        process["env"] = {"TOKEN": "${MY_TOKEN}", "KIND": "${MY_KIND:-none at all}"}
        ignored = {"command": "no-such-program", "disabled": True, "alwaysAllow": ["*"]}
        (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"process": process, "off": ignored}}))
        client = create_client(read_assistant_settings({"ASSISTANT_MCP_SERVERS": str(tmp_path / "mcp.json")}))
        assert (await client.call("variable", {"name": "TOKEN"})).text == "s3cret"
        assert (await client.call("variable", {"name": "KIND"})).text == "none at all"
        assert (await client.call("variable", {"name": "MY_TOKEN"})).text == "none"
        await client.close()

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("{", "not JSON"),
            ("no-such-file.json", "no-such-file.json cannot be read: No such file"),
            ("{}", 'use {"mcpServers"'),
            ('{"mcpServers": {"a": {}}}', "a: give it a command or a url"),
            ('{"mcpServers": {"a": {"command": "x", "url": "http://h/mcp"}}}', "a: give it a command or a url"),
            ('{"mcpServers": {"a": {"url": "file:///x"}}}', "a.url: use http"),
            ('{"mcpServers": {"a": {"command": "${NO_SUCH}"}}}', "the environment has no variable NO_SUCH"),
        ],
    )
    def test_wrong_servers_are_refused_with_the_cause(self, text: str, said: str) -> None:
        with pytest.raises(ConfigError) as refused:
            read_assistant_settings({"ASSISTANT_MCP_SERVERS": text})
        assert "ASSISTANT_MCP_SERVERS" in str(refused.value)
        assert said in str(refused.value)

    def test_time_limits_are_durations(self) -> None:
        settings = read_assistant_settings({"ASSISTANT_MCP_TIMEOUTS": '{"slow_*": "10m", "*": "30s"}'})
        assert [limit.total_seconds() for limit in settings.mcp_timeouts.values()] == [600, 30]


class TestTrust:
    @pytest.mark.parametrize(
        ("mode", "trusted", "asks"),
        [
            (Mode.SERVE, "", True),
            (Mode.SERVE, "url", False),
            (Mode.SERVE, "other", True),
            (Mode.DEV, "", False),
            (Mode.DEV, "other", True),
        ],
    )
    async def test_annotations_count_only_of_trusted_servers(
        self, build: Builder, monkeypatch: pytest.MonkeyPatch, mode: Mode, trusted: str, asks: bool
    ) -> None:
        aviary = Aviary()
        monkeypatch.setattr(
            "assent.assistant.graph.executor_model", lambda _: Scripted(script=[calls(call("watch", bird="tit"))])
        )
        monkeypatch.setattr("assent.assistant.graph.router_model", lambda _: Allowing(types=["birds"]))
        monkeypatch.setenv("ASSISTANT_TRUSTED_SERVERS", trusted)
        house = await build(mode, config=DEMO_PROJECT, assistant="assistant")
        ana = house.client(await house.person("ana"))
        with served(aviary.server.http_app(path="/mcp")) as url:
            monkeypatch.setenv("ASSISTANT_MCP_URL", f"{url}/mcp")
            request = {"thread_id": "t", "user_request": "watch the tit"}
            answered = await ana.post("/run", json=request, timeout=60)
            await sharing.close_all()
        assert answered.json()["status"] == ("confirmation_required" if asks else "success")
        assert aviary.done == ([] if asks else [("watch", "tit")])
