"""Every public method of the Python SDK, sync and async: what works on LangGraph's own server works on ours.

The list of methods is read from the SDK, so that a new method without a row fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from langgraph_sdk import get_client, get_sync_client

NOUNS = ("assistants", "threads", "runs", "crons", "store")
TEXT = {"text": "x"}
DAILY = {"schedule": "0 9 * * *", "input": TEXT}
ITEM = (["conformance", "sdk"], "key")

Row = Callable[[Any, SimpleNamespace], Any]

ROWS: dict[str, Row] = {
    "assistants.create": lambda c, k: c.assistants.create("linear", name="sdk"),
    "assistants.get": lambda c, k: c.assistants.get(k.assistants_create["assistant_id"]),
    "assistants.get_graph": lambda c, k: c.assistants.get_graph("deep", xray=True),
    "assistants.get_schemas": lambda c, k: c.assistants.get_schemas(k.assistants_create["assistant_id"]),
    "assistants.get_subgraphs": lambda c, k: c.assistants.get_subgraphs(k.assistants_create["assistant_id"]),
    "assistants.update": lambda c, k: c.assistants.update(k.assistants_create["assistant_id"], name="other"),
    "assistants.get_versions": lambda c, k: c.assistants.get_versions(k.assistants_create["assistant_id"]),
    "assistants.set_latest": lambda c, k: c.assistants.set_latest(k.assistants_create["assistant_id"], 1),
    "assistants.search": lambda c, k: c.assistants.search(name="sdk", limit=1),
    "assistants.count": lambda c, k: c.assistants.count(graph_id="linear"),
    "threads.create": lambda c, k: c.threads.create(metadata={"by": "sdk"}),
    "threads.get": lambda c, k: c.threads.get(k.threads_create["thread_id"]),
    "threads.update": lambda c, k: c.threads.update(k.threads_create["thread_id"], metadata={"more": 1}),
    "runs.wait": lambda c, k: c.runs.wait(k.threads_create["thread_id"], "linear", input=TEXT),
    "runs.create": lambda c, k: c.runs.create(
        k.threads_create["thread_id"], "linear", input=TEXT, stream_resumable=True, stream_mode="values"
    ),
    "runs.join": lambda c, k: c.runs.join(k.threads_create["thread_id"], k.runs_create["run_id"]),
    "runs.join_stream": lambda c, k: c.runs.join_stream(
        k.threads_create["thread_id"], k.runs_create["run_id"], last_event_id="-1"
    ),
    "runs.get": lambda c, k: c.runs.get(k.threads_create["thread_id"], k.runs_create["run_id"]),
    "runs.list": lambda c, k: c.runs.list(k.threads_create["thread_id"]),
    "runs.stream": lambda c, k: c.runs.stream(None, "linear", input=TEXT, stream_mode=["values", "updates"]),
    "runs.create_batch": lambda c, k: c.runs.create_batch([{"assistant_id": "linear", "input": TEXT}]),
    "threads.join_stream": lambda c, k: c.threads.join_stream(k.threads_create["thread_id"], last_event_id="-"),
    "threads.stream": lambda c, k: c.threads.stream(assistant_id="linear"),
    "threads.get_state": lambda c, k: c.threads.get_state(k.threads_create["thread_id"]),
    "threads.get_history": lambda c, k: c.threads.get_history(k.threads_create["thread_id"], limit=3),
    "threads.update_state": lambda c, k: c.threads.update_state(
        k.threads_create["thread_id"], {"text": "y"}, as_node="third"
    ),
    "threads.search": lambda c, k: c.threads.search(ids=[k.threads_create["thread_id"]]),
    "threads.count": lambda c, k: c.threads.count(metadata={"by": "sdk"}),
    "threads.copy": lambda c, k: c.threads.copy(k.threads_create["thread_id"]),
    "threads.prune": lambda c, k: c.threads.prune([k.threads_copy["thread_id"]]),
    "crons.create": lambda c, k: c.crons.create("linear", **DAILY),
    "crons.create_for_thread": lambda c, k: c.crons.create_for_thread(k.threads_create["thread_id"], "linear", **DAILY),
    "crons.update": lambda c, k: c.crons.update(k.crons_create["cron_id"], schedule="0 8 * * *"),
    "crons.search": lambda c, k: c.crons.search(thread_id=k.threads_create["thread_id"]),
    "crons.count": lambda c, k: c.crons.count(thread_id=k.threads_create["thread_id"]),
    "crons.delete": lambda c, k: c.crons.delete(k.crons_create["cron_id"]),
    "store.put_item": lambda c, k: c.store.put_item(*ITEM, {"n": 1}),
    "store.get_item": lambda c, k: c.store.get_item(*ITEM),
    "store.search_items": lambda c, k: c.store.search_items(ITEM[0]),
    "store.list_namespaces": lambda c, k: c.store.list_namespaces(prefix=ITEM[0]),
    "store.delete_item": lambda c, k: c.store.delete_item(*ITEM),
    "runs.delete": lambda c, k: c.runs.delete(k.threads_create["thread_id"], k.runs_create["run_id"]),
    "runs.cancel": lambda c, k: c.runs.cancel(k.threads_create["thread_id"], _delayed(c, k), wait=False),
    "runs.cancel_many": lambda c, k: c.runs.cancel_many(
        thread_id=k.threads_create["thread_id"], run_ids=[_delayed(c, k)]
    ),
    "threads.delete": lambda c, k: c.threads.delete(k.threads_create["thread_id"]),
    "assistants.delete": lambda c, k: c.assistants.delete(k.assistants_create["assistant_id"]),
}


def _delayed(client: Any, known: SimpleNamespace) -> str:
    """A run that does not begin, made by a sync client."""
    run = known.sync.runs.create(known.threads_create["thread_id"], "linear", input=TEXT, after_seconds=600)
    return str(run["run_id"])


@pytest.mark.promise("SERVE-01")
def test_every_method_of_the_sdk_has_a_row() -> None:
    with get_sync_client(url="http://127.0.0.1:9") as sync:
        for client in (sync, get_client(url="http://127.0.0.1:9")):
            assert sorted(_methods(client)) == sorted(ROWS)


def _methods(client: Any) -> Iterator[str]:
    for noun in NOUNS:
        part = getattr(client, noun)
        for name in dir(part):
            if not name.startswith("_") and name != "http" and callable(getattr(part, name)):
                yield f"{noun}.{name}"


@pytest.mark.promise("SERVE-01")
async def test_every_method_answers_alike_on_both_servers(addresses: list[str]) -> None:
    theirs, ours = await asyncio.gather(*map(_answers, addresses))
    assert ours == theirs


async def _answers(address: str) -> list[dict[str, Any]]:
    """The kind of each answer, of the sync and of the async client."""
    with get_sync_client(url=address) as sync:
        of_sync = await asyncio.to_thread(_sync_answers, sync)
        async with get_client(url=address) as client:
            return [of_sync, await _async_answers(client, sync)]


def _sync_answers(client: Any) -> dict[str, Any]:
    known, kinds = SimpleNamespace(sync=client), {}
    for name, row in ROWS.items():
        answer = row(client, known)
        if name == "threads.stream":
            with answer as thread:
                answer = thread.run.start(input=TEXT)
        elif name == "threads.join_stream":
            answer = [next(iter(answer))]
        elif isinstance(answer, Iterator):
            answer = list(answer)
        kinds[name] = _remembered(known, name, answer)
    return kinds


async def _async_answers(client: Any, sync: Any) -> dict[str, Any]:
    known, kinds = SimpleNamespace(sync=sync), {}
    for name, row in ROWS.items():
        answer = await asyncio.to_thread(row, client, known) if "cancel" in name else row(client, known)
        if name == "threads.stream":
            async with answer as thread:
                answer = await thread.run.start(input=TEXT)
        else:
            answer = await answer if asyncio.iscoroutine(answer) else answer
        if name == "threads.join_stream":
            answer = [await anext(aiter(answer))]
        elif isinstance(answer, AsyncIterator):
            answer = [part async for part in answer]
        kinds[name] = _remembered(known, name, answer)
    return kinds


def _remembered(known: SimpleNamespace, name: str, answer: Any) -> Any:
    setattr(known, name.replace(".", "_"), answer)
    return [type(answer).__name__, len(answer) if isinstance(answer, list) else None]
