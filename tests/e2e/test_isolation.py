"""Threads share nothing: neither state nor history, runs, questions or ends."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import ConflictError, NotFoundError

from tests.e2e.test_runs import let, new_thread, reached

pytestmark = pytest.mark.promise("SERVE-15")
THREADS = 8


async def log_of(client: LangGraphClient, thread: str) -> list[str]:
    values: Any = (await client.threads.get_state(thread))["values"]
    return list(values.get("log", [])) if values else []


def steps(*texts: str) -> list[str]:
    return [f"{text}:{step}" for text in texts for step in "abc"]


async def history(client: LangGraphClient, thread: str) -> set[str]:
    states = await client.threads.get_history(thread, limit=100)
    return {str(state["checkpoint"]["checkpoint_id"]) for state in states}


async def test_concurrent_runs_stay_in_their_threads(client: LangGraphClient) -> None:
    threads = [await new_thread(client) for _ in range(THREADS)]
    names = [f"thread {place}" for place in range(THREADS)]
    for turn in ("first", "second"):
        pairs = zip(threads, names, strict=True)
        runs = [client.runs.wait(thread, "slow", input={"text": f"{name}, {turn}"}) for thread, name in pairs]
        await asyncio.gather(*runs)
    logs = [await log_of(client, thread) for thread in threads]
    assert logs == [steps(f"{name}, first", f"{name}, second") for name in names], "turns of one thread do share"
    assert len(set.union(*[await history(client, thread) for thread in threads])) == sum(
        [len(await history(client, thread)) for thread in threads]
    )


async def test_changes_of_one_thread_do_not_appear_in_another(client: LangGraphClient, tmp_path: Path) -> None:
    held, other = await new_thread(client), await new_thread(client)
    run = await client.runs.create(held, "slow", input={"text": "held", "gate": str(tmp_path)})
    await reached(tmp_path, "a")
    await client.runs.wait(other, "slow", input={"text": "other"})
    assert (await log_of(client, held), await log_of(client, other)) == ([], steps("other"))
    let(tmp_path, "a", "b", "c")
    await client.runs.join(held, run["run_id"])
    before = await client.threads.get_history(other, limit=100)

    await client.threads.update_state(held, {"log": ["written"]})
    await client.threads.update(held, metadata={"team": "red"})
    assert await log_of(client, held) == [*steps("held"), "written"], "the control"
    await client.threads.delete(held)

    assert await client.threads.get_history(other, limit=100) == before
    assert "team" not in ((await client.threads.get(other))["metadata"] or {})
    assert [listed_run["thread_id"] for listed_run in await client.runs.list(other)] == [other]


async def test_runs_and_checkpoints_of_another_thread_are_not_found(client: LangGraphClient) -> None:
    mine, other = await new_thread(client), await new_thread(client)
    run = await client.runs.create(mine, "slow", input={"text": "mine"})
    await client.runs.join(mine, run["run_id"])
    await client.runs.wait(other, "slow", input={"text": "other"})
    checkpoint: Any = {"checkpoint_id": (await client.threads.get_state(mine))["checkpoint"]["checkpoint_id"]}

    assert (await client.runs.get(mine, run["run_id"]))["status"] == "success", "the control"
    with pytest.raises(NotFoundError):
        await client.runs.get(other, run["run_id"])
    with pytest.raises(NotFoundError):
        await client.runs.create(other, "slow", input={"text": "x"}, checkpoint=checkpoint)
    assert await log_of(client, other) == steps("other")


async def test_answer_reaches_only_the_thread_that_asked(client: LangGraphClient) -> None:
    asked, other = await new_thread(client), await new_thread(client)
    for thread in (asked, other):
        await client.runs.wait(thread, "hitl", input={"text": thread})
    [question] = (await client.threads.get(asked))["interrupts"].values()
    answer: Any = {"resume": {question[0]["id"]: [{"type": "response", "args": "yes"}]}}
    with pytest.raises(ConflictError, match="is not pending"):
        await client.runs.create(other, "hitl", command=answer)
    await client.runs.wait(asked, "hitl", command=answer)
    states = [(await client.threads.get(thread))["status"] for thread in (asked, other)]
    assert states == ["idle", "interrupted"]
