"""Names that no index or column holds: they stop nobody else's questions, and no decision."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy.exc import DBAPIError

from assent.errors import Invalid
from assent.kernel.store.transaction import Tx
from assent.threads.rows.remote import remote_threads
from assent.threads.rows.remote.remote_threads import RemoteThread
from tests.faults.arena import Arena, Json
from tests.faults.far import PAY, Far

SCRIPT = "".join(chr(0x4E00 + (number * 7919) % 0x5000) for number in range(6_000))
"""Hardly compressible, as Postgres compresses what it indexes."""
ODD = ["a\0b", "é" * 3_000, SCRIPT]


@pytest.mark.promise("P12")
@pytest.mark.parametrize("odd", ODD, ids=["NUL", "long", "incompressible"])
async def test_odd_names_of_one_thread_hide_no_question_of_its_deployment(
    following: tuple[Arena, Far], odd: str
) -> None:
    arena, far = following
    named = far.ask(PAY)
    far.facts[named] = {"metadata": {"graph_id": odd, "assistant_id": odd}, "updated_at": odd}
    far.asked[odd] = {"id": uuid4().hex, "value": PAY}
    far.asked[str(uuid4())] = {"id": odd, "value": PAY}
    assert (await far.item(arena, named))["source"]["graph_id"] is None
    await far.item(arena, far.ask(PAY))
    far.asked.clear()


async def test_control_a_database_refuses_such_names(following: tuple[Arena, Far]) -> None:
    arena, _ = following
    [deployment] = (await (await _admin(arena)).get("/api/deployments")).json()
    thread = RemoteThread(deployment["id"], str(uuid4()), str(uuid4()), "a\0b", None, "", waits=False, settled=True)

    def save(tx: Tx) -> bool:
        return remote_threads.save(tx, thread)

    if arena.house.settings.database_file is not None:  # SQLite stores anything
        assert await arena.house.services.store.write("default", save)
        return
    with pytest.raises(Invalid, match="NUL"):
        await arena.house.services.store.write("default", save)


async def _admin(arena: Arena) -> Any:
    return arena.house.client(await arena.house.key_of("admin"))


@pytest.mark.parametrize("field", ["thread_id", "interrupt_id"])
async def test_gate_elsewhere_with_a_long_id_is_refused(following: tuple[Arena, Far], field: str) -> None:
    arena, _ = following
    question = {"thread_id": str(uuid4()), "interrupt_id": uuid4().hex, "value": {"gate": "assent", "x": 1}}
    for length, status in ((1_000, 422), (266, 200)):
        asked = await arena.agent.post("/api/gate/questions", json={**question, field: SCRIPT[:length]})
        assert asked.status_code == status, asked.text


async def long_call(arena: Arena) -> Json:
    """The item of a call whose id carries a signature, as those of some models do."""
    thread = await arena.thread()
    said = {"messages": [{"role": "user", "content": "[]"}]}
    assert (await arena.run(thread, "gated", input=said)).status_code == 200
    call = {"name": "act", "args": {"log": str(arena.log), "tag": "long"}, "id": SCRIPT}
    state = {"values": {"messages": [{"type": "ai", "content": "", "tool_calls": [call]}]}, "as_node": "model"}
    stored = await arena.agent.post(f"/threads/{thread}/state", json=state)
    assert stored.status_code == 200, stored.text
    assert (await arena.run(thread, "gated", input=None)).status_code == 200
    item: Json = await arena.item(thread)
    assert SCRIPT in json.dumps(item, ensure_ascii=False)
    return item


@pytest.mark.promise("P1")
async def test_call_with_a_long_id_is_approved_and_made_once(following: tuple[Arena, Far]) -> None:
    arena, _ = following
    before, item = len(arena.effects), await long_call(arena)
    decided = await arena.decide(item, "approve")
    assert decided.status_code == 200, decided.text
    await arena.rests(item["source"]["thread_id"])
    assert len(arena.effects) == before + 1


async def test_control_an_index_of_postgres_refuses_such_ids(following: tuple[Arena, Far]) -> None:
    arena, _ = following
    await arena.decide(await long_call(arena), "approve")
    if arena.house.settings.database_file is None:
        with pytest.raises(DBAPIError, match="index row"):
            await arena.house.services.store.write(None, _index_call_ids)


def _index_call_ids(tx: Tx) -> None:
    tx.sql("CREATE INDEX of_calls ON grants (call_id)")
