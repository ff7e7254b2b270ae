"""A question becomes another one under its interrupt's id: whoever may answer the one may not approve the other."""

from __future__ import annotations

import pytest

from assent.identity.model.access import operator
from tests.faults.arena import Arena, Json

pytestmark = pytest.mark.promise("P6")

EVIL = {"configurable": {"account": "EVIL"}}
SECOND = {"responses": [{"call_id": "2", "response": "x"}]}


async def changed(arena: Arena) -> tuple[str, Json]:
    """A thread whose question has become an approval, and the item."""
    thread = await arena.thread()
    asked = await arena.run(thread, "two", input={"log": str(arena.log), "tag": "asked"})
    questions = asked.json()["__interrupt__"]
    second = next(question["id"] for question in questions if question["value"]["clarifications"][0]["call_id"] == "2")
    done = await arena.run(thread, "two", command={"resume": {second: SECOND}}, config=EVIL)
    assert done.status_code == 200, done.text
    return thread, await arena.item(thread)


async def test_item_shows_the_question_of_its_latest_revision(arena: Arena) -> None:
    _, item = await changed(arena)
    assert (item["revision"], item["gated"]) == (2, True)
    assert (item["dialect"], item["type"]) == ("hitl_request", "tool")
    assert "pay" in item["title"]


async def test_agent_cannot_approve_a_question_that_became_an_approval(arena: Arena) -> None:
    thread, item = await changed(arena)
    for client in (arena.agent, arena.other):
        refused = await arena.decide(item, "approve", client)
        assert refused.status_code == 403, refused.text
    assert arena.effects == []
    assert (await arena.decide(item, "approve", arena.ana)).status_code == 200  # the control
    await arena.rests(thread)
    assert arena.effects == ["paid EVIL"]


async def test_agent_cannot_decide_advisory_approvals_in_the_inbox(dev_arena: Arena) -> None:
    thread, item = await changed(dev_arena)
    assert not item["gated"]
    refused = await dev_arena.decide(item, "approve", dev_arena.agent)
    assert refused.status_code == 403, refused.text
    answer = {item["source"]["interrupt_id"]: {"decisions": [{"type": "approve"}]}}
    assert (await dev_arena.run(thread, "two", command={"resume": answer}, config=EVIL)).is_success  # the control
    assert dev_arena.effects == ["paid EVIL"]


async def test_answer_given_before_the_question_became_an_approval_is_retracted(arena: Arena) -> None:
    await arena.policy({"default": {"name": "two", "then": "ask", "approvals": 2}})
    _, item = await changed(arena)
    name = f"dora-{item['id'][:8]}"
    dora = arena.house.client(await arena.house.person(name))
    assert (await arena.decide(item, "approve", dora)).status_code == 200
    await arena.house.services.users.change(operator(), name, disabled=True)
    now = (await arena.ana.get(f"/api/inbox/items/{item['id']}")).json()
    assert (now["status"], now["approvals"]["given"]) == ("PENDING", 0)
