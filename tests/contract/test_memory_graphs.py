"""Graphs that remember: across threads, runs and restarts, each tenant for itself, and while their attempt counts."""

from typing import Any, TypedDict

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_store
from langgraph.func import task
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph_sdk.runtime import ServerRuntime

from assent.kernel.store.transaction import Tx
from assent.runs.checkpoints.types import CheckpointTypes
from assent.runs.project.graphs import FactoryGraph, StaticGraph
from assent.runs.project.loader import LoadedGraphs
from assent.runs.project.project import Project, config_for
from assent.threads.model.runs import Strategy
from assent.threads.rows import runs, threads
from assent.threads.rows.memory.items import MemorySection
from assent.threads.rows.state.checkpoints import Attempt, Fenced
from tests.contract.stores import AnyStore, both_databases, opened


class State(TypedDict, total=False):
    name: str
    known: list[str]


async def note(state: State, runtime: Runtime[None]) -> State:
    assert runtime.store is not None
    await runtime.store.aput(("people",), state["name"], {"name": state["name"]})
    return {}


def greet(state: State, *, store: BaseStore) -> State:
    """Without await, as most graphs are written: it runs in a thread."""
    assert get_store() is store
    return {"known": sorted(memory.key for memory in store.search(("people",)))}


@task
def inside(name: str) -> None:
    get_store().put(("people",), name, {"from": "a task"})


async def delegate(state: State) -> State:
    await inside(f"{state['name']}'s friend")
    return {}


def builder(config: RunnableConfig | None = None) -> StateGraph[State]:
    """Its first node is a graph of its own."""
    inner = StateGraph(State).add_node(note).add_node(delegate)
    inner.add_edge(START, "note").add_edge("note", "delegate").add_edge("delegate", END)
    graph = StateGraph(State).add_node("inner", inner.compile()).add_node(greet)
    return graph.add_edge(START, "inner").add_edge("inner", "greet").add_edge("greet", END)


async def made_for(runtime: ServerRuntime[None]) -> StateGraph[State]:
    """A factory that looks something up before there is a run."""
    await runtime.store.aput(("people",), "the factory", {})
    return builder()


def project(store: AnyStore) -> Project:
    static = StaticGraph("static", None, CheckpointTypes(), builder().compile())
    factory = FactoryGraph("factory", None, CheckpointTypes(), made_for)
    return Project(LoadedGraphs({"static": static, "factory": factory}, {}, MemorySection()), store)


async def run(on: Project, tenant: str, thread_id: str, name: str, graph: str = "static", **scope: Any) -> list[str]:
    config: Any = config_for(tenant, thread_id, **scope)
    async with on.open(graph, config) as opened_graph:
        state = await opened_graph.ainvoke({"name": name}, config)
    known: list[str] = state["known"]
    return known


@both_databases
async def test_graph_memory_is_kept_across_threads_and_restarts(database: str, store: AnyStore) -> None:
    here = project(store)
    assert await run(here, "acme", "one", "ada") == ["ada", "ada's friend"]
    assert await run(here, "acme", "two", "bob") == ["ada", "ada's friend", "bob", "bob's friend"]
    await store.close()
    async with opened(database) as again:
        known = await run(project(again), "acme", "three", "eve")
    assert known == ["ada", "ada's friend", "bob", "bob's friend", "eve", "eve's friend"]


@pytest.mark.promise("P10")
async def test_tenants_share_no_memory_on_one_loaded_graph(store: AnyStore) -> None:
    here = project(store)
    for number in range(12):
        name = f"person {number}"
        assert await run(here, f"tenant-{number}", "same thread", name) == [name, f"{name}'s friend"]


async def test_factory_gets_the_memory_store(store: AnyStore) -> None:
    assert await run(project(store), "acme", "one", "ada", graph="factory") == ["ada", "ada's friend", "the factory"]


def begin(tx: Tx) -> Attempt:
    threads.insert(tx, "one", {})
    runs.insert_pending(
        tx,
        "run",
        "one",
        assistant_id="a",
        graph_id="static",
        answers=False,
        wake_at=None,
        temporary=False,
        multitask_strategy=Strategy.REJECT,
        metadata={},
        kwargs={},
        webhook=None,
    )
    return begin_again(tx)


def begin_again(tx: Tx) -> Attempt:
    run = runs.begin(tx, "run")
    assert run is not None
    return Attempt(run.id, run.attempt)


async def test_superseded_attempt_writes_no_memory(store: AnyStore) -> None:
    here = project(store)
    first = await store.write("acme", begin)
    async with here.open("static", config_for("acme", "one", attempt=first)) as graph:
        assert graph.store is not None
        await graph.store.aput(("people",), "in time", {})
        await store.write("acme", runs.hand_back, first)
        second = await store.write("acme", begin_again)
        with pytest.raises(Fenced):
            await graph.store.aput(("people",), "too late", {})
        assert [memory.key for memory in await graph.store.asearch(("people",))] == ["in time"]
    assert await run(here, "acme", "one", "ada", attempt=second) == ["ada", "ada's friend", "in time"]
