"""Connections that break on the way: the stock SDKs go on where the server's headers say, and miss nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client

from tests.e2e.cutting import CuttingProxy, cutting
from tests.e2e.holding import Gates, new_thread
from tests.servers import ServerProcess
from tests.waiting import until

pytestmark = pytest.mark.promise("SERVE-01")


@pytest.fixture
def proxy(server: ServerProcess) -> Iterator[CuttingProxy]:
    with cutting(server.url) as made:
        yield made


async def break_in_the_middle(proxy: CuttingProxy, gates: Gates) -> None:
    """While the run is at its second step; what happens then is missed by everyone."""
    gates.open("a")
    await gates.reached("b")
    proxy.cut()
    gates.open()


async def test_broken_stream_continues_after_its_last_event(proxy: CuttingProxy, tmp_path: Path) -> None:
    gates = Gates(tmp_path)
    async with get_client(url=proxy.url) as client:
        thread = await new_thread(client)
        options: Any = {"stream_mode": "updates", "stream_resumable": True}
        stream = aiter(client.runs.stream(thread, "slow", input=gates.input(), **options))
        gates.open("a")
        parts: list[Any] = [await anext(stream), await anext(stream)]
        await break_in_the_middle(proxy, gates)
        parts += [part async for part in stream]
    assert [part.event for part in parts] == ["metadata", "updates", "updates", "updates"]
    assert [list(part.data) for part in parts[1:]] == [["a"], ["b"], ["c"]]


@pytest.mark.parametrize("stateless", [False, True])
async def test_waiting_client_gets_the_result_after_a_broken_connection(
    proxy: CuttingProxy, tmp_path: Path, stateless: bool
) -> None:
    gates = Gates(tmp_path)
    async with get_client(url=proxy.url) as client:
        thread: Any = None if stateless else await new_thread(client)
        answered = asyncio.Event()

        async def break_once_answered() -> None:
            """Before there are headers, nobody could know where to go on; and a run without a thread leaves nothing."""
            await answered.wait()
            proxy.cut()
            await until(proxy.is_used)
            gates.open()

        breaking = asyncio.create_task(break_once_answered())
        with pytest.warns(UserWarning, match="attempting reconnect"):
            result: Any = await client.runs.wait(
                thread, "slow", input=gates.input(), on_run_created=lambda _: answered.set()
            )
        await breaking
    assert result["log"] == ["one:a", "one:b", "one:c"]


async def test_disconnected_client_does_not_stop_the_run(
    proxy: CuttingProxy, tmp_path: Path, server: ServerProcess
) -> None:
    gates = Gates(tmp_path)
    async with get_client(url=server.url) as client, get_client(url=proxy.url) as shaky:
        thread = await new_thread(client)
        stream = aiter(shaky.runs.stream(thread, "slow", input=gates.input()))
        run = (await anext(stream)).data["run_id"]
        await break_in_the_middle(proxy, gates)
        await stream.aclose()  # type: ignore[attr-defined]
        assert (await client.runs.join(thread, run))["log"] == ["one:a", "one:b", "one:c"]
        assert (await client.runs.get(thread, run))["status"] == "success"
