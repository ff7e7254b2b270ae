"""An approved call that stops to ask something itself is made again when that is answered, and not before: each time it
begins from its first line."""

from __future__ import annotations

from typing import Any

import pytest

from assent.gate.records import Answered
from tests.faults.arena import Arena, Json

pytestmark = pytest.mark.promise("P2")

CLARIFIED: Json = {"responses": [{"call_id": "1", "response": "this one"}]}
AGAIN: tuple[Json, ...] = (
    {},
    *({"multitask_strategy": interrupt} for interrupt in ("interrupt", "rollback", "enqueue")),
)


async def paused(arena: Arena) -> str:
    thread = await arena.thread()
    await arena.run(thread, "ordering", input={"log": str(arena.log), "tag": "t"})
    assert (await arena.decide(await arena.item(thread), "approve")).status_code == 200
    await arena.rests(thread)
    assert arena.effects == ["ordered t"]
    return thread


async def entered_again(arena: Arena, thread: str) -> None:
    for more in AGAIN:
        await arena.run(thread, "ordering", input=None, how="", **more)
        await arena.rests(thread)


async def test_call_that_asks_is_not_begun_again_without_an_answer(arena: Arena) -> None:
    thread = await paused(arena)
    await entered_again(arena, thread)
    assert arena.effects == ["ordered t"]
    assert (await arena.item(thread))["dialect"] == "clarification", "it still asks"


async def test_call_that_was_entered_without_an_answer_is_made_once_it_is_answered(arena: Arena) -> None:
    thread = await paused(arena)
    await entered_again(arena, thread)
    answered = await arena.run(thread, "ordering", command={"resume": CLARIFIED})
    assert answered.status_code == 200, answered.text
    assert (await arena.rests(thread))["status"] == "idle"
    assert arena.effects == ["ordered t", "ordered t", "finished t"]


async def test_control_without_the_defence_each_run_starts_the_call_again(arena: Arena, monkeypatch: Any) -> None:
    monkeypatch.setattr(Answered, "includes", lambda answered, interrupt_id: True)
    thread = await paused(arena)
    await entered_again(arena, thread)
    assert len(arena.effects) > 1
