"""Threads of the example graphs as runs leave them, made without a queue: the graph runs in the test itself."""

from dataclasses import dataclass, field
from typing import Any

import httpx
from langgraph.types import Command
from langgraph_sdk.client import LangGraphClient

from assent.identity.model.access import DEFAULT_TENANT
from assent.kernel.ids import new_id
from assent.kernel.store.transaction import Tx
from assent.runs.engine import outcomes
from assent.runs.project.loader import LoadedGraphs
from assent.runs.project.project import Project, config_for
from assent.runs.threads.threads import Threads
from assent.surfaces.api.langgraph import threads as thread_routes
from assent.threads.model.runs import Outcome, RunStatus, Strategy
from assent.threads.model.threads import Thread, ThreadStatus, resting
from assent.threads.rows import runs, threads
from tests.api.langgraph.server import Server

ASSISTANT = "d2a02ed8-fb92-5e43-81ea-cb78d82caa2f"
NOBODY = "00000000-0000-4000-8000-000000000000"


@dataclass
class Conversations:
    server: Server
    tenant: str = DEFAULT_TENANT
    edited: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = self.server.store
        self.project = Project(LoadedGraphs(self.server.graphs, {}), self.store)
        self.threads = Threads(self.store, self.project, on_state=self._on_state)
        self.server.app.include_router(thread_routes.routes(self.threads))

    async def client(self, *scopes: str, tenant: str | None = None) -> httpx.AsyncClient:
        return await self.server.client(*scopes, tenant=tenant or self.tenant)

    async def sdk(self) -> LangGraphClient:
        return LangGraphClient(await self.client())

    async def thread(self, graph_id: str, given: Any, *, thread_id: str | None = None, **metadata: Any) -> str:
        """A thread on which `graph_id` ran until it was done, or stopped."""
        known = thread_id or new_id()
        stamp = {"graph_id": graph_id, "assistant_id": ASSISTANT}
        await self.store.write(self.tenant, lambda tx: threads.insert(tx, known, {**metadata, **stamp}))
        await self.run(known, given)
        return known

    async def run(self, thread_id: str, given: Any) -> Outcome:
        row = await self.row(thread_id)
        assert row.graph_id is not None
        config: Any = config_for(self.tenant, thread_id)
        error: dict[str, Any] | None = None
        async with self.project.open(row.graph_id, config) as graph:
            try:
                await graph.ainvoke(given, config)
            except ValueError as raised:
                error = {"error": type(raised).__name__, "message": str(raised)}
            snapshot = await graph.aget_state(config_for(self.tenant, thread_id))  # type: ignore[arg-type]
        outcome = outcomes.of_state(snapshot, RunStatus.ERROR if error else RunStatus.SUCCESS, error)
        await self.store.write(self.tenant, _finish, thread_id, outcome)
        return outcome

    async def answer(self, thread_id: str, *answers: Any) -> Outcome:
        """One answer for each open question, by its id."""
        ids = [question["id"] for question in (await self.row(thread_id)).pending]
        return await self.run(thread_id, Command(resume=dict(zip(ids, answers, strict=True))))

    async def row(self, thread_id: str) -> Thread:
        thread_row = await self.store.read(self.tenant, threads.get, thread_id)
        assert thread_row is not None
        return thread_row

    async def queue_run(self, thread_id: str, *, status: RunStatus = RunStatus.PENDING, **columns: Any) -> str:
        """A run of the thread that is there, though nobody executes it."""
        run_id = new_id()
        await self.store.write(self.tenant, _queue_run, thread_id, run_id, status, columns)
        return run_id

    async def _on_state(self, tenant: str, thread_id: str, state: dict[str, Any]) -> None:
        self.edited.append((tenant, thread_id, state))


def _finish(tx: Tx, thread_id: str, outcome: Outcome) -> None:
    rest = resting(waits=bool(outcome.pending), next=outcome.next)
    threads.set_state(
        tx,
        thread_id,
        status=ThreadStatus.ERROR if outcome.error else rest,
        values=outcome.values,
        interrupts=outcome.interrupts,
        error=outcome.error,
        next=list(outcome.next),
    )


def _queue_run(tx: Tx, thread_id: str, run_id: str, status: RunStatus, columns: dict[str, Any]) -> None:
    facts: dict[str, Any] = {"answers": False, "temporary": False, "multitask_strategy": Strategy.ENQUEUE}
    named = {"assistant_id": ASSISTANT, "graph_id": "echo", "metadata": {}, "kwargs": {}}
    runs.insert_pending(tx, run_id, thread_id, **{**facts, **named, **columns})
    if status is RunStatus.RUNNING:
        assert runs.begin(tx, run_id) is not None
        threads.set_status(tx, thread_id, ThreadStatus.BUSY)
