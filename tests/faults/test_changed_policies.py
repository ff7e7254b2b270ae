"""A call that was asked about stays asked about: a decision, an expiry or a withdrawal counts, though a rule of the
policy allows such calls by now."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from assent.review.deadlines import Deadlines
from tests.faults.arena import Arena

ALLOW = {"rules": [{"name": "free", "tool": "act", "then": "allow"}], "default": {"name": "rest", "then": "ask"}}
ASK = {"rules": [], "default": {"name": "rest", "then": "ask"}}


async def _asked(arena: Arena, thread: str) -> Any:
    script = json.dumps([{"name": "act", "args": {"log": str(arena.log), "tag": "as asked"}}])
    await arena.run(thread, "gated", input={"messages": [{"role": "user", "content": script}]})
    return await arena.item(thread)


@pytest.mark.promise("P1", "P3")
@pytest.mark.parametrize("verb", ["reject", "edit", "respond"])
@pytest.mark.parametrize("policy", ["unchanged", "allow before the decision", "allow in the grace"])
async def test_decision_counts_though_the_policy_allows_the_call_by_now(arena: Arena, verb: str, policy: str) -> None:
    thread = await arena.thread()
    item = await _asked(arena, thread)
    if policy == "allow before the decision":
        await arena.policy(ALLOW)
    said = {"key": item["actions"][0]["key"], "verb": verb}
    said |= {"args": {"log": str(arena.log), "tag": "as edited"}} if verb == "edit" else {"message": "no, never"}
    more: dict[str, Any] = {"grace_seconds": 1} if policy == "allow in the grace" else {}
    decided = await arena.decide(item, verb, actions=[said], **more)
    assert decided.status_code == 200, decided.text
    if policy == "allow in the grace":
        await arena.policy(ALLOW)
    await arena.rests(thread)
    assert arena.effects == (["as edited"] if verb == "edit" else [])


@pytest.mark.promise("P2")
@pytest.mark.parametrize("policy", [ASK, ALLOW], ids=["unchanged", "allow"])
async def test_one_approval_starts_one_call_under_changing_policies(arena: Arena, policy: Any) -> None:
    """A call that ran freely beside its approval left a grant over, which a replay used."""
    thread = await arena.thread()
    item = await _asked(arena, thread)
    await arena.policy(policy)
    assert (await arena.decide(item, "approve")).status_code == 200
    await arena.rests(thread)
    assert arena.effects == ["as asked"]
    await arena.policy(ASK)
    past = (await arena.agent.post(f"/threads/{thread}/history", json={"limit": 20})).json()
    before = next(state for state in past if state["next"] == ["tools"])
    await arena.run(thread, "gated", input=None, checkpoint_id=before["checkpoint"]["checkpoint_id"])
    await arena.rests(thread)
    assert arena.effects == ["as asked"]


@pytest.mark.promise("P7")
@pytest.mark.parametrize("end", ["cancellation", "expiry"])
async def test_call_whose_question_ended_without_a_decision_does_not_run_when_allowed(arena: Arena, end: str) -> None:
    thread = await arena.thread()
    item = await _asked(arena, thread)
    url = f"/api/inbox/items/{item['id']}"
    await arena.policy(ALLOW)
    if end == "cancellation":
        assert (await arena.ana.post(f"{url}/cancellation", json={"notes": "stop it"})).status_code == 200
    else:
        arena.house.pass_time(timedelta(days=8))
        await Deadlines(arena.house.services.store).look()
    assert (await arena.ana.get(url)).json()["status"] in ("CANCELLED", "EXPIRED")
    await arena.rests(thread)
    assert arena.effects == []
    arena.house.reset_time()


async def test_control_a_call_that_nobody_was_asked_about_runs_when_allowed(arena: Arena) -> None:
    await arena.policy(ALLOW)
    thread = await arena.thread()
    script = json.dumps([{"name": "act", "args": {"log": str(arena.log), "tag": "free"}}])
    await arena.run(thread, "gated", input={"messages": [{"role": "user", "content": script}]})
    assert arena.effects == ["free"]
