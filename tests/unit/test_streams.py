"""Keep-alives of streams and long answers, whatever passes unseen between them."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

import pytest

from assent.surfaces.api.langgraph import streams
from assent.threads.model.frames import Frame

HIDDEN = "debug"


class Busy:
    """A run that never pauses for as long as a heartbeat and sends nothing that this client asked for."""

    def __init__(self) -> None:
        self._numbers = count(1)

    async def next(self) -> Frame:
        await asyncio.sleep(0.001)
        number = next(self._numbers)
        return Frame(number, HIDDEN, b"{}", str(number))

    async def end(self) -> Frame:
        raise NotImplementedError

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("follow", "sign_of_life"),
    [
        (lambda run: streams.live(run, with_id=True, modes=["values"]), b": heartbeat\r\n\r\n"),
        (lambda run: streams.live(run, with_id=True, after=10**9), b": heartbeat\r\n\r\n"),
        (lambda run: streams.result(run), b"\n"),
        (lambda run: streams.of_thread(run, ["lifecycle"]), b": heartbeat\r\n\r\n"),
    ],
    ids=["filtered", "rejoined", "waiting", "thread"],
)
async def test_hidden_frames_do_not_delay_a_heartbeat(
    follow: Any, sign_of_life: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "_HEARTBEAT_SECONDS", 0.02)
    async with asyncio.timeout(90):
        assert await anext(follow(Busy())) == sign_of_life


async def test_control_frames_that_are_sent_need_no_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_HEARTBEAT_SECONDS", 60.0)
    sent = streams.live(Busy(), with_id=False, modes=[HIDDEN])
    assert [await anext(sent) for _ in range(3)] == [b"event: debug\r\ndata: {}\r\n\r\n"] * 3
