"""A stream of the LangGraph API ends when its reader loses access to the thread, and shows no secret after that.

The controls check the access only when the stream opens.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from assent.identity.model.access import Kind, Principal, Role, operator
from assent.kernel.ids import new_id
from assent.runs.threads import read_access
from assent.surfaces.api.langgraph import events, streams
from tests.faults.arena import Arena, Json
from tests.waiting import until

pytestmark = pytest.mark.promise("P10")

Lose = Callable[[], Awaitable[object]]
ENDED = "your access to this thread has ended"
FIRST, LATER = "said before the loss", "said after the loss"


class Reader:
    """The text of a stream, read in the background."""

    def __init__(self) -> None:
        self.text = ""
        self.ended = False

    async def read(self, parts: AsyncIterator[bytes]) -> None:
        async for part in parts:
            self.text += part.decode()
        self.ended = True

    async def until_ended(self) -> None:
        async def ended() -> bool:
            return self.ended

        await until(ended, "the stream goes on")

    async def until_read(self, text: str) -> None:
        async def read() -> bool:
            return text in self.text

        await until(read, f"the stream has no {text!r}: {self.text}")


@asynccontextmanager
async def read_by(arena: Arena, reader: Principal, thread: str) -> AsyncIterator[Reader]:
    subscription = await arena.house.engine.runs.follow_thread(reader, thread)
    async with _reading(streams.of_thread(subscription, {"run_modes"})) as stream:
        yield stream


@asynccontextmanager
async def events_read_by(arena: Arena, reader: Principal, thread: str) -> AsyncIterator[Reader]:
    opened = arena.house.engine.events
    async with _reading(events.sent(opened, opened.open(reader, thread, lambda event: True))) as stream:
        await asyncio.sleep(0)  # it subscribes with the first step
        yield stream


READS = [read_by, events_read_by]


@asynccontextmanager
async def _reading(parts: Any) -> AsyncIterator[Reader]:
    async with aclosing(parts):
        stream = Reader()
        task = asyncio.create_task(stream.read(parts))
        try:
            yield stream
        finally:
            while not task.done():  # a driver may turn a cancellation into an error
                task.cancel()
                await asyncio.wait({task}, timeout=1)


async def principal(arena: Arena, secret: str) -> Principal:
    return await arena.house.services.access.by_key(secret)


async def key_is_revoked(arena: Arena, thread: str) -> tuple[Principal, Lose]:
    new = await arena.house.services.keys.create(operator(), kind=Kind.AGENT, name=new_id())
    return await principal(arena, new.secret), lambda: arena.house.services.keys.revoke(operator(), new.key.id)


async def thread_becomes_private(arena: Arena, thread: str) -> tuple[Principal, Lose]:
    reader = await principal(arena, await arena.house.key(Kind.AGENT))
    return reader, lambda: arena.agent.patch(f"/threads/{thread}", json={"visibility": "private"})


async def person_is_disabled(arena: Arena, thread: str) -> tuple[Principal, Lose]:
    name = new_id()
    reader = await principal(arena, await arena.house.person(name))
    return reader, lambda: arena.house.services.users.change(operator(), name, disabled=True)


LOSSES = [key_is_revoked, thread_becomes_private, person_is_disabled]


@asynccontextmanager
async def lost(arena: Arena, loss: Any, read: Any) -> AsyncIterator[tuple[str, Reader]]:
    """A thread, and the stream of a reader who has read from it and then lost access to it."""
    thread = await arena.thread(visibility="shared")
    reader, lose = await loss(arena, thread)
    async with read(arena, reader, thread) as stream:
        await ran(arena, thread, FIRST)
        await stream.until_read(FIRST)
        await lose()
        yield thread, stream


async def ran(arena: Arena, thread: str, tag: str = LATER) -> None:
    done = await arena.run(thread, "free", input={"log": str(arena.log), "tag": tag})
    assert done.status_code == 200, done.text


@pytest.fixture
def checked_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_access, "_CHECK_EVERY", 0.0)


@pytest.fixture
def checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_access, "_CHECK_EVERY", 3600.0)


@pytest.mark.usefixtures("checked_always")
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("loss", LOSSES)
async def test_stream_ends_for_a_reader_who_has_lost_access(arena: Arena, loss: Any, read: Any) -> None:
    async with lost(arena, loss, read) as (thread, stream):
        await ran(arena, thread)
        await stream.until_ended()
        assert ENDED in stream.text
        assert LATER not in stream.text


@pytest.mark.usefixtures("checked_always")
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("loss", LOSSES)
async def test_idle_stream_ends_for_a_reader_who_has_lost_access(arena: Arena, loss: Any, read: Any) -> None:
    async with lost(arena, loss, read) as (_, stream):
        await stream.until_ended()
        assert ENDED in stream.text


@pytest.mark.usefixtures("checked_once")
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("loss", LOSSES)
async def test_control_stream_whose_access_is_checked_once_goes_on(arena: Arena, loss: Any, read: Any) -> None:
    async with lost(arena, loss, read) as (thread, stream):
        await ran(arena, thread)
        await stream.until_read(LATER)


@pytest.mark.usefixtures("checked_always")
async def test_stream_of_a_reader_with_access_goes_on(arena: Arena) -> None:
    thread = await arena.thread(visibility="shared")
    reader = await principal(arena, await arena.house.key(Kind.AGENT))
    async with read_by(arena, reader, thread) as stream:
        for tag in ("first", "second"):
            await ran(arena, thread, tag)
            await stream.until_read(tag)


@pytest.mark.usefixtures("checked_always")
async def test_wait_for_a_run_ends_without_its_result_for_a_reader_who_has_lost_access(arena: Arena) -> None:
    runs, thread = arena.house.engine.runs, await arena.thread(visibility="shared")
    reader, lose = await key_is_revoked(arena, thread)
    held = {"log": str(arena.log), "tag": LATER, "hold": str(arena.log)}
    run = (await arena.run(thread, "free", how="", input=held)).json()["run_id"]
    subscription = await runs.shown(await runs.follow_now(reader, run), reader, thread)
    async with _reading(streams.result(subscription)) as stream:
        await lose()
        arena.log.with_name(f"{arena.log.name}.go").touch()
        await stream.until_ended()
        assert ENDED in stream.text
        assert LATER not in stream.text


async def read_after_a_change(arena: Arena, change: Json) -> str:
    """The stream of a reviewer whose rights have changed, with a run that holds a password."""
    thread = await arena.thread(visibility="shared")
    name = new_id()
    reader = await principal(arena, await arena.house.person(name))
    async with read_by(arena, reader, thread) as stream:
        await arena.house.services.users.change(operator(), name, **change)
        given = {"log": str(arena.log), "tag": "said", "answer": {"password": "hunter22"}}
        await arena.run(thread, "free", input=given)
        await stream.until_read("password")
        return stream.text


@pytest.mark.usefixtures("checked_once")
@pytest.mark.parametrize("change", [{"disabled": True}, {"role": Role.VIEWER}], ids=str)
async def test_secret_is_masked_for_a_person_who_may_no_longer_decide(arena: Arena, change: Json) -> None:
    assert "hunter22" not in await read_after_a_change(arena, change)


@pytest.mark.usefixtures("checked_once")
async def test_control_secret_is_shown_to_a_person_who_may_decide(arena: Arena) -> None:
    assert "hunter22" in await read_after_a_change(arena, {"disabled": False})
