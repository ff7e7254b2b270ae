"""Runs that are cancelled, joined and left in each state, and clients that go away and come back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import Any

from tests.conformance.talking import Json, Scenario, Talk, new_id

ACTIONS = ("interrupt", "rollback")
ODD_KEYS = ("a b", "a/b", "a'b", "\u00e9 \u6f22", "\u2028", "[0]", "$.a", "", "k" * 80)
HOLD: Json = {"assistant_id": "holding", "input": {"text": "hold"}}
_PASS: Json = {"assistant_id": "holding", "input": {"text": "x"}}
_ASK: Json = {"assistant_id": "ask_text", "input": {"text": "x"}}


def lives() -> dict[str, Scenario]:
    return {f"life/{name}": scenario for name, scenario in (*_cancelled(), *_followed(), *_general())}


def _cancelled() -> Iterator[tuple[str, Scenario]]:
    for action in ACTIONS:
        for name, state in {"running": HOLD, "delayed": {**_PASS, "after_seconds": 600}, "waiting": _ASK}.items():
            yield f"{action} of a {name} run", partial(cancelled, body=state, action=action)
        yield f"{action} of a queued run", partial(cancelled_in_line, action=action)
    yield "several, one of them unknown", cancelled_together


def _followed() -> Iterator[tuple[str, Scenario]]:
    for mode in ("values", "updates"):
        yield f"stream of {mode} of a run that is cancelled", partial(streamed_until_cancelled, mode=mode)
    yield "a run that is cancelled while it is waited for", waited_until_cancelled
    yield "a run that is cancelled while it is joined", joined_until_cancelled
    for kind in ("stream", "wait"):
        for way in ("cancel", "continue"):
            yield f"a client that leaves {kind}, {way}", partial(left, kind=kind, way=way)
    for resumable in (True, False):
        yield f"a stream that is joined again, resumable {resumable}", partial(joined_again, resumable=resumable)


def _general() -> Iterator[tuple[str, Scenario]]:
    yield "odd keys", odd_keys
    for name, kind in {"none": None, "text": "text/plain", "form": "application/x-www-form-urlencoded"}.items():
        yield f"content type {name}", partial(typed, kind=kind)


async def _started(talk: Talk, body: Json) -> tuple[str, str]:
    """The thread and the run."""
    thread = await talk.thread()
    run = await talk.call("POST", f"/threads/{thread}/runs", body)
    return thread, f"/threads/{thread}/runs/{run['run_id']}"


async def _rests(talk: Talk, thread: str, run: str) -> None:
    await talk.idle(thread)
    for path in (run, f"/threads/{thread}", f"/threads/{thread}/state"):
        await talk.call("GET", path)
    await talk.call("POST", f"/threads/{thread}/history", {"limit": 20})


async def cancelled(talk: Talk, body: Json, action: str) -> None:
    thread, run = await _started(talk, body)
    if body is HOLD:
        await talk.holds(thread)
    elif body is _ASK:
        await talk.ended(run)
    await talk.call("POST", f"{run}/cancel?wait=1&action={action}")
    await _rests(talk, thread, run)
    await talk.call("POST", f"{run}/cancel")
    await talk.call("GET", f"{run}/join")


async def cancelled_in_line(talk: Talk, action: str) -> None:
    thread, run = await _started(talk, HOLD)
    await talk.holds(thread)
    second = await talk.call("POST", f"/threads/{thread}/runs", {**_PASS, "multitask_strategy": "enqueue"})
    queued = f"/threads/{thread}/runs/{second['run_id']}"
    await talk.call("POST", f"{queued}/cancel?wait=1&action={action}")
    await talk.call("GET", queued)
    await talk.call("POST", f"{run}/cancel?wait=1")
    await _rests(talk, thread, run)


async def cancelled_together(talk: Talk) -> None:
    thread, run = await _started(talk, HOLD)
    run_id = await talk.holds(thread)
    await talk.call("POST", "/runs/cancel", {"thread_id": thread, "run_ids": [new_id()]})
    await talk.call("POST", "/runs/cancel", {"thread_id": thread, "run_ids": [new_id(), run_id]})
    await _rests(talk, thread, run)
    await talk.call("POST", "/runs/cancel", {"thread_id": thread, "run_ids": [run_id]})


async def _cancelled_beside(talk: Talk, thread: str) -> None:
    """Its answer is not recorded: it comes before or after the end of what is followed."""
    run_id = await talk.holds(thread)
    await talk.quietly("POST", f"/threads/{thread}/runs/{run_id}/cancel?wait=1")


async def streamed_until_cancelled(talk: Talk, mode: str) -> None:
    thread = await talk.thread()
    following = talk.stream("POST", f"/threads/{thread}/runs/stream", {**HOLD, "stream_mode": [mode]})
    await asyncio.gather(following, _cancelled_beside(talk, thread))


async def waited_until_cancelled(talk: Talk) -> None:
    thread = await talk.thread()
    await asyncio.gather(talk.call("POST", f"/threads/{thread}/runs/wait", HOLD), _cancelled_beside(talk, thread))


async def joined_until_cancelled(talk: Talk) -> None:
    thread, run = await _started(talk, HOLD)
    await asyncio.gather(talk.call("GET", f"{run}/join"), _cancelled_beside(talk, thread))


async def left(talk: Talk, kind: str, way: str) -> None:
    thread = await talk.thread()

    async def has_begun() -> None:
        await talk.holds(thread)

    await talk.leave("POST", f"/threads/{thread}/runs/{kind}", {**HOLD, "on_disconnect": way}, has_begun)
    run = f"/threads/{thread}/runs/{await talk.holds(thread)}"
    if way == "continue":
        await talk.call("GET", run)
        await talk.call("POST", f"{run}/cancel?wait=1")
    await _rests(talk, thread, run)


async def joined_again(talk: Talk, resumable: bool) -> None:
    """From the beginning, from the middle, from the end and from nowhere, after the run has ended."""
    shown = {"stream_mode": ["updates", "custom"], "stream_resumable": resumable}
    _, run = await _started(talk, {**_PASS, **shown})
    await talk.ended(run)
    ids = await talk.numbers("GET", f"{run}/stream", headers={"last-event-id": "-1"})
    for last in ("-1", "0", "-", "garbage", *ids[1:2], *ids[-1:]):
        await talk.stream("GET", f"{run}/stream", headers={"last-event-id": last})
        await talk.stream("GET", f"{run}/stream?stream_mode=custom", headers={"last-event-id": last})
    await talk.stream("GET", f"{run}/stream")


async def odd_keys(talk: Talk) -> None:
    mark = new_id()
    for key in ODD_KEYS:
        known = {"mark": mark, key: "x"}
        await talk.call("POST", "/threads", {"metadata": known})
        await talk.call("PUT", "/store/items", {"namespace": [mark], "key": "k", "value": {key: "x"}})
        for wanted in ("x", "y"):
            query: Json = {"metadata": {"mark": mark, key: wanted}}
            await talk.call("POST", "/threads/search", query)
            await talk.call("POST", "/store/items/search", {"namespace_prefix": [mark], "filter": {key: wanted}})


async def typed(talk: Talk, kind: str | None) -> None:
    headers: Any = {"content-type": kind} if kind else {}
    await talk.call("POST", "/threads", headers=headers, content=b'{"metadata": {"a": 1}}')
