"""An agent's key claims, by the routes of gates elsewhere, what others ask: by the ids of their threads, interrupts and
items, which every agent of the tenant can read."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from assent.gate.elsewhere import desk
from assent.gate.task import question_id
from assent.review import thread_items
from assent.review.model.grants import GATE, ITEM, MARKS, Call
from assent.review.rows import items
from assent.review.threads import decided
from tests.faults.arena import Arena, Json
from tests.faults.far import PAY, Far, call
from tests.faults.held import Held
from tests.waiting import until

HARMLESS = call("greet", who="bob")
SEPARATE = {"default": {"name": "apart", "then": "ask", "separate_duties": True}}


async def claim(arena: Arena, thread_id: str, interrupt_id: str, value: Any = HARMLESS, **more: Any) -> Json:
    """The item of a gate's question by the other agent, which gives its thread and its interrupt these ids."""
    marks = {"type": "object", MARKS: {"gate": GATE, "tool_call_id": "c"}}
    named = {"thread_id": thread_id, "interrupt_id": interrupt_id, "response_schema": marks}
    asked = await arena.other.post("/api/gate/questions", json={**named, "value": value, **more})
    assert asked.status_code == 200, asked.text
    item_id = asked.json()["response_schema"][MARKS][ITEM]
    return await shown(arena, item_id)


async def shown(arena: Arena, item_id: str) -> Json:
    body: Json = (await arena.ana.get(f"/api/inbox/items/{item_id}")).json()
    return body


async def approved(arena: Arena, item: Json) -> None:
    """The decision is made, and has been delivered wherever it goes."""
    decision = await arena.decide(item, "approve")
    assert decision.status_code == 200, decision.text

    async def delivered() -> bool:
        sent = (await arena.ana.get("/api/deliveries")).json()["items"]
        return all(row["status"] == "delivered" for row in sent if row["subject"] == f"item:{item['id']}")

    await until(delivered, "the decision is not delivered")


@pytest.mark.promise("P1")
@pytest.mark.promise("P5")
async def test_agent_neither_ends_nor_replaces_the_question_of_a_deployment(following: tuple[Arena, Far]) -> None:
    arena, far = following
    thread_id = far.ask(PAY)
    victim = await far.item(arena, thread_id)
    named = (victim["source"]["remote"]["thread_id"], victim["source"]["interrupt_id"])
    await claim(arena, named[0], uuid4().hex, before=[named[1]])
    await approved(arena, await claim(arena, *named))
    assert far.answers == [], "approving the call that was shown resumes another one"
    assert await shown(arena, victim["id"]) == victim
    assert (await arena.decide(victim, "reject", message="no")).status_code == 200
    await until(_has_answers(far, 1), "the deployment gets no answer")
    assert far.answers.pop()["kwargs"]["command"]["resume"][named[1]]["decisions"][0]["type"] == "reject"


@pytest.mark.promise("P5")
async def test_control_on_the_same_thread_the_question_is_ended(
    following: tuple[Arena, Far], monkeypatch: pytest.MonkeyPatch
) -> None:
    arena, far = following
    victim = await far.item(arena, far.ask(PAY))
    here, remote = victim["source"]["thread_id"], victim["source"]["remote"]["thread_id"]
    monkeypatch.setattr(desk, "_thread_of", lambda *_: here)
    await claim(arena, remote, uuid4().hex)
    assert (await shown(arena, victim["id"]))["status"] == "PENDING", "a claim has questions of its own"
    monkeypatch.setattr(thread_items, "_present", lambda tx, waiting: items.open_of_thread(tx, waiting.thread_id))
    await claim(arena, remote, uuid4().hex, before=[victim["source"]["interrupt_id"]])
    assert (await shown(arena, victim["id"]))["status"] == "CANCELLED"


@pytest.mark.promise("P5")
async def test_claimed_interrupt_id_hides_no_question(following: tuple[Arena, Far]) -> None:
    arena, far = following
    thread_id, interrupt_id = str(uuid4()), uuid4().hex
    claimed = await claim(arena, thread_id, interrupt_id)
    far.asked[thread_id] = {"id": interrupt_id, "value": PAY}
    item = await far.item(arena, thread_id)
    assert item["actions"][0]["name"] == "pay"
    assert await shown(arena, claimed["id"]) == claimed


@pytest.mark.promise("P10")
async def test_deployment_claims_no_item_of_a_gate_on_another_thread(following: tuple[Arena, Far]) -> None:
    arena, far = following
    thread_id, interrupt_id = str(uuid4()), uuid4().hex
    asked = await claim(arena, str(uuid4()), interrupt_id)
    far.asked[thread_id] = {"id": interrupt_id, "value": {**PAY, "gate": GATE, ITEM: asked["id"]}}
    forged = await far.item(arena, thread_id)
    assert forged["id"] != asked["id"]
    far.asked[thread_id] = None
    await until(_has_status(arena, forged, "CANCELLED"), "the question stays open")
    assert await shown(arena, asked["id"]) == asked


async def test_control_gate_on_the_deployment_is_woken_and_fetches_its_answer(following: tuple[Arena, Far]) -> None:
    """It is woken without the answer, which would be one to whatever else asks there."""
    arena, far = following
    thread_id, interrupt_id = str(uuid4()), uuid4().hex
    asked = await claim(arena, thread_id, interrupt_id)
    far.asked[thread_id] = {"id": interrupt_id, "value": {**HARMLESS, "gate": GATE, ITEM: asked["id"]}}
    item = await far.item(arena, thread_id)
    assert item["id"] == asked["id"]
    await approved(arena, item)
    await until(_has_answers(far, 1), "the thread is not woken")
    assert far.answers.pop()["kwargs"]["command"] == {"resume": {interrupt_id: {ITEM: asked["id"]}}}


@pytest.mark.promise("P5")
async def test_gate_on_a_thread_that_has_asked_before_is_woken_and_ends(following: tuple[Arena, Far]) -> None:
    arena, far = following
    thread_id, interrupt_id = far.ask("first?"), uuid4().hex
    await far.item(arena, thread_id)
    asked = await claim(arena, thread_id, interrupt_id)
    question = {"id": interrupt_id, "value": {**HARMLESS, "gate": GATE, ITEM: asked["id"]}}
    far.asked[thread_id] = question
    assert (await far.item(arena, thread_id))["id"] == asked["id"]
    far.asked[thread_id] = None
    await until(_has_status(arena, asked, "CANCELLED"), "its question stays open")


@pytest.mark.promise("P10")
async def test_claim_of_a_thread_guesses_no_secret_of_it(
    following: tuple[Arena, Far], monkeypatch: pytest.MonkeyPatch
) -> None:
    arena, far = following
    victim = await far.item(arena, far.ask(PAY))
    guess = call("greet", who="bob")
    guess["action_requests"][0]["description"] = "is it 4711 or 4712?"
    remote, here = victim["source"]["remote"]["thread_id"], victim["source"]["thread_id"]
    guessed = await claim(arena, remote, uuid4().hex, guess)
    assert guessed["summary"] == "is it 4711 or 4712?"
    monkeypatch.setattr(desk, "_thread_of", lambda *_: here)
    told = await claim(arena, remote, uuid4().hex, guess)
    assert "4711" not in told["summary"], "the control: on the thread itself"
    assert "4712" in told["summary"]


async def influenced(arena: Arena, **said: Any) -> Json:
    """A gate's question that follows an answer of ana's, which its process has fetched."""
    thread_id = str(uuid4())
    made = Call(thread_id, "c", "pay", {}, "t")
    value = {"type": "tool_approval", "gate": GATE, "tool_call_id": "c", "name": "pay", "args": {}}
    first = await gate_item(arena, thread_id, question_id(made, 0), value)
    assert (await arena.decide(first, "reject", **said)).status_code == 200
    look = {"call": {"thread_id": thread_id, "task": "t", "tool": "pay", "args": {}, "call_id": "c"}}

    async def fetched() -> bool:
        found = (await arena.agent.post("/api/gate/look", json=look)).json()
        return bool(found["questions"]["answered"])

    await until(fetched, "the answer cannot be fetched")
    return await gate_item(arena, thread_id, uuid4().hex, {**value, "args": {"to": "ana"}})


async def gate_item(arena: Arena, thread_id: str, interrupt_id: str, value: Json) -> Json:
    body = {"thread_id": thread_id, "interrupt_id": interrupt_id, "value": value}
    asked = await arena.agent.post("/api/gate/questions", json=body)
    assert asked.status_code == 200, asked.text
    return await shown(arena, asked.json()["value"][ITEM])


@pytest.mark.promise("P6")
async def test_person_who_influenced_a_process_elsewhere_does_not_decide_its_next_question(
    following: tuple[Arena, Far], monkeypatch: pytest.MonkeyPatch
) -> None:
    arena, _ = following
    await arena.policy(SEPARATE)
    item = await influenced(arena, message="pay ana instead")
    refused = await arena.decide(item, "approve")
    assert (refused.status_code, refused.json()["code"]) == (403, "self_approval")
    assert (await arena.decide(item, "approve", arena.ben)).status_code == 200
    monkeypatch.setattr(decided, "note_contribution", lambda *_: None)
    item = await influenced(arena, message="pay ana instead")
    assert (await arena.decide(item, "approve")).status_code == 200, "the control: without contributors"


async def writes(arena: Arena) -> bool:
    """Whether another caller's write ends within a second."""
    try:
        return bool((await asyncio.wait_for(arena.agent.post("/threads", json={}), 1)).status_code == 200)
    except TimeoutError:
        return False


@pytest.mark.parametrize("asker", ["gate", "deployment"])
async def test_slow_check_of_a_question_holds_up_no_writer(
    following: tuple[Arena, Far], held: Held, asker: str
) -> None:
    arena, far = following
    asking = asyncio.create_task(claim(arena, str(uuid4()), uuid4().hex) if asker == "gate" else _asked(arena, far))
    await held.begins()
    assert await writes(arena)
    held.release.set()
    await asking


async def _asked(arena: Arena, far: Far) -> Json:
    return await far.item(arena, far.ask(PAY))


async def test_control_within_the_transaction_it_holds_up_the_writer_of_sqlite(
    following: tuple[Arena, Far], held: Held
) -> None:
    arena, _ = following
    checking = asyncio.create_task(arena.house.services.store.write("default", held.flaw))
    await held.begins()
    assert await writes(arena) == (arena.house.settings.database_file is None)
    held.release.set()
    await checking


def _has_answers(far: Far, count: int) -> Any:
    async def has() -> bool:
        return len(far.answers) == count

    return has


def _has_status(arena: Arena, item: Json, status: str) -> Any:
    async def has() -> bool:
        return bool((await shown(arena, item["id"]))["status"] == status)

    return has
