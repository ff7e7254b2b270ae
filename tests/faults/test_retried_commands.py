"""The goto and update of a run's command apply once, however many attempts the run takes.

LangGraph stores them beside the newest checkpoint, and adds them again when the same command starts another attempt.
"""

from __future__ import annotations

from typing import Any

import pytest

from assent.runs.engine import runner
from tests.faults.arena import Arena, Json

CLARIFIED = {"responses": [{"call_id": "1", "response": "this one"}]}
UPDATE = {"notes": ["updated"]}
STEERED: list[Json] = [
    {"update": UPDATE, "goto": "work"},
    {"update": [["notes", ["updated"]]], "goto": ["work"]},
    {"update": UPDATE, "goto": {"node": "work", "input": {}}},
]


async def steered(arena: Arena, command: Json, **more: Any) -> list[str]:
    thread = await arena.thread()
    assert (await arena.run(thread, "retried", input={"notes": ["first"]})).status_code == 200
    assert (await arena.run(thread, "retried", command=command, **more)).status_code == 200
    await arena.rests(thread)
    notes: list[str] = (await arena.agent.get(f"/threads/{thread}/state")).json()["values"]["notes"]
    return notes


@pytest.mark.parametrize("command", STEERED, ids=str)
async def test_command_of_a_retried_run_applies_once(arena: Arena, command: Json) -> None:
    assert await steered(arena, command) == ["first", "updated", "worked"]


async def test_control_command_that_starts_each_attempt_applies_twice(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_is_commanded", lambda tx, run: False)
    assert await steered(arena, STEERED[0]) == ["first", "updated", "updated", "worked"]


async def test_command_of_a_retried_answer_applies_once(arena: Arena) -> None:
    thread = await arena.thread()
    await arena.run(thread, "retried", input={"notes": ["first"], "asks": True})
    answered = await arena.run(thread, "retried", command={"resume": CLARIFIED, **STEERED[0]})
    assert answered.status_code == 200, answered.text
    await arena.rests(thread)
    values = (await arena.agent.get(f"/threads/{thread}/state")).json()["values"]
    assert values["notes"] == ["first", "updated", "worked"]
    assert values["answer"] == CLARIFIED
