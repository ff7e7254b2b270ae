"""A grant is valid in runs like the one that asked: the same graph, actor, config and context. The same call has other
effects in another graph, with another account in its config, or for another agent."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from assent.review.rows import grant_scopes
from tests.faults.arena import Arena, Json, open_arena
from tests.waiting import until

AGENTS = '''
import asyncio
from pathlib import Path

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain_core.runnables import RunnableConfig
from langgraph.types import interrupt

from assent import ApprovalMiddleware
from tests.graphs.agents import ScriptedModel
from tests.graphs_gated.agents import _leave


async def hold(log: str) -> None:
    """Waits to be cancelled, the first time."""
    begun = Path(f"{log}.begun")
    if not begun.exists():
        begun.touch()
        await asyncio.sleep(3600)


class Slow(AgentMiddleware):
    async def awrap_tool_call(self, request, handler):
        if request.tool_call["name"] == "unused":
            await hold(request.tool_call["args"]["log"])
        return await handler(request)


def agent(kind: str):
    def pay(log: str, config: RunnableConfig) -> str:
        account = config["configurable"].get("account")
        _leave(log, f"{kind} {account} {config['configurable']['langgraph_auth_user_id']}")
        return "paid"

    async def unused(log: str, config: RunnableConfig) -> str:
        """Is held before the gate."""
        return pay(log, config)

    async def paused(log: str, config: RunnableConfig) -> str:
        """Asks before it pays."""
        interrupt("which reference?")
        return pay(log, config)

    async def retried(log: str, config: RunnableConfig) -> str:
        """Takes an idempotency key."""
        await hold(log)
        return pay(log, config)

    asks, gate = HumanInTheLoopMiddleware({"unused": True}), ApprovalMiddleware(idempotent=["retried"])
    return create_agent(ScriptedModel(), [unused, paused, retried], middleware=[asks, Slow(), gate])


weak, strict = agent("weak"), agent("strict")
'''
TEST: Json = {"configurable": {"account": "test"}}
SAME: Json = {"assistant_id": "weak", "config": TEST}
CHANGES: dict[str, Json] = {
    "another graph": {"assistant_id": "strict"},
    "another config": {"config": {"configurable": {"account": "live"}}},
    "another context": {"config": None, "context": {"account": "live"}},
    "another agent": {},
}
TOOLS = ["unused", "paused"]


@pytest.fixture(scope="module")
async def paying(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Arena]:
    folder = tmp_path_factory.mktemp("paying")
    (folder / "paying.py").write_text(AGENTS)
    graphs = {name: f"./paying.py:{name}" for name in ("weak", "strict")}
    (folder / "langgraph.json").write_text(json.dumps({"dependencies": ["."], "graphs": graphs}))
    async with open_arena(folder, module_database, config=folder / "langgraph.json") as arena:
        yield arena


async def _approved(arena: Arena, tool: str, log: Path) -> str:
    """A thread whose approved call is held before the gate, waits for an answer of its own, or was cut off."""
    thread = await arena.thread(visibility="shared")
    script = json.dumps([{"name": tool, "args": {"log": str(log)}}])
    await arena.run(thread, "weak", input={"messages": [{"role": "user", "content": script}]}, config=TEST)
    assert (await arena.decide(await arena.item(thread), "approve")).status_code == 200
    if tool != "paused":
        await _cancel(arena, thread, Path(f"{log}.begun"))
    await arena.rests(thread)
    return thread


async def _cancel(arena: Arena, thread: str, begun: Path) -> None:
    async def has_begun() -> bool:
        return begun.exists()

    await until(has_begun, "the call does not begin")
    [run] = (await arena.agent.get(f"/threads/{thread}/runs", params={"status": "running"})).json()
    stopped = await arena.agent.post(f"/threads/{thread}/runs/{run['run_id']}/cancel", params={"wait": True})
    assert stopped.status_code == 200


async def _go_on(arena: Arena, tool: str, thread: str, caller: str = "agent", **changed: Any) -> None:
    answer = {"command": {"resume": "the blue one"}} if tool == "paused" else {"input": None}
    body = {name: value for name, value in {**SAME, **answer, **changed}.items() if value is not None}
    sent = await getattr(arena, caller).post(f"/threads/{thread}/runs/wait", json={"input": None, **body})
    assert sent.status_code in (200, 409), sent.text
    await arena.rests(thread)


def _effects(log: Path) -> list[str]:
    return [" ".join(line.split()[:2]) for line in log.read_text().splitlines()] if log.exists() else []


@pytest.mark.promise("P1", "P2", "P5")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("tool", TOOLS)
async def test_grant_is_not_valid_in_a_run_with_another_setting(
    paying: Arena, folder: Path, tool: str, change: str
) -> None:
    thread = await _approved(paying, tool, folder / "log")
    await _go_on(paying, tool, thread, "other" if change == "another agent" else "agent", **CHANGES[change])
    assert _effects(folder / "log") == []


@pytest.mark.parametrize("tool", TOOLS)
async def test_grant_is_valid_in_a_run_with_the_same_setting(paying: Arena, folder: Path, tool: str) -> None:
    thread = await _approved(paying, tool, folder / "log")
    await _go_on(paying, tool, thread)
    assert _effects(folder / "log") == ["weak test"]


@pytest.mark.parametrize("tool", TOOLS)
async def test_control_without_the_comparison_the_grant_is_valid_everywhere(
    paying: Arena, folder: Path, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grant_scopes, "holds_in", lambda tx, grant, attempt: True)
    thread = await _approved(paying, tool, folder / "log")
    await _go_on(paying, tool, thread, **CHANGES["another config"])
    assert _effects(folder / "log") == ["weak live"]


@pytest.mark.promise("P2")
@pytest.mark.parametrize(("compared", "effects"), [(True, []), (False, ["weak live"])], ids=["compared", "control"])
async def test_idempotent_call_is_not_retried_with_another_config(
    paying: Arena, folder: Path, monkeypatch: pytest.MonkeyPatch, compared: bool, effects: list[str]
) -> None:
    if not compared:
        monkeypatch.setattr(grant_scopes, "holds_in", lambda tx, grant, attempt: True)
    thread = await _approved(paying, "retried", folder / "log")
    more = {"multitask_strategy": "interrupt"}  # she may bypass the question
    await _go_on(paying, "retried", thread, "ana", **CHANGES["another config"], **more)
    assert _effects(folder / "log") == effects


@pytest.mark.promise("P1", "P8")
async def test_grant_ends_with_its_thread(paying: Arena, folder: Path) -> None:
    thread = await _approved(paying, "unused", folder / "log")
    [call] = (await paying.agent.get(f"/threads/{thread}")).json()["values"]["messages"][-1]["tool_calls"]
    assert (await paying.agent.delete(f"/threads/{thread}")).status_code == 204
    assert (await paying.other.post("/threads", json={"thread_id": thread})).status_code == 409
    assert (await paying.agent.post("/threads", json={"thread_id": thread})).status_code == 200
    said = [{"role": "user", "content": "x"}, {"type": "ai", "content": "", "tool_calls": [call]}]
    steered = {"update": {"messages": said}, "goto": "tools"}
    await paying.run(thread, "weak", command=steered, config=TEST)
    assert _effects(folder / "log") == []
    assert (await paying.item(thread))["status"] == "PENDING"
