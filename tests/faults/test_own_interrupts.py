"""A decision about a gated call never answers another question of the same node or tool, or of an ungated tool in the
same task of a ToolNode: each `interrupt` gets the answer that was given to it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from assent.review.rows import grant_scopes
from tests.faults.arena import Arena, open_arena
from tests.gate.desk import by_position

CHARGING_NODE = """
from typing import TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from assent import gated
from assent.gate.decorator import Declined
from tests.graphs_gated.agents import _leave


class State(TypedDict, total=False):
    log: str


@gated
def book(log: str) -> str:
    _leave(log, "booked")
    return "booked"


def work(state: State) -> State:
    try:
        book(log=state["log"])
    except Declined:
        _leave(state["log"], "not booked")
    call = {"name": "charge", "args": {"price": 9999}, "description": "charge"}
    allowed = {"action_name": "charge", "allowed_decisions": ["approve", "reject"]}
    answer = interrupt({"action_requests": [call], "review_configs": [allowed]})
    _leave(state["log"], f"told {sorted(answer)}")
    return {}


builder = StateGraph(State)
builder.add_node("work", work)
builder.add_edge(START, "work")
graph = builder.compile()
"""


CHARGING_TOOL = '''
from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.types import interrupt

from assent import ApprovalMiddleware
from tests.graphs.agents import ScriptedModel
from tests.graphs_gated.agents import _leave


@tool
def pay(log: str, tag: str) -> str:
    """Looks the price up, and asks about it: an approval of its own."""
    call = {"name": "charge", "args": {"price": 9999}, "description": "charge"}
    allowed = {"action_name": "charge", "allowed_decisions": ["approve", "reject"]}
    answer = interrupt({"action_requests": [call], "review_configs": [allowed]})
    decided = answer["decisions"][0]["type"] if "decisions" in answer else answer["type"]
    if decided == "approve":
        _leave(log, tag)
    return "done"


graph = create_agent(ScriptedModel(), [pay], middleware=[ApprovalMiddleware()])
'''
LOOKING_UP = '''
import time
from pathlib import Path

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import interrupt

from assent import gated
from tests.graphs_gated.agents import _leave


class State(MessagesState, total=False):
    log: str
    tag: str


@tool
def look_up(log: str, tag: str) -> str:
    """Is not gated, and asks, but not the first time: then the gate asks first."""
    seen = Path(f"{log}.{tag}")
    if seen.exists():
        seen.with_suffix(".asks").touch()
        _leave(log, f"told {interrupt('which account?')}")
    seen.touch()
    return "looked up"


@gated
@tool
def pay(log: str, tag: str) -> str:
    """Pays, and is not finished when the other tool asks."""
    while not Path(f"{log}.{tag}").with_suffix(".asks").exists():
        time.sleep(0.01)
    _leave(log, "paid")
    return "paid"


def call(state: State) -> State:
    args = {"log": state["log"], "tag": state["tag"]}
    calls = [{"name": name, "args": args, "id": name} for name in ("pay", "look_up")]
    return {"messages": [AIMessage("", tool_calls=calls)]}


builder = StateGraph(State)
builder.add_node("model", call)
builder.add_node("tools", ToolNode([look_up, pay], handle_tool_errors=False))
builder.add_edge(START, "model")
builder.add_edge("model", "tools")
graph = builder.compile()
'''
PAYING_TWICE = '''
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from assent import gated
from tests.graphs_gated.agents import _leave


class State(MessagesState, total=False):
    log: str


@gated
@tool
def pay(log: str, price: int) -> str:
    """Pays."""
    _leave(log, f"paid {price}")
    return f"paid {price}"


def call(state: State) -> State:
    calls = [{"name": "pay", "args": {"log": state["log"], "price": price}, "id": "x"} for price in (1, 2)]
    return {"messages": [AIMessage("", tool_calls=calls)]}


def tell(state: State) -> State:
    for message in state["messages"][-2:]:
        _leave(state["log"], f"told {message.content}")
    return {}


builder = StateGraph(State)
builder.add_node("model", call)
builder.add_node("tools", ToolNode([pay], handle_tool_errors=False))
builder.add_node("tell", tell)
builder.add_edge(START, "model")
builder.add_edge("model", "tools")
builder.add_edge("tools", "tell")
graph = builder.compile()
'''
ASK = {"rules": [], "default": {"name": "rest", "then": "ask"}}
ALLOW = {"rules": [{"name": "free", "tool": "pay", "then": "allow"}], "default": {"name": "rest", "then": "ask"}}


@pytest.fixture(scope="module")
async def charging(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Arena]:
    folder = tmp_path_factory.mktemp("charging")
    async with open_arena(folder, module_database, config=_project(folder)) as arena:
        yield arena


def _project(folder: Path) -> Path:
    (folder / "charging_node.py").write_text(CHARGING_NODE)
    (folder / "charging_tool.py").write_text(CHARGING_TOOL)
    (folder / "looking_up.py").write_text(LOOKING_UP)
    (folder / "paying_twice.py").write_text(PAYING_TWICE)
    graphs = {
        "node": "./charging_node.py:graph",
        "tool": "./charging_tool.py:graph",
        "beside": "./looking_up.py:graph",
        "twice": "./paying_twice.py:graph",
    }
    config = folder / "langgraph.json"
    config.write_text(json.dumps({"dependencies": ["."], "graphs": graphs}))
    return config


async def _asked(arena: Arena, thread: str) -> list[str]:
    return [action["name"] for item in await arena.items(thread) for action in item["actions"]]


@pytest.mark.promise("P1", "P3", "P5")
@pytest.mark.parametrize(("first", "second"), [("approve", "approve"), ("approve", "reject"), ("reject", "approve")])
async def test_decision_about_a_call_does_not_answer_the_nodes_next_question(
    charging: Arena, first: str, second: str
) -> None:
    start = len(charging.effects)
    thread = await charging.stopped("node")
    assert (await charging.decide(await charging.item(thread), first)).status_code == 200
    await charging.rests(thread)
    assert await _asked(charging, thread) == ["charge"]
    assert (await charging.decide(await charging.item(thread), second)).status_code == 200
    await charging.rests(thread)
    assert charging.effects[start:][-1] == "told ['decisions']"


async def test_control_with_visible_answers_the_decision_answers_the_next_question(
    charging: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_position(monkeypatch)
    start = len(charging.effects)
    thread = await charging.stopped("node")
    assert (await charging.decide(await charging.item(thread), "reject")).status_code == 200
    await charging.rests(thread)
    assert await _asked(charging, thread) == []
    assert charging.effects[start:][-1] in ("told ['type']", "told ['message', 'type']"), "not the answer to the charge"


@pytest.mark.promise("P1")
@pytest.mark.parametrize("then", ["unchanged", "allow before the approval", "allow in the grace"])
async def test_approval_of_a_call_does_not_answer_the_tools_own_question(charging: Arena, then: str) -> None:
    start = len(charging.effects)
    await charging.policy(ASK)
    thread = await charging.thread()
    script = [{"name": "pay", "args": {"log": str(charging.log), "tag": then}}]
    await charging.run(thread, "tool", input={"messages": [{"role": "user", "content": json.dumps(script)}]})
    item = await charging.item(thread)
    assert [action["name"] for action in item["actions"]] == ["pay"]
    if then == "allow before the approval":
        await charging.policy(ALLOW)
    more: dict[str, Any] = {"grace_seconds": 1} if then == "allow in the grace" else {}
    assert (await charging.decide(item, "approve", **more)).status_code == 200
    if then == "allow in the grace":
        await charging.policy(ALLOW)
    await charging.rests(thread)
    assert charging.effects[start:] == []
    assert await _asked(charging, thread) == ["charge"]


async def _answered(arena: Arena, thread: str, verb: str) -> None:
    """Decides about the payment, or answers the lookup, whichever the thread asks."""
    item = await arena.item(thread)
    said: dict[str, Any] = {"message": "the blue one"} if item["dialect"] == "raw" else {}
    assert (await arena.decide(item, "respond" if said else verb, **said)).status_code == 200
    await arena.rests(thread)


@pytest.mark.promise("P1", "P3")
@pytest.mark.parametrize("verb", ["approve", "reject"])
async def test_decision_does_not_answer_an_ungated_tool_of_the_same_task(charging: Arena, verb: str) -> None:
    start = len(charging.effects)
    thread = await charging.stopped("beside", tag=verb)
    assert await _asked(charging, thread) == ["pay"]
    for _ in range(2):
        await _answered(charging, thread, verb)
    assert (await charging.state(thread))["status"] == "idle"
    effects = charging.effects[start:]
    assert [line for line in effects if line.startswith("told")] == ["told the blue one"]
    assert effects.count("paid") == (verb == "approve")


async def test_control_by_position_the_decision_answers_the_ungated_tool(
    charging: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_position(monkeypatch)
    start = len(charging.effects)
    thread = await charging.stopped("beside", tag="control")
    assert await _asked(charging, thread) == ["pay"]
    await _answered(charging, thread, "approve")
    assert "told {'type': 'approve'}" in charging.effects[start:]


@pytest.mark.promise("P1", "P3")
async def test_two_calls_under_one_call_id_get_their_own_decisions(charging: Arena) -> None:
    start = len(charging.effects)
    thread = await charging.stopped("twice")
    for _ in range(2):
        item = await charging.item(thread)
        price = item["actions"][0]["args"]["price"]
        said: dict[str, Any] = {"message": "no"} if price == 2 else {}
        assert (await charging.decide(item, "reject" if said else "approve", **said)).status_code == 200
        await charging.rests(thread)
    effects = charging.effects[start:]
    rejected = "told User rejected the tool call for `pay` with reason: no"
    assert effects == ["paid 1", "told paid 1", rejected]


@pytest.mark.promise("P1", "P5")
@pytest.mark.parametrize("second", ["approve", "reject"])
async def test_edit_of_a_call_does_not_approve_an_equal_call_under_its_id(charging: Arena, second: str) -> None:
    start = len(charging.effects)
    thread = await charging.stopped("twice")
    item = await charging.item(thread)
    [action] = item["actions"]
    assert action["args"]["price"] == 1
    edit = {"key": action["key"], "verb": "edit", "args": {**action["args"], "price": 2}}
    assert (await charging.decide(item, "edit", actions=[edit])).status_code == 200
    await charging.rests(thread)
    said: dict[str, Any] = {"message": "no"} if second == "reject" else {}
    assert (await charging.decide(await charging.item(thread), second, **said)).status_code == 200
    await charging.rests(thread)
    rejected = "told User rejected the tool call for `pay` with reason: no"
    ended = ["told paid 2", rejected] if said else ["paid 2", "told paid 2", "told paid 2"]
    assert charging.effects[start:] == ["paid 2", *ended]


async def test_control_by_arguments_alone_the_edit_approves_both_calls(
    charging: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grant_scopes, "answers", lambda tx, grant, call: True)
    start = len(charging.effects)
    thread = await charging.stopped("twice")
    item = await charging.item(thread)
    [action] = item["actions"]
    edit = {"key": action["key"], "verb": "edit", "args": {**action["args"], "price": 2}}
    assert (await charging.decide(item, "edit", actions=[edit])).status_code == 200
    await charging.rests(thread)
    assert charging.effects[start:] == ["paid 2", "told paid 2", "told paid 2"]
