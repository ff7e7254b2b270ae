"""The clients of MCP and A2A are programs: they decide nothing, not even with a person's key."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from assent.identity.model.access import Principal
from tests.faults.arena import Arena

pytestmark = pytest.mark.promise("P6")
CALLERS = ["ana", "agent", "other"]


async def _call(client: httpx.AsyncClient, path: str, method: str, params: Any) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {"accept": "application/json, text/event-stream"}
    return (await client.post(path, json=body, headers=headers, timeout=30)).json()


async def _approve_over_mcp(arena: Arena, who: str) -> None:
    thread = await arena.thread(visibility="shared")
    script = json.dumps([{"name": "act", "args": {"log": str(arena.log), "tag": "as asked"}}])
    await arena.run(thread, "gated", input={"messages": [{"role": "user", "content": script}]})
    [[pending]] = (await arena.state(thread))["interrupts"].values()
    arguments = {"thread_id": thread, "answers": {pending["id"]: {"type": "approve"}}}
    await _call(getattr(arena, who), "/mcp", "tools/call", {"name": "continue_run", "arguments": arguments})
    await arena.rests(thread)


@pytest.mark.parametrize("who", CALLERS)
async def test_mcp_client_does_not_answer_a_gated_question(arena: Arena, who: str) -> None:
    await _approve_over_mcp(arena, who)
    assert arena.effects == []


async def test_control_with_the_right_to_decide_an_mcp_client_approves(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Principal, "without", lambda self, scope: self)
    await _approve_over_mcp(arena, "ana")
    assert arena.effects == ["as asked"]


@pytest.mark.parametrize("who", CALLERS)
async def test_mcp_client_does_not_pass_a_gated_breakpoint(arena: Arena, who: str) -> None:
    thread = await arena.thread(visibility="shared")
    await arena.run(thread, "stopping", input={"log": str(arena.log), "tag": "asked"})
    params = {"name": "continue_run", "arguments": {"thread_id": thread}}
    await _call(getattr(arena, who), "/mcp", "tools/call", params)
    await arena.rests(thread)
    assert arena.effects == []


@pytest.mark.parametrize("who", CALLERS)
@pytest.mark.parametrize("part", [{"text": "go on"}, {"data": {"resume": True}}], ids=["text", "resume"])
async def test_a2a_client_does_not_pass_a_gated_breakpoint(arena: Arena, who: str, part: Any) -> None:
    thread = await arena.thread(visibility="shared")
    await arena.run(thread, "stopping", input={"log": str(arena.log), "tag": "asked"})
    [run] = (await arena.agent.get(f"/threads/{thread}/runs")).json()
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [part], "contextId": thread}
    message["taskId"] = f"{thread}:{run['run_id']}"
    await _call(getattr(arena, who), f"/a2a/{run['assistant_id']}", "SendMessage", {"message": message})
    await arena.rests(thread)
    assert arena.effects == []
