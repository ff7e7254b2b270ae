"""The strategy of a second run on a busy thread: the documented default where it is left out, 422 if it is unknown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import ConflictError

from tests.docs.documents import read, rows
from tests.e2e.conftest import fast_folder
from tests.e2e.test_runs import let, new_thread, reached
from tests.servers import ServerProcess, dev_server, running

[DOCUMENTED] = [row[2].strip("`") for row in rows(read("docs/settings.md")) if row[0] == "`default_multitask_strategy`"]


@pytest.fixture(scope="module")
def enqueueing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server whose operator has chosen another default."""
    database = f"sqlite:///{fast_folder(tmp_path_factory)}/assent.db"
    with ExitStack() as stack:
        yield stack.enter_context(running(dev_server(database, ASSENT_DEFAULT_MULTITASK_STRATEGY="enqueue")))


async def busy_thread(client: LangGraphClient, gate: Path) -> str:
    thread = await new_thread(client)
    await client.runs.create(thread, "slow", input={"text": "one", "gate": str(gate)})
    await reached(gate, "a")
    return thread


async def second_run(client: LangGraphClient, thread: str, **strategy: Any) -> str:
    """What becomes of another run."""
    try:
        return str((await client.runs.create(thread, "slow", input={"text": "two"}, **strategy))["status"])
    except ConflictError as refused:
        return str(refused.status_code)


@pytest.mark.promise("SERVE-12")
async def test_a_strategy_that_is_left_out_is_the_documented_default(client: LangGraphClient, tmp_path: Path) -> None:
    thread = await busy_thread(client, tmp_path)
    named = await second_run(client, thread, multitask_strategy=DOCUMENTED)
    assert (await second_run(client, thread), named) == ("409", "409")
    with pytest.raises(ConflictError) as busy:
        await client.runs.create(thread, "slow", input={"text": "two"})
    assert "default_multitask_strategy" in str(busy.value.body), "the refusal names the setting"
    assert await second_run(client, thread, multitask_strategy="enqueue") == "pending", "the control"
    let(tmp_path, "a", "b", "c")


@pytest.mark.promise("SERVE-12")
async def test_a_strategy_that_is_left_out_is_the_one_of_the_setting(enqueueing: ServerProcess, tmp_path: Path) -> None:
    async with get_client(url=enqueueing.url) as client:
        thread = await busy_thread(client, tmp_path)
        assert await second_run(client, thread) == "pending"
        assert await second_run(client, thread, multitask_strategy="reject") == "409", "the control"
        let(tmp_path, "a", "b", "c")


@pytest.mark.promise("SERVE-12")
async def test_an_unknown_strategy_is_refused(server: ServerProcess, client: LangGraphClient) -> None:
    thread = await new_thread(client)
    run = {"assistant_id": "echo", "input": {"text": "x"}}
    wrong = run | {"multitask_strategy": "skip"}
    stateful = f"/threads/{thread}/runs"
    async with httpx.AsyncClient(base_url=server.url, trust_env=False, timeout=30) as http:
        for path in (stateful, f"{stateful}/wait", f"{stateful}/stream", "/runs", "/runs/wait", "/runs/stream"):
            refused = await http.post(path, json=wrong)
            assert (refused.status_code, "multitask_strategy" in refused.text) == (422, True), (path, refused.text)
        assert (await http.post("/runs/batch", json=[run, wrong])).status_code == 422
        assert await client.runs.list(thread) == []
        for strategy in ("reject", "enqueue", "interrupt", "rollback"):
            known = await http.post(f"{stateful}/wait", json=run | {"multitask_strategy": strategy})
            assert known.status_code == 200, known.text
