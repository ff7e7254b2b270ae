"""LangGraph's MCP endpoint with real MCP clients, over the network, on both databases."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import httpx2
import pytest
from fastmcp import Client as FastClient
from langgraph_sdk.client import LangGraphClient
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

from tests.graphs_gated.attempts import script
from tests.graphs_gated.serving import GRAPHS as GATED
from tests.graphs_gated.serving import SECRET, make_keys
from tests.servers import ServerProcess, dev_server, running
from tests.waiting import until

Json = dict[str, Any]


@asynccontextmanager
async def connected(url: str, *, key: str | None = None, **options: Any) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"x-api-key": key} if key else {}, timeout=60) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), **options) as client,
    ):
        yield client


def text(result: Any) -> str:
    return str(result.content[0].text)


def structured(result: Any) -> Json:
    assert result.structured_content is not None, text(result)
    return dict(result.structured_content)


async def test_every_assistant_is_a_tool_with_the_schema_of_its_graph(server: ServerProcess) -> None:
    async with connected(server.url) as client:
        listed = (await client.list_tools()).tools
    tools = {tool.name: tool for tool in listed}
    assert {"echo", "chat", "hitl", "continue_run"} <= tools.keys()
    assert tools["echo"].description == "Says back what it is told."
    assert tools["hitl"].input_schema["properties"].keys() == {"text", "answer"}
    assert tools["chat"].input_schema["properties"]["messages"]["type"] == "string"


async def test_own_assistant_is_called_by_its_normalised_name(server: ServerProcess, client: LangGraphClient) -> None:
    made = await client.assistants.create("echo", name="My  näme!", description="mine")
    try:
        async with connected(server.url) as mcp:
            [tool] = [tool for tool in (await mcp.list_tools()).tools if tool.title == "My  näme!"]
            assert (tool.name, tool.description) == ("My_nme", "mine")
            assert not (await mcp.call_tool("My_nme", {"text": "hi"})).is_error
    finally:
        await client.assistants.delete(made["assistant_id"])


async def test_finished_call_returns_the_values_and_leaves_no_thread(
    server: ServerProcess, client: LangGraphClient
) -> None:
    before = await client.threads.count()
    async with connected(server.url) as mcp:
        result = await mcp.call_tool("chat", {"messages": "hello"})
    assert not result.is_error
    assert structured(result)["messages"][-1]["content"].strip() == "you said: hello"
    assert "you said: hello" in text(result)
    assert await client.threads.count() <= before


async def test_paused_call_tells_its_question_and_continues_with_an_answer(server: ServerProcess) -> None:
    async with connected(server.url) as client:
        paused = structured(await client.call_tool("twice", {"text": "x"}))
        assert paused["status"] == "waiting"
        [question] = paused["questions"]
        assert (question["value"], question["answered_by"]) == ("first?", "you")
        assert paused["continue"]["arguments"]["answers"].keys() == {question["id"]}
        again = structured(await client.call_tool("continue_run", {"thread_id": paused["thread_id"]}))
        assert again["questions"] == paused["questions"]
        second = await _answered(client, paused, "one")
        assert second["questions"][0]["value"] == "second, after one?"
        done = await _answered(client, second, "two")
        assert done["answers"] == ["one", "two"]
        told = await client.call_tool("continue_run", {"thread_id": paused["thread_id"]})
        assert structured(told)["answers"] == ["one", "two"]


async def _answered(client: Client, paused: Json, answer: Any) -> Json:
    arguments = {"thread_id": paused["thread_id"], "answers": {paused["questions"][0]["id"]: answer}}
    return structured(await client.call_tool("continue_run", arguments))


async def test_client_without_a_handshake_is_asked_and_sends_its_call_again(server: ServerProcess) -> None:
    shown: list[str] = []

    async def answer(context: Any, params: Any) -> ElicitResult:
        shown.append(params.message)
        return ElicitResult(action="accept", content={"answer": f"answer {len(shown)}"})

    async with connected(server.url, elicitation_callback=answer) as client:
        assert client.protocol_version == "2026-07-28"
        done = structured(await client.call_tool("twice", {"text": "x"}))
    assert shown == ["first?", "second, after answer 1?"]
    assert done["answers"] == ["answer 1", "answer 2"]


async def test_declined_question_stays_open_and_is_answered_later(server: ServerProcess) -> None:
    async def decline(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="decline")

    async with connected(server.url, elicitation_callback=decline) as client:
        paused = structured(await client.call_tool("twice", {"text": "x"}))
        assert (paused["status"], paused["questions"][0]["value"]) == ("waiting", "first?")
    async with connected(server.url) as client:
        assert (await _answered(client, paused, "one"))["questions"][0]["value"] == "second, after one?"


async def test_unknown_version_and_two_versions_are_refused(server: ServerProcess) -> None:
    async with httpx.AsyncClient(base_url=server.url) as http:
        for version, header, code in (("2030-01-01", "2030-01-01", -32022), ("2026-07-28", "2025-11-25", -32020)):
            named = {"io.modelcontextprotocol/protocolVersion": version}
            body = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": named}}
            refused = await http.post("/mcp", json=body, headers={"mcp-protocol-version": header})
            assert (refused.status_code, refused.json()["error"]["code"]) == (400, code)


async def test_call_stopped_at_a_breakpoint_continues_without_answers(server: ServerProcess) -> None:
    async with connected(server.url) as client:
        paused = structured(await client.call_tool("breakpoint", {"text": "x"}))
        assert (paused["status"], paused["stopped_before"]) == ("waiting", ["publish"])
        done = structured(await client.call_tool("continue_run", {"thread_id": paused["thread_id"]}))
    assert done["answer"] == "published: x, prepared"


async def test_wrong_answer_is_an_error_of_the_tool_and_the_question_stays(server: ServerProcess) -> None:
    async with connected(server.url) as client:
        paused = structured(await client.call_tool("hitl", {"text": "x"}))
        for answers in ({"0" * 32: "yes"}, {"mine": "yes"}, {paused["questions"][0]["id"]: "yes", "mine": "yes"}):
            arguments = {"thread_id": paused["thread_id"], "answers": answers}
            refused = await client.call_tool("continue_run", arguments)
            assert refused.is_error, answers
        assert structured(await client.call_tool("continue_run", {"thread_id": paused["thread_id"]})) == paused
        unknown = await client.call_tool("continue_run", {"thread_id": "0197c5a0-0000-7000-8000-000000000000"})
        assert unknown.is_error
        assert "not found" in text(unknown)


async def test_failed_run_is_an_error_of_the_tool(server: ServerProcess) -> None:
    async with connected(server.url) as client:
        result = await client.call_tool("failing", {"text": "x"})
    assert result.is_error
    assert text(result).startswith("ValueError: ")


async def test_fastmcp_client_works_too(server: ServerProcess) -> None:
    async with FastClient(f"{server.url}/mcp") as client:
        assert "echo" in {tool.name for tool in await client.list_tools()}
        result = await client.call_tool("hitl", {"text": "x"})
        assert result.structured_content is not None
        assert result.structured_content["status"] == "waiting"
        assert await client.ping()


async def test_unknown_tool_and_method_are_protocol_errors(server: ServerProcess) -> None:
    async with httpx.AsyncClient(base_url=server.url) as http:
        assert (await _rpc(http, "tools/call", name="nope"))["error"]["code"] == -32602
        assert (await _rpc(http, "resources/list"))["error"]["code"] == -32601
        for version, negotiated in (("2025-03-26", "2025-03-26"), ("1999-01-01", "2025-11-25")):
            told = await _rpc(http, "initialize", protocolVersion=version)
            assert told["result"]["protocolVersion"] == negotiated
        assert (await http.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/x"})).status_code == 202
        wrong = await http.post("/mcp", content=b"{", headers={"content-type": "application/json"})
        assert (wrong.status_code, wrong.json()["error"]["code"]) == (400, -32700)
        assert (await http.post("/mcp", json=[])).status_code == 400
        assert (await http.post("/mcp", json={}, headers={"accept": "text/html"})).status_code == 400
        assert (await http.get("/mcp")).status_code == 405
        assert (await http.delete("/mcp/")).status_code == 404


async def _rpc(http: httpx.AsyncClient, method: str, **params: Any) -> Json:
    response = await http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    assert response.status_code == 200, response.text
    body: Json = response.json()
    return body


class Gated(NamedTuple):
    server: ServerProcess
    folder: Path
    keys: dict[str, str]


@pytest.fixture(scope="module")
def gated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gated]:
    folder = tmp_path_factory.mktemp("gated")
    database = f"sqlite:///{folder}/assent.db"
    keys = make_keys(database, "ana", "ben")
    with running(dev_server(database, config=GATED, ASSENT_SECRET_KEY=SECRET)) as server:
        yield Gated(server, folder, keys)


@pytest.mark.promise("P6")
async def test_gated_call_waits_for_a_person_and_then_returns_its_result(gated: Gated) -> None:
    """The agent cannot answer; its result is there after the person's decision. The control answers as that person."""
    server, folder, keys = gated
    log = folder / "effects"

    async def ask_user(context: Any, params: Any) -> ElicitResult:
        raise AssertionError("the client is asked what only a person decides")

    async with connected(server.url, elicitation_callback=ask_user) as client:
        request = script({"log": str(log), "tag": "once"})["messages"][0]["content"]
        paused = structured(await client.call_tool("gated", {"messages": request}))
        [question] = paused["questions"]
        assert question["answered_by"] == "a person"
        assert "answers" not in paused["continue"]["arguments"]
        thread_id = paused["thread_id"]
        for answer in ({"type": "approve"}, {"decisions": [{"type": "approve"}]}, True):
            arguments = {"thread_id": thread_id, "answers": {question["id"]: answer}}
            assert (await client.call_tool("continue_run", arguments)).is_error
        assert not log.exists()
        async with httpx.AsyncClient(base_url=server.url, headers={"x-api-key": keys["ana"]}) as ana:
            item = (await ana.get(f"/api/inbox/items/{paused['items'][0]}")).json()
            verdict = {"revision": item["revision"], "hash": item["hash"], "verb": "approve"}
            assert (await ana.post(f"/api/inbox/items/{item['id']}/decision", json=verdict)).status_code == 200

        async def is_done() -> bool:
            told = structured(await client.call_tool("continue_run", {"thread_id": thread_id}))
            return "messages" in told and "did once" in json.dumps(told["messages"])

        await until(is_done, "the result of the approved call is not returned")
    assert log.read_text() == "once\n"
