"""The queues under contract: the embedded one on SQLite, Procrastinate on Postgres with two workers in this process.

They execute a graph whose nodes tell this process when they are entered and left, so that nothing has to be guessed
from times: `Trace`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph

from assent.app import Engine, open_engine, open_services
from assent.identity.model.access import DEFAULT_TENANT, operator
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.runs.checkpoints.types import CheckpointTypes
from assent.runs.project.graphs import StaticGraph, compiled
from assent.runs.project.loader import LoadedGraphs
from assent.settings import Settings
from assent.threads.model.runs import Run
from assent.threads.model.threads import Thread
from assent.threads.rows import runs, threads
from assent.threads.run_requests import RunRequest
from tests.postgres import Cluster
from tests.waiting import until

CALLER = operator()
PATIENCE = 60.0


class State(TypedDict, total=False):
    tag: str
    hold: bool
    done: Annotated[list[str], lambda before, more: before + more]


@dataclass
class Trace:
    """Who was at work when: `(thread, tag, node)` in the order of entering, and what is inside right now."""

    entered: list[tuple[str, str, str]] = field(default_factory=list)
    inside: dict[str, list[str]] = field(default_factory=dict)
    met: list[str] = field(default_factory=list)
    gates: dict[str, asyncio.Event] = field(default_factory=dict)

    def gate(self, tag: str) -> asyncio.Event:
        return self.gates.setdefault(tag, asyncio.Event())

    def tags(self, thread_id: str) -> list[str]:
        """Runs of a thread by when they were first at work."""
        return list(dict.fromkeys(tag for thread, tag, _ in self.entered if thread == thread_id))

    async def visit(self, thread_id: str, state: State, node: str) -> None:
        tag, present = state["tag"], self.inside.setdefault(thread_id, [])
        self.entered.append((thread_id, tag, node))
        self.met += [f"{tag} met {other} on {thread_id}" for other in present]
        present.append(tag)
        try:
            if state.get("hold"):
                await self.gate(tag).wait()
            await asyncio.sleep(0.001)
        finally:
            present.remove(tag)

    def graphs(self) -> LoadedGraphs:
        builder = StateGraph(State)
        for name in ("a", "b"):
            builder.add_node(name, self._node(name))
        builder.add_edge(START, "a")
        builder.add_edge("a", "b")
        return LoadedGraphs({"traced": StaticGraph("traced", None, CheckpointTypes(), compiled(builder, "traced"))}, {})

    def _node(self, name: str) -> Any:
        async def node(state: State, config: RunnableConfig) -> State:
            await self.visit(config["configurable"]["thread_id"], state, name)
            return {"done": [f"{state['tag']}.{name}"]}

        return node


@dataclass
class Site:
    """A database with the processes on it. Everything is asked of the first one."""

    settings: Settings
    trace: Trace = field(default_factory=Trace)
    stores: list[Store] = field(default_factory=list)
    engines: list[Engine] = field(default_factory=list)

    @property
    def store(self) -> Store:
        return self.stores[0]

    @property
    def engine(self) -> Engine:
        return self.engines[0]

    @asynccontextmanager
    async def processes(self, count: int) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for _ in range(count):
                services = await stack.enter_async_context(open_services(self.settings))
                opening = open_engine(services.store, self.trace.graphs(), self.settings)
                self.engines.append(await stack.enter_async_context(opening))
                self.stores.append(services.store)
            yield
        self.engines.clear()
        self.stores.clear()

    async def thread(self) -> str:
        return (await self.engine.threads.create(CALLER)).id

    async def start(self, thread_id: str, tag: str, *, hold: bool = False, **asked: Any) -> Run:
        request = RunRequest("traced", input={"tag": tag, "hold": hold}, **asked)
        return await self.engine.runs.create(CALLER, thread_id, request)

    async def run(self, run: Run) -> Run | None:
        return await self.store.read(DEFAULT_TENANT, runs.get, run.id)

    async def row(self, thread_id: str) -> Thread:
        thread_row = await self.store.read(DEFAULT_TENANT, threads.get, thread_id)
        assert thread_row is not None
        return thread_row

    async def done(self, thread_id: str) -> list[str]:
        """What the runs that count have left in the thread's state."""
        return list(((await self.row(thread_id)).values or {}).get("done", []))

    async def until_idle(self) -> None:
        """No run is active anywhere."""

        async def idle() -> bool:
            return not await self.store.read(None, _active)

        await until(idle, "runs are still active")


@pytest.fixture(params=["embedded", "procrastinate"])
def queue(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def queue_settings(request: pytest.FixtureRequest, queue: str) -> Iterator[Settings]:
    limits: dict[str, Any] = {"run_patience": 0.2, "database_connections": 10, "run_concurrency": 16}
    if queue == "embedded":
        yield Settings(database=f"sqlite:///{request.getfixturevalue('folder')}/queue.db", **limits)
    else:
        cluster: Cluster = request.getfixturevalue("postgres")
        with cluster.database() as url:
            yield Settings(database=url, **limits)


@pytest.fixture
async def site(queue: str, queue_settings: Settings) -> AsyncIterator[Site]:
    site = Site(queue_settings)
    async with site.processes(1 if queue == "embedded" else 2):
        yield site


def _active(tx: Tx) -> int:
    row = tx.sql("SELECT count(*) FROM runs WHERE status IN ('pending', 'running')").first()
    return int(row[0]) if row else 0
