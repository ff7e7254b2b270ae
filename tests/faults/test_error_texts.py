"""The text of an exception that an agent's code raises stays in the log of `assent serve`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import httpx
import pytest

from tests.faults.arena import Arena
from tests.graphs_gated.stopping import CONNECTION

MODES = ["values", "updates", "tasks", "checkpoints", "debug", "events"]


async def wait(arena: Arena, thread: str) -> httpx.Response:
    return await arena.run(thread, "failing", input={"text": "x"})


async def stream(arena: Arena, thread: str) -> httpx.Response:
    return await arena.run(thread, "failing", how="/stream", input={"text": "x"}, stream_mode=MODES)


def failed(path: str) -> Callable[[Arena, str], Awaitable[httpx.Response]]:
    async def read(arena: Arena, thread: str) -> httpx.Response:
        await wait(arena, thread)
        return await arena.agent.get(path.format(thread=thread))

    return read


async def update(arena: Arena, thread: str) -> httpx.Response:
    await wait(arena, thread)
    return await arena.agent.post(f"/threads/{thread}/state", json={"values": {"text": "refused"}, "as_node": "call"})


READERS = {
    "wait": wait,
    "stream": stream,
    "thread": failed("/threads/{thread}"),
    "state": failed("/threads/{thread}/state"),
    "history": failed("/threads/{thread}/history"),
    "update": update,
}


@pytest.mark.parametrize("reader", READERS)
async def test_callers_get_the_class_of_an_exception_and_not_its_text(arena: Arena, reader: str) -> None:
    answer = await READERS[reader](arena, await arena.thread())
    assert "db.internal" not in answer.text
    assert "ConnectionError" in answer.text


@pytest.mark.parametrize("reader", READERS)
async def test_control_in_dev_the_text_is_shown(dev_arena: Arena, reader: str) -> None:
    answer = await READERS[reader](dev_arena, await dev_arena.thread())
    assert CONNECTION in answer.text


@pytest.mark.parametrize("path", ["/state", "/history"])
async def test_text_stays_hidden_where_an_error_does_not_begin_with_its_class(arena: Arena, path: str) -> None:
    thread = await arena.thread()
    sent = await arena.run(thread, "failing", how="/stream", input={"text": "odd"}, stream_mode=MODES)
    shown = await arena.agent.get(f"/threads/{thread}{path}")
    assert "db.internal" not in sent.text + shown.text


async def test_a_run_names_the_id_under_which_the_log_has_the_text(
    arena: Arena, caplog: pytest.LogCaptureFixture
) -> None:
    thread = await arena.thread()
    answer = (await wait(arena, thread)).json()["__error__"]
    [run] = (await arena.agent.get(f"/threads/{thread}/runs")).json()
    assert answer["error"] == "ConnectionError"
    assert answer["message"].endswith(f"under run_id {run['run_id']}")
    [logged] = [line for line in caplog.records if getattr(line, "run_id", None) == run["run_id"]]
    assert logged.levelname == "ERROR"
    assert CONNECTION in logged.reason  # type: ignore[attr-defined]
