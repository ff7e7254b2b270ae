"""The forms of MCP servers in the assistant, under a policy that wants a person to fill them in.

Only an answer that was given to exactly this question counts, whatever the caller writes into the state of the thread.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolCall

from assent.assistant.calling import Calling
from assent.assistant.mcp import client as mcp_client
from assent.assistant.mcp.client import McpClient
from assent.assistant.mcp.servers import McpServers
from assent.assistant.messages import call_id
from assent.settings import DEMO_PROJECT
from tests.assistant.models import Allowing, Scripted
from tests.assistant.register import Register
from tests.faults.arena import Arena, open_arena, swept

pytestmark = pytest.mark.promise("P1")

ASSISTANT = "assistant"
POLICY = {
    "default": "ask",
    "rules": [{"name": "people fill in forms", "tool": "form_elicitation", "then": "ask"}],
}
OPEN, ROUNDS = "legacy", "2026-07-28"
TEN = {"action": "accept", "content": {"value": 10}}


@pytest.fixture(scope="module")
async def assisting(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Arena]:
    folder = tmp_path_factory.mktemp("assisting")
    async with open_arena(folder, module_database, config=DEMO_PROJECT) as arena:
        yield arena


@pytest.fixture
async def register(folder: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Register]:
    """A server whose tools run freely, but for their forms."""
    register = Register(folder / "register")
    client = McpServers({"register": McpClient(lambda: register.server, name="register", mode=mode)})
    monkeypatch.setattr("assent.assistant.graph.shared_client", lambda _: client)
    monkeypatch.setattr("assent.assistant.graph.executor_model", lambda _: Scripted(script=[]))
    monkeypatch.setattr("assent.assistant.graph.router_model", lambda _: Allowing(types=["birds"]))
    monkeypatch.setenv("ASSISTANT_HITL_TOOLS", "nothing")
    monkeypatch.setenv("ASSISTANT_TOOL_MAPPING", json.dumps({"birds": ["*"]}))
    yield register
    await client.close()


@pytest.fixture
async def office(assisting: Arena, folder: Path) -> Arena:
    arena = await swept(assisting, folder)
    await arena.policy(POLICY)
    return arena


def asks_for(tool: str, name: str, id: str = "c", **state: Any) -> dict[str, Any]:
    """The state after the model has called this tool."""
    called = {"role": "assistant", "content": "", "tool_calls": [{"id": id, "name": tool, "args": {"name": name}}]}
    messages = [{"role": "user", "content": "enter"}, called]
    return {"messages": messages, "allowed_tool_types": ["birds"], **state}


async def called(arena: Arena, tool: str, name: str, **state: Any) -> str:
    thread = await arena.thread(metadata={"graph_id": ASSISTANT})
    await call_in(arena, thread, tool, name, **state)
    return thread


async def call_in(arena: Arena, thread: str, tool: str, name: str, **state: Any) -> None:
    body = {"values": asks_for(tool, name, **state), "as_node": "task_executor"}
    written = await arena.agent.post(f"/threads/{thread}/state", json=body)
    assert written.status_code == 200, written.text
    ran = await arena.run(thread, ASSISTANT, input=None)
    assert ran.status_code == 200, ran.text


async def values(arena: Arena, thread: str) -> dict[str, Any]:
    state: dict[str, Any] = (await arena.agent.get(f"/threads/{thread}/state")).json()
    return dict(state["values"])


@pytest.fixture
def tool(mode: str) -> str:
    """It asks as the protocol of this mode wants it: over the connection, or by ending the call."""
    return "pushes" if mode == OPEN else "rounds"


async def paused(arena: Arena, register: Register, tool: str) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """A thread that waits for a form, with its pause and an answer to it, both by call id, as a state has them."""
    thread = await called(arena, tool, "ana")
    assert register.effects == ["ana-before"]
    item = await arena.item(thread)
    assert (item["dialect"], item["gated"]) == ("form_elicitation", True)
    pauses = (await values(arena, thread))["paused"]
    [key] = pauses["c"]["questions"]
    return thread, pauses, {"c": {key: TEN}}


async def fill_in(arena: Arena, thread: str) -> None:
    item = await arena.item(thread)
    filled_in = [{"key": "0", "verb": "accept", "args": {"value": 3}}]
    assert (await arena.decide(item, "", actions=filled_in)).status_code == 200
    assert (await arena.rests(thread))["status"] == "idle"


@pytest.mark.parametrize("mode", [OPEN, ROUNDS])
async def test_answer_of_a_person_counts(office: Arena, register: Register, tool: str) -> None:
    thread, *_ = await paused(office, register, tool)
    await fill_in(office, thread)
    assert register.effects == ["ana-before", "ana-after"]


async def prepared(arena: Arena, thread: str, tool: str, pauses: Any, answers: Any) -> str:
    """The answer is in the state before the question."""
    return await called(arena, tool, "ana", answers=answers)


async def continued(arena: Arena, thread: str, tool: str, pauses: Any, answers: Any) -> str:
    """As if another thread waited for the same form."""
    return await called(arena, tool, "ana", paused=pauses, answers=answers)


async def asked_otherwise(arena: Arena, thread: str, tool: str, pauses: Any, answers: Any) -> str:
    """Another form with the same key is answered, one that the policy leaves to the agent; then it is exchanged."""
    await arena.policy({"default": "ask"})
    other = await arena.thread(metadata={"graph_id": ASSISTANT})
    [key] = pauses["c"]["questions"]
    value = {**pauses["c"]["questions"][key], "message": "Shall I go on?"}
    harmless = {"c": {**pauses["c"], "questions": {key: value}}}
    elicitations = [{"call_id": "c", "key": key, "value": value}]
    state = asks_for(tool, "ana", paused=harmless, elicitations=elicitations)
    written = await arena.agent.post(f"/threads/{other}/state", json={"values": state, "as_node": "use_tools"})
    assert written.status_code == 200, written.text
    await arena.run(other, ASSISTANT, input=None)
    [pause] = (await arena.agent.get(f"/threads/{other}/state")).json()["interrupts"]
    await arena.policy(POLICY)
    await arena.run(other, ASSISTANT, command={"resume": {pause["id"]: TEN}, "update": {"paused": pauses}})
    return other


async def copied(arena: Arena, thread: str, tool: str, pauses: Any, answers: Any) -> str:
    """What the answer of a person has left in the state is used in another thread."""
    await fill_in(arena, thread)
    past = (await arena.agent.post(f"/threads/{thread}/history", json={"limit": 20})).json()
    given = next(state["values"]["answers"] for state in past if state["values"].get("answers"))
    return await called(arena, tool, "ana", paused=pauses, answers=given)


WAYS = pytest.mark.parametrize(
    ("way", "mode"),
    [(prepared, OPEN), (continued, OPEN), (continued, ROUNDS), (asked_otherwise, ROUNDS), (copied, ROUNDS)],
)


@WAYS
async def test_answer_in_the_state_does_not_count(office: Arena, register: Register, tool: str, way: Any) -> None:
    thread, pauses, answers = await paused(office, register, tool)
    other = await way(office, thread, tool, pauses, answers)
    await office.rests(other)
    assert register.effects.count("ana-after") == (way is copied)


@WAYS
async def test_control_unsealed_answer_in_the_state_counts(
    office: Arena, register: Register, tool: str, way: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control."""
    monkeypatch.setattr(Calling, "_kept", _trusting)
    thread, pauses, answers = await paused(office, register, tool)
    other = await way(office, thread, tool, pauses, answers)
    await office.rests(other)
    assert register.effects.count("ana-after") == (2 if way is copied else 1)


def _trusting(calling: Calling, call: ToolCall) -> tuple[Any, Any]:
    """As before there were seals."""
    return calling.paused.get(call_id(call)), calling.answers.get(call_id(call)) or {}


async def waiting_calls(arena: Arena, register: Register, monkeypatch: pytest.MonkeyPatch) -> str:
    """The thread of an agent, whose call waits with those of another agent, who has too many."""
    monkeypatch.setattr(mcp_client, "_MOST_HELD", 2)
    client = McpServers({"register": McpClient(lambda: register.server, name="register", mode=OPEN)})
    monkeypatch.setattr("assent.assistant.graph.shared_client", lambda _: client)
    thread = await called(arena, "pushes", "ana")
    for name in ("ben", "eve", "joe"):
        await called(replace(arena, agent=arena.other), "pushes", name)
    await fill_in(arena, thread)
    await client.close()
    return thread


@pytest.mark.promise("P2")
@pytest.mark.parametrize("mode", [OPEN])
async def test_waiting_call_is_not_dropped_for_those_of_another_user(
    office: Arena, register: Register, monkeypatch: pytest.MonkeyPatch
) -> None:
    await waiting_calls(office, register, monkeypatch)
    assert "ana-after" in register.effects


@pytest.mark.parametrize("mode", [OPEN])
async def test_control_oldest_waiting_call_is_dropped_among_those_of_one_user(
    office: Arena, register: Register, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control."""
    monkeypatch.setattr(mcp_client, "_user", lambda: "")
    await waiting_calls(office, register, monkeypatch)
    assert "ana-after" not in register.effects
