"""A run that is cancelled after its graph has ended still ends: its outcome is stored, and its thread is not busy."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import httpx
import pytest

from assent.runs.engine import attempts, runner
from assent.threads.rows import runs
from tests.faults.arena import Arena
from tests.faults.held import Held

FOLLOWED_BY = ["cancel", "interrupt", "rollback"]


async def cancelled_late(arena: Arena, held: Held, by: str) -> str:
    """A thread whose run was cancelled, or superseded, between its question and its end."""
    thread = await arena.thread()
    run = (await arena.run(thread, "asking", how="", input={"log": str(arena.log), "tag": "asked"})).json()["run_id"]
    await held.begins()
    stopped = await _stop(arena, thread, run, by)
    assert stopped.status_code < 300, stopped.text
    return thread


async def _stop(arena: Arena, thread: str, run: str, by: str) -> httpx.Response:
    if by == "cancel":
        return await arena.agent.post(f"/threads/{thread}/runs/{run}/cancel", params={"action": "interrupt"})
    given = {"log": str(arena.log), "tag": "again"}
    return await arena.run(thread, "free", how="", input=given, multitask_strategy=by)


@pytest.mark.parametrize("by", FOLLOWED_BY)
async def test_run_that_is_cancelled_after_its_question_ends(arena: Arena, held: Held, by: str) -> None:
    thread = await cancelled_late(arena, held, by)
    held.release.set()
    await arena.rests(thread)
    listed = (await arena.agent.get(f"/threads/{thread}/runs")).json()
    assert "running" not in {run["status"] for run in listed}


async def test_control_run_whose_end_is_cancelled_stays_running(
    arena: Arena, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cancellable(action: Coroutine[Any, Any, Any]) -> Any:
        return await action

    for module in (runner, attempts):
        monkeypatch.setattr(module, "uncancelled", cancellable)
    monkeypatch.setattr(runs, "hand_back", lambda *_: None)
    thread = await cancelled_late(arena, held, "cancel")
    assert (await arena.state(thread))["status"] == "busy"
    held.release.set()
    [run] = (await arena.agent.get(f"/threads/{thread}/runs")).json()
    assert run["status"] == "running"
