"""LangGraph's own RemoteGraph against a real server: it reads, runs, pauses and resumes a graph as if it were local."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict
from uuid import uuid4

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.pregel.remote import RemoteException, RemoteGraph
from langgraph.types import Command
from langgraph_sdk.client import LangGraphClient, SyncLangGraphClient

pytestmark = pytest.mark.promise("SERVE-01")

ACCEPT = [{"type": "accept", "args": None}]
LOG = ["outer", "outer", "inner: not asked", "last"]  # the inner graph hands back what it was given

Remote = Callable[[str], RemoteGraph]


class Outer(TypedDict, total=False):
    text: str
    answer: Any
    log: Annotated[list[str], operator.add]


@pytest.fixture
def remote(client: LangGraphClient, sync_client: SyncLangGraphClient) -> Remote:
    return lambda graph: RemoteGraph(graph, client=client, sync_client=sync_client)


def on_thread(thread: str | None = None) -> RunnableConfig:
    return {"configurable": {"thread_id": thread or str(uuid4())}}


def around(*graphs: RemoteGraph) -> Any:
    """A local graph whose nodes are remote ones, side by side."""
    builder = StateGraph(Outer)
    for graph in graphs:
        name = f"remote_{graph.assistant_id}"
        builder.add_node(name, graph)
        builder.add_edge(START, name)
    return builder.compile(checkpointer=InMemorySaver())


async def test_invoke_makes_the_thread_and_returns_the_values(remote: Remote) -> None:
    config = on_thread()
    assert await remote("echo").ainvoke({"text": "x"}, config) == {"text": "x", "reply": "x"}
    assert remote("echo").invoke({"text": "y"}, config) == {"text": "y", "reply": "y"}
    assert remote("echo").invoke({"text": "z"}) == {"text": "z", "reply": "z"}


async def test_every_stream_mode_arrives_under_its_name(remote: Remote) -> None:
    modes: Any = ["values", "updates", "messages", "custom", "debug", "tasks", "checkpoints"]
    said: Any = {"messages": [{"role": "user", "content": "hello there"}]}
    parts: list[Any] = [part async for part in remote("chat").astream(said, on_thread(), stream_mode=modes)]
    seen = [part.event for part in parts]
    assert set(seen) == set(modes) - {"custom"}
    words = [part.data[0]["content"] for part in parts if part.event == "messages"]
    assert "".join(words).strip() == "you said: hello there"
    assert parts[-1].event in ("values", "checkpoints", "debug")


async def test_one_mode_streams_bare_data(remote: Remote) -> None:
    config = on_thread()
    updates = [part async for part in remote("echo").astream({"text": "x"}, config)]
    assert updates == [{"echo": {"reply": "x"}}]
    values = list(remote("echo").stream({"text": "y"}, config, stream_mode="values"))
    assert values[-1] == {"text": "y", "reply": "y"}


async def test_subgraph_events_carry_their_namespace(remote: Remote) -> None:
    graph = remote("subgraph")
    parts: list[Any] = [part async for part in graph.astream({"text": "x"}, on_thread(), subgraphs=True)]
    inner = [data for place, data in parts if place]
    assert inner == [{"inner": {"log": ["inner: not asked"]}}]
    assert [list(data) for place, data in parts if not place] == [["outer"], ["child"], ["last"]]


async def test_the_second_stream_format_works_too(remote: Remote) -> None:
    output: Any = await remote("hitl").ainvoke({"text": "x"}, on_thread(), version="v2")
    assert output.value == {"text": "x"}
    (question,) = output.interrupts
    assert question.value["action_request"]["action"] == "send_email"


async def test_state_and_history_are_snapshots(remote: Remote) -> None:
    graph, config = remote("subgraph"), on_thread()
    await graph.ainvoke({"text": "x"}, config)
    state = await graph.aget_state(config)
    assert (state.values["log"], state.next, state.tasks) == (LOG, (), ())
    past = [state async for state in graph.aget_state_history(config)]
    assert [(state.metadata or {})["step"] for state in past] == [3, 2, 1, 0, -1]
    assert past[0].config == state.config
    earlier = graph.get_state(past[1].config)
    assert (earlier.values, earlier.next) == (past[1].values, ("last",))
    assert [state.config for state in graph.get_state_history(config, limit=2)] == [state.config for state in past[:2]]
    assert [state.config async for state in graph.aget_state_history(config, before=past[2].config)] == [
        state.config for state in past[3:]
    ]


async def test_the_state_of_a_fresh_thread_is_empty(remote: Remote, client: LangGraphClient) -> None:
    thread = (await client.threads.create())["thread_id"]
    assert [state async for state in remote("echo").aget_state_history(on_thread(thread))] == []


async def test_update_creates_a_state_to_continue_from(remote: Remote) -> None:
    graph, config = remote("slow"), on_thread()
    await graph.ainvoke({"text": "x"}, config, interrupt_before=["b"])
    changed = await graph.aupdate_state(config, {"text": "y", "log": ["by hand"]})
    assert graph.get_state(changed).values == {"text": "y", "log": ["x:a", "by hand"]}
    assert (await graph.ainvoke(None, config))["log"] == ["x:a", "by hand", "y:b", "y:c"]
    graph.update_state(config, {"log": ["again"]}, as_node="b")
    assert (await graph.aget_state(config)).next == ("c",)


@pytest.mark.promise("INBOX-16", "INBOX-20")
async def test_a_question_is_raised_and_answered(remote: Remote) -> None:
    graph, config = remote("hitl"), on_thread()
    paused = await graph.ainvoke({"text": "draft"}, config)
    (question,) = paused["__interrupt__"]
    state = await graph.aget_state(config)
    assert state.next == ("review",)
    assert [interrupt.id for interrupt in state.interrupts] == [question["id"]]
    answered = await graph.ainvoke(Command(resume=ACCEPT), config)
    assert answered["answer"]["type"] == "accept"
    assert (await graph.aget_state(config)).next == ()


async def test_parallel_questions_are_answered_by_id(remote: Remote) -> None:
    graph, config = remote("parallel"), on_thread()
    await graph.ainvoke({"text": "x"}, config)
    asked = {interrupt.value["question"]: interrupt.id for interrupt in (await graph.aget_state(config)).interrupts}
    assert set(asked) == {"left?", "right?"}
    graph.invoke(Command(resume={asked["left?"]: "yes"}), config)
    assert [interrupt.value["question"] for interrupt in graph.get_state(config).interrupts] == ["right?"]
    done = graph.invoke(Command(resume={asked["right?"]: "no"}), config)
    assert sorted(done["answers"]) == ["left=yes", "right=no"]


async def test_a_question_inside_a_subgraph_is_found_in_its_state(remote: Remote) -> None:
    graph, config = remote("subgraph"), on_thread()
    await graph.ainvoke({"text": "x", "ask": True}, config)
    state: Any = await graph.aget_state(config, subgraphs=True)
    (child,) = state.tasks
    assert child.state.next == ("inner",)
    assert child.state.values["log"] == ["outer"]
    alone: Any = await graph.aget_state(config)
    assert alone.tasks[0].state["configurable"]["checkpoint_ns"].startswith("child:")
    done = await graph.ainvoke(Command(resume="go"), config)
    assert done["log"] == ["outer", "outer", "inner: go", "last"]


async def test_goto_command_moves_an_idle_graph(remote: Remote) -> None:
    graph, config = remote("slow"), on_thread()
    await graph.ainvoke({"text": "x"}, config)
    moved = await graph.ainvoke(Command(goto="c", update={"text": "y"}), config)
    assert moved["log"] == ["x:a", "x:b", "x:c", "y:c"]


async def test_an_error_of_the_graph_is_raised(remote: Remote) -> None:
    with pytest.raises(RemoteException, match="boom: x"):
        await remote("failing").ainvoke({"text": "x"}, on_thread())


async def test_remote_graph_is_drawn(remote: Remote) -> None:
    drawn = await remote("subgraph").aget_graph(xray=True)
    assert {"outer", "last"} <= {node.name for node in drawn.nodes.values()}
    assert set(remote("slow").get_graph().nodes) == {"__start__", "a", "b", "c", "__end__"}


async def test_remote_graph_works_as_a_node_of_another_graph(remote: Remote) -> None:
    outer = around(remote("slow"))
    parts = [part async for part in outer.astream({"text": "x"}, on_thread(), subgraphs=True, stream_mode="updates")]
    assert [next(iter(data)) for place, data in parts if place] == ["a", "b", "c"]
    assert parts[-1][1]["remote_slow"]["log"] == ["x:a", "x:b", "x:c"]


async def test_question_of_a_remote_node_is_asked_by_the_outer_graph(remote: Remote) -> None:
    outer, config = around(remote("hitl")), on_thread()
    paused = await outer.ainvoke({"text": "draft"}, config)
    (question,) = paused["__interrupt__"]
    done = await outer.ainvoke(Command(resume={question.id: ACCEPT}), config)
    assert done["answer"]["type"] == "accept"
    assert (await remote("hitl").aget_state(config)).next == ()


async def test_outer_graph_continues_after_the_question_was_answered_elsewhere(
    remote: Remote, client: LangGraphClient
) -> None:
    outer, config = around(remote("hitl")), on_thread()
    paused = await outer.ainvoke({"text": "draft"}, config)
    (question,) = paused["__interrupt__"]
    await client.runs.wait(config["configurable"]["thread_id"], "hitl", command={"resume": {question.id: ACCEPT}})
    done = await outer.ainvoke(Command(resume={question.id: "too late"}), config)
    assert done["answer"]["type"] == "accept"


async def test_next_turn_of_the_outer_graph_is_new_input(remote: Remote) -> None:
    outer, config = around(remote("slow")), on_thread()
    await outer.ainvoke({"text": "one"}, config)
    await outer.ainvoke({"text": "two"}, config, interrupt_before=["remote_slow"])
    assert (await outer.ainvoke(None, config))["log"][-3:] == ["two:a", "two:b", "two:c"]
