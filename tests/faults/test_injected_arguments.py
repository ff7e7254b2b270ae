"""What is shown is what runs, through a server on either database: a value that the model gives under a name which only
LangGraph should fill in is shown and hashed. `tests/gate/test_injection.py` has the many ways to give one.
"""

from __future__ import annotations

import pytest

from tests.faults.arena import Arena, Json


def calling(arena: Arena, account: str) -> Json:
    call = {"name": "pay", "args": {"log": str(arena.log), "account": account}, "id": "call-1"}
    return {"messages": [{"type": "ai", "id": "m", "content": "", "tool_calls": [call]}]}


@pytest.mark.promise("P1", "P5")
async def test_value_under_an_injected_name_is_shown_and_runs_as_shown(arena: Arena) -> None:
    thread = await arena.thread()
    assert (await arena.run(thread, "injecting", input=calling(arena, "mallory"))).status_code == 200
    assert arena.effects == []
    item = await arena.item(thread)
    assert item["actions"][0]["args"]["account"] == "mallory"
    assert (await arena.decide(item, "approve")).status_code == 200
    await arena.rests(thread)
    assert arena.effects == ["mallory"]


@pytest.mark.promise("P1", "P5")
async def test_approval_does_not_cover_another_value_under_an_injected_name(arena: Arena) -> None:
    thread = await arena.thread()
    assert (await arena.run(thread, "injecting", input=calling(arena, "bob"))).status_code == 200
    first = await arena.item(thread)
    edit = {"values": calling(arena, "mallory"), "as_node": "__start__"}
    assert (await arena.agent.post(f"/threads/{thread}/state", json=edit)).status_code == 409
    assert (await arena.ben.post(f"/threads/{thread}/state", json=edit)).status_code == 200
    await arena.decide(first, "approve")
    await arena.run(thread, "injecting", arena.ben, input=None)
    await arena.rests(thread)
    assert arena.effects == []


async def test_control_without_the_gate_the_models_value_runs_unseen(arena: Arena) -> None:
    thread = await arena.thread()
    assert (await arena.run(thread, "injecting_free", input=calling(arena, "mallory"))).status_code == 200
    assert arena.effects == ["mallory"]
