"""The assistant with three servers from npm at once: processes of Node, with the protocol before 2026-07-28."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastmcp import FastMCP
from langchain_core.messages import ToolMessage

from assent import LocalInbox
from assent.assistant.mcp.configured import create_client
from assent.assistant.mcp.servers import McpServers
from assent.review.model.questions import Verb, Verdict
from assent.settings import read_assistant_settings
from tests.assistant.desk import Desk, nodes_of
from tests.assistant.models import call, calls
from tests.contract.stores import folder
from tests.javascript import INSTALLED, node
from tests.missing import missing

__all__ = ["folder", "node"]

PACKAGES = INSTALLED / "node_modules" / "@modelcontextprotocol"
FEATURES = "demo://resource/static/document/features.md"
ANA = {"name": "ana", "entityType": "person", "observations": ["likes tea"]}


@pytest.fixture
async def servers(node: Path, tmp_path: Path) -> AsyncIterator[McpServers]:
    def started(name: str, *args: str, **env: str) -> dict[str, Any]:
        script = PACKAGES / f"server-{name}" / "dist" / "index.js"
        if not script.exists():
            missing("the MCP servers of npm: make javascript")
        return {"command": str(node), "args": [str(script), *args], "env": env}

    (tmp_path / "shelf").mkdir()
    configured = {
        "everything": started("everything"),
        "filesystem": started("filesystem", str(tmp_path / "shelf")),
        "memory": started("memory", MEMORY_FILE_PATH=str(tmp_path / "memory.jsonl")),
    }
    text = json.dumps({"mcpServers": configured})
    client = create_client(read_assistant_settings({"ASSISTANT_MCP_SERVERS": text}))
    yield client
    await client.close()


def results(there: Desk) -> list[str]:
    return [str(message.content) for message in there.messages if isinstance(message, ToolMessage)]


async def test_three_servers_are_asked_approved_and_called_in_one_conversation(
    servers: McpServers, folder: Path, migrated_file: Path, tmp_path: Path
) -> None:
    shutil.copy(migrated_file, folder / "gate.db")
    note = tmp_path / "shelf" / "note.txt"
    script = [
        calls(
            call("write_file", path=str(note), content="for ana"),
            call("create_entities", entities=[ANA]),
            call("trigger-elicitation-request"),
        ),
        calls(
            call("read_text_file", path=str(note)),
            call("read_graph"),
            call("everything_read_resource", uri=FEATURES),
            call("get-resource-links", count=1),
            call("create_entities", entities=[{"name": 5}]),
        ),
    ]
    nodes = nodes_of(FastMCP("none"), LocalInbox(folder / "gate.db"), *script, types=["other", "resources"])
    there = Desk(folder / "gate.db", replace(nodes, client=servers))
    asked = await there.say("take a note about ana")
    assert [made["tool_name"] for made in asked["tool_calls"]] == [
        *("write_file", "create_entities", "trigger-elicitation-request")
    ]
    assert not note.exists()
    form = await there.approve()
    assert (form["kind"], form["schema"]["required"]) == ("form_elicitation", ["name"])
    asked = await there.answer(Verdict("0", Verb.ACCEPT, args={"name": "Ana"}))
    assert note.read_text() == "for ana"
    assert "likes tea" in (tmp_path / "memory.jsonl").read_text()
    assert "Ana" in results(there)[2]
    assert len(asked["tool_calls"]) == 4  # the last call does not fit its schema, so no person sees it
    await there.approve()
    read, graph, features, links, flawed = results(there)[3:]
    assert "for ana" in read
    assert "likes tea" in graph
    assert features.startswith(f"{FEATURES}:\n#")
    assert "](demo://resource/dynamic/" in links
    assert "the call was not made" in flawed
    assert [grant.status for grant in there.grants()] == ["done"] * 7


async def test_prompts_of_a_server_are_filled_in(servers: McpServers) -> None:
    prompts, failures = await servers.prompts()
    assert {"simple-prompt", "args-prompt", "resource-prompt"} <= {prompt.name for prompt in prompts}
    assert failures == []
    assert "Bern" in await servers.prompt("args-prompt", {"city": "Bern"})
    text = await servers.prompt("resource-prompt", {"resourceType": "Text", "resourceId": "1"})
    assert "demo://resource/dynamic/text/1:\n" in text
