"""Helpers for tests of event streams: commands, and reading events as bytes until a condition holds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

import httpx

ALL = ["values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "tasks", "custom"]
HELLO = {"messages": [{"role": "user", "content": "hi"}]}

Event = dict[str, Any]


def new_id() -> str:
    return str(uuid4())


async def command(http: httpx.AsyncClient, thread: str, method: str, **params: Any) -> dict[str, Any]:
    answer = await http.post(f"/threads/{thread}/commands", json={"id": 7, "method": method, "params": params})
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    assert told["id"] == 7
    return told


async def started(http: httpx.AsyncClient, graph: str, input: Any, thread: str | None = None, **params: Any) -> str:
    """A thread with a run."""
    thread = thread or new_id()
    told = await command(http, thread, "run.start", assistant_id=graph, input=input, **params)
    assert told["type"] == "success", told
    return thread


async def read(http: httpx.AsyncClient, thread: str, **body: Any) -> AsyncIterator[Event]:
    """The events of a thread, for as long as the reader reads."""
    asked = {"channels": ALL, **body}
    async with http.stream("POST", f"/threads/{thread}/stream/events", json=asked, timeout=30) as answer:
        assert answer.status_code == 200, await answer.aread()
        async for line in answer.aiter_lines():
            if line.startswith("data:"):
                yield json.loads(line.removeprefix("data:"))


async def read_until(
    http: httpx.AsyncClient, thread: str, enough: Callable[[Event], bool], *, patience: float = 90, **body: Any
) -> list[Event]:
    """The events up to the first one that is enough."""
    seen = []
    async with asyncio.timeout(patience):
        async for event in read(http, thread, **body):
            seen.append(event)
            if enough(event):
                return seen
    raise AssertionError("the stream ended")


def tells(*states: str) -> Callable[[Event], bool]:
    """Whether an event tells that the run is in one of these states."""

    def is_told(event: Event) -> bool:
        root = event["method"] == "lifecycle" and event["params"]["namespace"] == []
        return root and event["params"]["data"]["event"] in states

    return is_told


ENDED = tells("completed", "failed", "interrupted")


def of(method: str, events: list[Event]) -> list[Any]:
    return [event["params"]["data"] for event in events if event["method"] == method]
