"""Questions in the middle of a call: what a tool did before its question is not done again under one approval."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastmcp.server.middleware import Middleware

from assent import LocalInbox
from assent.assistant.failures import McpLost
from assent.assistant.mcp import client as mcp_client
from assent.assistant.mcp.client import McpClient, TimeLimits
from assent.assistant.mcp.questions import Asked
from assent.assistant.mcp.servers import McpServers
from assent.review.model.questions import Verb, Verdict
from tests.assistant.desk import CONFIG, Desk, nodes_of
from tests.assistant.models import call, calls
from tests.assistant.register import Register

THREE = Verdict("0", Verb.ACCEPT, args={"value": 3})
Opened = Callable[..., Desk]


@pytest.fixture
def register(folder: Path) -> Register:
    return Register(folder / "register")


@pytest.fixture
async def opened(register: Register, inbox: LocalInbox, folder: Path) -> AsyncIterator[Opened]:
    """A desk whose assistant works with the register."""
    desks: list[Desk] = []

    def open_desk(tool: str, **options: Any) -> Desk:
        script = calls(call(tool, "c", name="ana"))
        desks.append(Desk(folder / "gate.db", nodes_of(register.server, inbox, script, **options)))
        return desks[-1]

    yield open_desk
    for desk in desks:
        await desk.nodes.client.close()


async def lose_the_process(there: Desk) -> None:
    """What a call held is gone, as after a kill."""
    await there.nodes.client.close()


@pytest.mark.promise("P2")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_call_goes_on_after_its_question(opened: Opened, register: Register, mode: str) -> None:
    there = opened("pushes", mode=mode)
    await there.say("enter")
    assert (await there.approve())["message"] == "How many?"
    assert register.effects == ["ana-before"]
    assert await there.answer(THREE) is None
    assert register.effects == ["ana-before", "ana-after"]


async def test_control_call_without_its_connection_repeats_its_effects(
    opened: Opened, register: Register, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that makes the call again with the answers, as ours did before."""
    there = opened("pushes", mode="legacy")

    async def again(client: McpClient, name: str, args: Any, paused: Any = None, answers: Any = None) -> Any:
        return await original(client, name, args, None, answers)

    original = McpClient.call
    monkeypatch.setattr(McpClient, "call", again)
    await there.say("enter")
    await there.approve()
    assert await there.answer(THREE) is None
    assert register.effects == ["ana-before", "ana-before", "ana-after"]


async def test_same_question_twice_gets_two_answers(opened: Opened, register: Register) -> None:
    there = opened("twice")
    await there.say("enter")
    assert (await there.approve())["message"] == "How many?"
    assert (await there.answer(THREE))["message"] == "How many?"
    assert await there.answer(Verdict("0", Verb.ACCEPT, args={"value": 4})) is None
    assert "data=3" in str(there.messages[-2].content)
    assert "data=4" in str(there.messages[-2].content)
    assert register.effects == ["ana-before"]


async def test_round_continues_with_the_state_of_the_server(opened: Opened, register: Register) -> None:
    there = opened("rounds", mode="2026-07-28")
    await there.say("enter")
    assert (await there.approve())["message"] == "How many?"
    await lose_the_process(there)  # nothing is held between rounds
    assert await there.answer(THREE) is None
    assert register.effects == ["ana-before", "ana-after"]


async def test_tool_that_asks_in_rounds_is_found_out_once(opened: Opened, register: Register) -> None:
    """By default the handshake comes first. The tool's first call ends with an error, not with a second round one."""
    there = opened("rounds")
    await there.say("enter")
    assert await there.approve() is None
    assert "needs another connection" in str(there.messages[-2].content)
    assert register.effects == ["ana-before"]
    there.model.script.append(calls(call("rounds", "d", name="ben")))
    await there.say("again")
    assert (await there.approve())["message"] == "How many?"
    assert await there.answer(THREE) is None
    assert register.effects == ["ana-before", "ben-before", "ben-after"]


@pytest.mark.promise("P2")
@pytest.mark.parametrize("outcome", ["done", "run_again", "abandon"])
async def test_call_that_was_lost_with_its_process_is_in_doubt(
    opened: Opened, register: Register, outcome: str
) -> None:
    there = opened("pushes")
    await there.say("enter")
    await there.approve()
    await lose_the_process(there)
    with pytest.raises(McpLost, match="lost with its process"):
        await there.answer(THREE)
    assert (await there.run_again())["kind"] == "assent.in_doubt"
    assert register.effects == ["ana-before"]
    there.settle(outcome)
    assert await there.run_again() is None
    again = ["ana-before", "ana-after"] if outcome == "run_again" else []  # with the answer that the person gave
    assert register.effects == ["ana-before", *again]


@pytest.mark.promise("P2")
@pytest.mark.parametrize("paused", [{}, {"c": {"goes_on": "round", "token": None, "questions": {}}}])
async def test_edited_state_cannot_repeat_a_paused_call(opened: Opened, register: Register, paused: Any) -> None:
    there = opened("pushes")
    await there.say("enter")
    await there.approve()
    config = await there.graph.aupdate_state(CONFIG, {"paused": paused, "elicitations": []}, as_node="oauth_needed")
    with pytest.raises(McpLost, match="no longer says how the call continues"):
        await there.graph.ainvoke(None, config, durability="sync")
    assert register.effects == ["ana-before"]


async def test_questions_of_two_calls_reach_their_calls(inbox: LocalInbox, folder: Path, register: Register) -> None:
    script = calls(call("pushes", "a", name="ana"), call("plain", "p", name="eve"), call("twice", "b", name="ben"))
    there = Desk(folder / "gate.db", nodes_of(register.server, inbox, script))
    await there.say("enter")
    await there.answer(*(Verdict(str(number), Verb.APPROVE) for number in range(3)))
    assert register.effects == ["ana-before", "eve-plain", "ben-before"]
    assert await there.answer(THREE) is not None
    assert register.effects == ["ana-before", "eve-plain", "ben-before", "ana-after"]
    assert await there.answer(THREE) is None
    assert len(register.effects) == 4
    await there.nodes.client.close()


async def test_call_over_its_time_limit_is_in_doubt(inbox: LocalInbox, folder: Path, register: Register) -> None:
    class Slow(Middleware):
        async def on_call_tool(self, context: Any, call_next: Any) -> Any:
            await asyncio.sleep(30)

    register.server.add_middleware(Slow())
    limits = TimeLimits(by_tool={"pl*": 0.2})
    client = McpClient(lambda: register.server, name="register", limits=limits)
    nodes = nodes_of(register.server, inbox, calls(call("plain", "c", name="ana")))
    there = Desk(folder / "gate.db", replace(nodes, client=McpServers({"register": client})))
    await there.say("enter")
    with pytest.raises(McpLost, match="did not finish plain in time"):
        await there.approve()
    assert (await there.run_again())["kind"] == "assent.in_doubt"
    await client.close()


async def test_too_many_waiting_calls_drop_the_oldest(register: Register, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_client, "_MOST_HELD", 1)
    client = McpClient(lambda: register.server, name="register")
    paused = []
    for name in ("ana", "ben"):
        with pytest.raises(Asked) as asked:
            await client.call("pushes", {"name": name})
        paused.append(asked.value)
    answers = [{key: {"action": "accept", "content": {"value": 1}} for key in asked.questions} for asked in paused]
    with pytest.raises(McpLost):
        await client.call("pushes", {"name": "ana"}, paused[0].paused, answers[0])
    assert "data=1" in (await client.call("pushes", {"name": "ben"}, paused[1].paused, answers[1])).text
    await client.close()
