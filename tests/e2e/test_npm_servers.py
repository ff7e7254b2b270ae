"""The assistant's MCP client with a server from npm: a process of Node, with the protocol before 2026-07-28."""

from __future__ import annotations

import json
from pathlib import Path

from assent.assistant.mcp.configured import create_client
from assent.settings import read_assistant_settings
from tests.javascript import INSTALLED, node
from tests.missing import missing

__all__ = ["node"]

MEMORY = INSTALLED / "node_modules" / "@modelcontextprotocol" / "server-memory" / "dist" / "index.js"


async def test_memory_server_from_npm_lists_and_runs_its_tools(node: Path, tmp_path: Path) -> None:
    if not MEMORY.exists():
        missing("the MCP server of npm: make javascript")
    file = tmp_path / "memory.jsonl"
    server = {"command": str(node), "args": [str(MEMORY)], "env": {"MEMORY_FILE_PATH": str(file)}}
    text = json.dumps({"mcpServers": {"memory": server}})
    servers = create_client(read_assistant_settings({"ASSISTANT_MCP_SERVERS": text}))
    tools_by_name = {tool.name: tool for tool in await servers.tools()}
    entity = {"name": "ana", "entityType": "person", "observations": ["likes tea"]}
    assert tools_by_name["create_entities"].flaw({"entities": [{"name": 5}]}) is not None
    assert not (await servers.call("create_entities", {"entities": [entity]})).failed
    assert "likes tea" in (await servers.call("read_graph", {})).text
    assert "likes tea" in file.read_text()
    await servers.close()
