"""From LangGraph's own server: every thread arrives as it was, and goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable
from typing import Any, TypeVar

import pytest
from langgraph_sdk.client import LangGraphClient

from tests.importing.conftest import Place, connected, copy_graphs, finished, item_of, pending_items, reference_server
from tests.scoreboard import Count, RecordScore
from tests.servers import running

Json = dict[str, Any]
T = TypeVar("T")

_AT_ONCE = 20
_COMPARED = ("values", "next", "created_at", "checkpoint_id", "parent_checkpoint_id", "interrupts")


async def all_of(work: Iterable[Awaitable[T]]) -> list[T]:
    places = asyncio.Semaphore(_AT_ONCE)

    async def one(each: Awaitable[T]) -> T:
        async with places:
            return await each

    return await asyncio.gather(*map(one, work))


async def ran(client: LangGraphClient, graph: str, input: Json, **options: Any) -> str:
    """A thread on which the graph has run."""
    thread_id = str((await client.threads.create(metadata={"made": "there"}))["thread_id"])
    await client.runs.wait(thread_id, graph, input=input, raise_error=False, **options)
    return thread_id


def said(text: str) -> Json:
    return {"messages": [{"role": "user", "content": text}]}


async def ordered(client: LangGraphClient, text: str) -> str:
    return await ran(client, "chat", said(text), context={"model": "large"})


async def history(client: LangGraphClient, thread_id: str) -> list[Json]:
    """What is the same wherever the thread is. Questions that were answered long ago are not pending any more."""
    states: list[Any] = await client.threads.get_history(thread_id, limit=100)
    told = [{name: state[name] for name in _COMPARED} for state in states]
    return [one | {"step": state["metadata"]["step"]} for one, state in zip(told, states, strict=True)]


async def answered(client: LangGraphClient, thread_id: str, assistant: str = "chat") -> str:
    command: Any = {"resume": "yes"}
    done: Any = await client.runs.wait(thread_id, assistant, command=command)
    return str(done["answer"])


async def continued(client: LangGraphClient, thread_id: str) -> int:
    done: Any = await client.runs.wait(thread_id, "chat", input=said("more"))
    return len(done["messages"])


@pytest.mark.promise("DROP-08")
@pytest.mark.scoreboard
@pytest.mark.timeout(1500)
async def test_every_thread_is_imported_unchanged_and_continues(
    place: Place, reference_url: str, count: Count, record_score: RecordScore
) -> None:
    threads, waiting = count(full=1000, quick=30), count(full=100, quick=6)
    async with connected(reference_url) as theirs:
        asking = await all_of(ordered(theirs, f"tea {number}?") for number in range(waiting))
        done = await all_of(ordered(theirs, f"tea {number}") for number in range(threads - waiting))
        report = await asyncio.to_thread(place.imported, reference_url)
        again = await asyncio.to_thread(place.imported, reference_url)
        with running(place.dev()) as server:
            async with connected(server.url) as ours:
                before = [await all_of(history(side, one) for one in asking + done) for side in (theirs, ours)]
                items = await asyncio.to_thread(pending_items, server.url)
                answers = await all_of(answered(ours, one) for one in asking)
                messages = await all_of(continued(ours, one) for one in done)
    equal = sum(one == other for one, other in zip(*before, strict=True))
    resumed = sum(
        answer == f"tea {number}? {len(f'tea {number}?')} human,ai yes large" for number, answer in enumerate(answers)
    ) + messages.count(4)
    record_score(
        f"import of {threads} threads from LangGraph's server, {waiting} of them interrupted",
        "every state equal, every thread resumable, an item for each that waits, a second import takes nothing",
        f"{report['threads']['taken']} taken, {equal} equal, {resumed} resumed, {len(items)} items,"
        f" {again['threads']['taken']} taken by a second import",
    )
    assert report["threads"] == {"taken": threads, "present": 0, "refused": 0}
    assert report["waiting"] == waiting
    assert again["threads"] == {"taken": 0, "present": threads, "refused": 0}
    assert before[0] == before[1]
    assert sorted(item["source"]["thread_id"] for item in items) == sorted(asking)
    assert resumed == threads


class TestWhatTheApiDoesNotExport:
    """One thread of each graph that stops in a way of its own, imported beside a running server."""

    @pytest.fixture(scope="class")
    async def moved(self, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Any]:
        place = Place(copy_graphs(tmp_path_factory.mktemp("beside")))
        graphs = ("twice", "sent", "nested", "joined", "stopping", "failing")
        command: Any = {"resume": "one"}
        with reference_server(tmp_path_factory.mktemp("reference")) as url, running(place.dev()) as server:
            async with connected(url) as theirs, connected(server.url) as ours:
                ids = await all_of(ran(theirs, graph, {"text": "x"}) for graph in graphs)
                await theirs.runs.wait(ids[0], "twice", command=command)
                report = await asyncio.to_thread(place.imported, url)
                yield place, ours, server, dict(zip(graphs, ids, strict=True)), report

    @pytest.mark.parametrize(
        ("graph", "answers", "listed"),
        [
            ("twice", ["one", "two"], ["one", "two"]),
            ("sent", [["yes", "yes"]], ["plan", "yes", "yes"]),
            ("nested", ["yes"], ["yes", "after"]),
        ],
    )
    async def test_pending_nodes_ask_again_and_are_reported(
        self, moved: Any, graph: str, answers: list[Any], listed: list[str]
    ) -> None:
        _, ours, server, ids, report = moved
        notes = [note["text"] for note in report["notes"] if note["id"] == ids[graph]]
        assert any("asks again" in note for note in notes), notes
        [item] = pending_items(server.url, ids[graph])
        assert item["dialect"] == "breakpoint"
        shown = await asyncio.to_thread(item_of, server.url, item["id"])
        assert shown["description"] == "\n\n".join(notes)
        values = await ours.runs.wait(ids[graph], graph, input=None)
        for answer in answers:
            asked = [interrupt["id"] for interrupt in values["__interrupt__"]]
            given = answer if isinstance(answer, list) else [answer]
            values = await ours.runs.wait(ids[graph], graph, command={"resume": dict(zip(asked, given, strict=True))})
        assert values["listed"] == listed

    async def test_a_join_remembers_which_of_its_nodes_have_run(self, moved: Any) -> None:
        _, ours, _, ids, report = moved
        assert [note for note in report["notes"] if note["id"] == ids["joined"]] == []
        values = await ours.runs.wait(ids["joined"], "joined", command={"resume": "yes"})
        assert values["listed"][-2:] == ["yes", "last"]

    async def test_a_breakpoint_becomes_an_item(self, moved: Any) -> None:
        place, _, server, ids, _ = moved
        [item] = pending_items(server.url, ids["stopping"])
        assert item["dialect"] == "breakpoint"
        await asyncio.to_thread(place.decided, server, "approve", item["id"])
        assert finished(server.url, ids["stopping"])["listed"] == ["before", "act"]

    async def test_failed_thread_is_imported_as_failed(self, moved: Any) -> None:
        _, ours, _, ids, _ = moved
        assert (await ours.threads.get(ids["failing"]))["status"] == "error"
        assert (await ours.threads.get_state(ids["failing"]))["next"] == ["fail"]


async def test_assistants_come_with_their_versions_and_store_items_with_their_values(
    place: Place, reference_url: str
) -> None:
    async with connected(reference_url) as theirs:
        made = await theirs.assistants.create("chat", context={"model": "large"}, name="large one")
        assistant_id = made["assistant_id"]
        await theirs.assistants.update(assistant_id, context={"model": "larger"})
        await theirs.assistants.set_latest(assistant_id, 1)
        await theirs.store.put_item(["users", "ana"], "likes", {"tea": True})
        await theirs.store.put_item(["users"], "count", {"n": 1})
        waits = await ran(theirs, assistant_id, said("cake?"))
    tried = await asyncio.to_thread(place.imported, reference_url, "--dry-run")
    taken = await asyncio.to_thread(place.imported, reference_url)
    again = await asyncio.to_thread(place.imported, reference_url)
    assert tried == taken | {"dry_run": True}
    assert (taken["store_items"]["taken"], again["store_items"]["taken"]) == (2, 0)
    assert (taken["assistants"]["taken"] >= 1, again["assistants"]["taken"]) == (True, 0)
    with running(place.dev()) as server:
        async with connected(server.url) as ours:
            response = await ours.assistants.get(assistant_id)
            assert (response["name"], response["version"], response["context"]) == ("large one", 1, {"model": "large"})
            assert len(await ours.assistants.get_versions(assistant_id)) == 2
            assert (await answered(ours, waits, assistant_id)).endswith("yes large")


async def test_thread_that_cannot_continue_is_refused_and_the_rest_imported(place: Place, reference_url: str) -> None:
    """The input of a function is not exported: one that waits cannot go on, one that is done can be called again."""
    async with connected(reference_url) as theirs:
        waits, done = [await ran(theirs, "function", given) for given in ("tea?", "tea")]  # type: ignore[arg-type]
    result = await asyncio.to_thread(place.run, "import", reference_url, "--json")
    assert (result.code, result.json["threads"]) == (1, {"taken": 1, "present": 0, "refused": 1})
    [problem] = result.json["problems"]
    assert (problem["id"], "at its source the next node is function" in problem["text"]) == (waits, True)
    with running(place.dev()) as server:
        async with connected(server.url) as ours:
            again: Any = await ours.runs.wait(done, "function", input="cake")  # type: ignore[call-overload]
    assert again == "cake unasked tea unasked None"
