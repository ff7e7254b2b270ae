"""The example graphs do what the tests of the server rely on."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from assent.runs.project.loader import LoadedGraphs, load_graphs
from assent.runs.project.manifest import Manifest

THREAD: Any = {"configurable": {"thread_id": "1"}}


@pytest.fixture
def loaded(examples: Manifest) -> LoadedGraphs:
    graphs = load_graphs(examples)
    assert graphs.failures == {}
    return graphs


class Running:
    """One thread of one graph, in memory."""

    def __init__(self, loaded: LoadedGraphs, name: str) -> None:
        self.spec, self.saver = loaded.graphs[name], InMemorySaver()

    async def run(self, given: Any, **options: Any) -> Any:
        async with self.spec.open({}, checkpointer=self.saver, store=None) as graph:
            return await graph.ainvoke(given, THREAD, **options)

    async def pending(self) -> list[Any]:
        async with self.spec.open({}, checkpointer=self.saver, store=None) as graph:
            return list((await graph.aget_state(THREAD)).interrupts)

    async def answer(self, *values: Any) -> Any:
        waiting = await self.pending()
        return await self.run(Command(resume={q.id: value for q, value in zip(waiting, values, strict=True)}))


def said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


async def test_echo_graph_answers_and_failing_graph_fails(loaded: LoadedGraphs) -> None:
    assert (await Running(loaded, "echo").run({"text": "hi"}))["reply"] == "hi"
    with pytest.raises(ValueError, match="boom: hi"):
        await Running(loaded, "failing").run({"text": "hi"})


async def test_slow_waits_at_its_gates(loaded: LoadedGraphs, tmp_path: Path) -> None:
    run = asyncio.create_task(Running(loaded, "slow").run({"text": "x", "gate": str(tmp_path)}))
    for name in ("a", "b", "c"):
        while not (tmp_path / f"{name}.started").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        assert not run.done()
        (tmp_path / f"{name}.go").touch()
    assert (await run)["log"] == ["x:a", "x:b", "x:c"]


async def test_steps_leaves_a_line_per_step(loaded: LoadedGraphs, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    await Running(loaded, "steps").run({"path": str(trace), "tag": "t"})
    assert trace.read_text().split() == ["t:one", "t:two", "t:three", "t:four", "t:five"]


async def test_hitl_asks_as_agent_inbox_expects(loaded: LoadedGraphs) -> None:
    graph = Running(loaded, "hitl")
    await graph.run({"text": "draft"})
    [question] = await graph.pending()
    assert question.value["action_request"] == {"action": "send_email", "args": {"to": "a@b.c", "body": "draft"}}
    assert (await graph.answer([{"type": "accept", "args": None}]))["answer"] == {"type": "accept", "args": None}


async def test_parallel_and_sequential_questions_are_asked(loaded: LoadedGraphs) -> None:
    parallel = Running(loaded, "parallel")
    await parallel.run({"text": "x"})
    assert [question.value["question"] for question in await parallel.pending()] == ["left?", "right?"]
    assert (await parallel.answer("l", "r"))["answers"] == ["left=l", "right=r"]

    twice = Running(loaded, "twice")
    await twice.run({"text": "x"})
    await twice.answer("one")
    assert [question.value for question in await twice.pending()] == ["second, after one?"]
    assert (await twice.answer("two"))["answers"] == ["one", "two"]


async def test_breakpoint_stops_without_a_question(loaded: LoadedGraphs) -> None:
    graph = Running(loaded, "breakpoint")
    assert await graph.run({"text": "x"}) == {"text": "x, prepared"}
    assert await graph.pending() == []
    assert (await graph.run(None))["answer"] == "published: x, prepared"


async def test_question_inside_a_subgraph_is_asked(loaded: LoadedGraphs) -> None:
    graph = Running(loaded, "subgraph")
    await graph.run({"text": "x", "ask": True})
    assert (await graph.answer("yes"))["log"] == ["outer", "outer", "inner: yes", "last"]


async def test_chat_streams_word_by_word(loaded: LoadedGraphs) -> None:
    async with loaded.graphs["chat"].open({}, checkpointer=InMemorySaver(), store=None) as graph:
        stream: Any = graph.astream(said("good day"), THREAD, stream_mode="messages")
        words = [chunk.text async for chunk, _ in stream]
    assert "".join(words).split() == ["you", "said:", "good", "day"]
    assert len([word for word in words if word]) == 4


CALLS = json.dumps(
    [
        {"name": "send_email", "args": {"to": "x", "body": "1"}},
        {"name": "send_email", "args": {"to": "y", "body": "2"}},
        {"name": "look_up", "args": {"term": "z"}},
    ]
)


async def test_batched_asks_once_for_all_calls(loaded: LoadedGraphs) -> None:
    graph = Running(loaded, "hitl_batched")
    await graph.run(said(CALLS))
    [question] = await graph.pending()
    assert len(question.value["action_requests"]) == 2
    done = await graph.answer({"decisions": [{"type": "approve"}, {"type": "reject", "message": "no"}]})
    assert "sent to x" in done["messages"][-1].text
    assert "z is known" in done["messages"][-1].text


async def test_per_call_asks_for_each_call(loaded: LoadedGraphs) -> None:
    graph = Running(loaded, "hitl_per_call")
    await graph.run(said(CALLS))
    assert [question.value["args"]["to"] for question in await graph.pending()] == ["x", "y"]
    done = await graph.answer({"type": "approve"}, {"type": "approve"})
    assert set(done["messages"][-1].text.strip()[6:].split("; ")) == {"z is known", "sent to x", "sent to y"}


async def test_factory_and_functional_graphs_run(loaded: LoadedGraphs) -> None:
    assert (await Running(loaded, "factory").run({"text": "you"}))["reply"] == "hello, you"
    assert (await Running(loaded, "context_factory").run({"text": "you"}))["reply"] == "1 open, you"
    assert (await Running(loaded, "runtime_factory").run({"text": "you"}))["reply"] == "running, you"
    workflow = Running(loaded, "entrypoint")
    await workflow.run({"number": 21, "ask": True})
    assert await workflow.answer("yes") == {"number": 42, "answer": "yes"}
