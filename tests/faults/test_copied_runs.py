"""A copy of a thread goes on as its maker: with nothing that another agent's run was given for itself."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from assent.runs import continuation
from tests.faults.arena import Arena, Json

pytestmark = pytest.mark.promise("P10")

HOOK = "https://hooks.invalid/h?token=HOOK-TOKEN"
GIVEN: Json = {
    "webhook": HOOK,
    "config": {"configurable": {"account": "payroll-of-a", "region": "REGION-OF-A"}},
    "metadata": {"case": "CASE-OF-A"},
}
OF_ANOTHER = ("HOOK-TOKEN", "payroll-of-a", "REGION-OF-A", "CASE-OF-A")


async def stands(arena: Arena, **more: Any) -> str:
    thread = await arena.thread(visibility="shared")
    done = await arena.run(thread, "spending", input={"log": str(arena.log), "tag": "paid"}, **{**GIVEN, **more})
    assert done.status_code == 200, done.text
    return thread


async def copied(client: httpx.AsyncClient, thread: str) -> str:
    made = await client.post(f"/threads/{thread}/copy")
    assert made.status_code == 200, made.text
    return str(made.json()["thread_id"])


async def approved(arena: Arena, thread: str) -> Json:
    """The run that the decision set going."""
    assert (await arena.decide(await arena.item(thread), "approve")).status_code == 200
    await arena.rests(thread)
    [run, asked] = (await arena.ana.get(f"/threads/{thread}/runs")).json()
    assert asked["status"] == "success", "by it the copy asked"
    current_run: Json = run
    return current_run


async def hooks(arena: Arena, run: Json) -> list[Json]:
    sent = await arena.ana.get("/api/deliveries", params={"subject": f"run:{run['run_id']}"})
    return list(sent.json()["items"])


async def own_id(arena: Arena, client: httpx.AsyncClient) -> str:
    return (await arena.actor(client)).partition(":")[2]


async def test_copy_of_anothers_thread_runs_without_config_and_webhook_of_the_original(arena: Arena) -> None:
    copy = await copied(arena.other, await stands(arena))
    run = await approved(arena, copy)
    seen = (await arena.other.get(f"/threads/{copy}/runs")).text
    assert [word for word in OF_ANOTHER if word in seen] == []
    assert await hooks(arena, run) == []
    assert arena.effects == [f"paid from default as {await own_id(arena, arena.other)}"]


async def test_copy_of_anothers_thread_has_the_config_of_the_assistant(arena: Arena) -> None:
    body = {"graph_id": "spending", "config": {"configurable": {"account": "shared"}}}
    assistant = (await arena.agent.post("/assistants", json=body)).json()["assistant_id"]
    thread = await stands(arena, assistant_id=assistant)
    await approved(arena, await copied(arena.other, thread))
    assert arena.effects == [f"paid from shared as {await own_id(arena, arena.other)}"]


async def test_own_copy_keeps_the_config_and_calls_no_webhook(arena: Arena) -> None:
    run = await approved(arena, await copied(arena.agent, await stands(arena)))
    assert arena.effects == [f"paid from payroll-of-a as {await own_id(arena, arena.agent)}"]
    assert run["kwargs"]["webhook"] is None
    assert await hooks(arena, run) == []


async def test_copy_of_a_copy_has_no_config_of_the_first_agent(arena: Arena) -> None:
    middle = await copied(arena.other, await stands(arena))
    assert (await arena.other.patch(f"/threads/{middle}", json={"visibility": "shared"})).status_code == 200
    await approved(arena, await copied(arena.other, middle))
    assert arena.effects == [f"paid from default as {await own_id(arena, arena.other)}"]


async def test_control_without_the_defence_the_copy_keeps_config_and_webhook(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("assistant_id", "graph_id", "actor", "answers", "wake_at", "temporary", "multitask_strategy")
    kept = (*names, "metadata", "kwargs", "webhook")
    monkeypatch.setattr(
        continuation, "_as_copied", lambda tx, copy, before, maker: {name: getattr(before, name) for name in kept}
    )
    copy = await copied(arena.other, await stands(arena))
    run = await approved(arena, copy)
    seen = (await arena.other.get(f"/threads/{copy}/runs")).text
    assert [word for word in OF_ANOTHER if word in seen] == list(OF_ANOTHER[1:]), "the address is hidden in any case"
    assert run["kwargs"]["webhook"] == "https://hooks.invalid"
    assert len(await hooks(arena, run)) == 1
    assert arena.effects == [f"paid from payroll-of-a as {await own_id(arena, arena.other)}"]
