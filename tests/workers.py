"""Real `assent worker` processes for tests. What they execute is asked for in this process, which executes nothing."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assent.app import Engine, open_engine, open_services
from assent.identity.model.access import DEFAULT_TENANT, operator
from assent.kernel.ids import new_id
from assent.kernel.store.ports import Store
from assent.runs.project.loader import LoadedGraphs, load_graphs
from assent.runs.project.manifest import read_manifest
from assent.settings import Settings
from assent.threads.model.runs import Run, RunStatus
from assent.threads.rows import runs, threads
from assent.threads.run_requests import RunRequest
from tests.servers import ServerProcess
from tests.waiting import until

GRAPHS = Path(__file__).parent / "graphs" / "workers.json"
SECRET = "a secret of the tests' own, long enough"
CALLER = operator()
PATIENCE = 60.0
UNFENCED = """
import sys
from assent.threads.rows import runs
from assent.threads.rows.state import checkpoints
checkpoints._FENCE = "coalesce(?::text, ?::text, ?::text) IS NOT NULL"
runs._END = runs._THIS.where(runs.bindparam("was") >= 0).values(
    status=runs.bindparam("new_status"), error=runs.bindparam("new_error"),
    ended_at=runs.bindparam("now"), updated_at=runs.bindparam("now"))
from assent.surfaces.cli.main import main
sys.argv[0] = "assent"
main()
"""
"""A worker whose late writes nobody refuses: what the fence is compared with."""


class WorkerProcess(ServerProcess):
    def start(self) -> ServerProcess:
        self.launch()
        self._wait_for(r"(Assent worker)")
        return self

    def signal(self, number: int) -> None:
        os.kill(self.process.pid, number)


def new_worker(
    database: str, *, fenced: bool = True, graphs: Path = GRAPHS, script: str = UNFENCED, **environment: str
) -> WorkerProcess:
    """`script` is what a worker without the defence is started by."""
    module = ["-m", "assent"] if fenced else ["-c", script]
    command = [sys.executable, *module, "worker", "--config", str(graphs), "--database", database]
    limits = {"ASSENT_RUN_PATIENCE": "2s", "ASSENT_RUN_CONCURRENCY": "64"}
    return WorkerProcess(command, {"ASSENT_SECRET_KEY": SECRET, **limits, **environment})


@dataclass
class Crew:
    """A Postgres database, the process that is asked (this one), and the workers."""

    database: str
    folder: Path
    store: Store
    engine: Engine
    workers: list[WorkerProcess] = field(default_factory=list)

    async def hire(self, count: int = 1, *, fenced: bool = True) -> list[WorkerProcess]:
        hired = [new_worker(self.database, fenced=fenced) for _ in range(count)]
        self.workers += hired
        await asyncio.gather(*(asyncio.to_thread(worker.start) for worker in hired))
        return hired

    async def start(self, graph: str, thread_id: str | None = None, **asked: Any) -> Run:
        thread = thread_id or (await self.engine.threads.create(CALLER)).id
        return await self.engine.runs.create(CALLER, thread, RunRequest(graph, **asked))

    async def start_gated(self, thread_id: str | None = None, **asked: Any) -> tuple[Run, Path]:
        """A run of `slow` that waits in its first node, and the folder with its gates."""
        gate = self.folder / new_id()
        gate.mkdir(mode=0o777)
        return await self.start("slow", thread_id, input={"text": "t", "gate": str(gate)}, **asked), gate

    async def run(self, run: Run) -> Run:
        run_row = await self.store.read(DEFAULT_TENANT, runs.get, run.id)
        assert run_row is not None
        return run_row

    async def values(self, run: Run) -> Any:
        thread_row = await self.store.read(DEFAULT_TENANT, threads.get, run.thread_id)
        assert thread_row is not None
        return thread_row.values

    async def ended(self, run: Run, *, patience: float = PATIENCE) -> Run:
        def over(run_row: Run) -> bool:
            return not run_row.status.active

        await until(lambda: self._is(run, over), f"{run.id} goes on", patience=patience)
        return await self.run(run)

    async def attempted(self, run: Run, number: int, *, patience: float = PATIENCE) -> Run:
        def begun(run_row: Run) -> bool:
            return run_row.attempt >= number and run_row.status is not RunStatus.PENDING

        await until(lambda: self._is(run, begun), f"{run.id} was not taken up", patience=patience)
        return await self.run(run)

    async def _is(self, run: Run, condition: Callable[[Run], bool]) -> bool:
        return condition(await self.run(run))

    def dismiss(self) -> None:
        for worker in self.workers:
            worker.kill()
        self.workers.clear()


@asynccontextmanager
async def crew_on(database: str, folder: Path) -> AsyncIterator[Crew]:
    settings = Settings(database=database, run_in_server=False)
    async with AsyncExitStack() as stack:
        services = await stack.enter_async_context(open_services(settings))
        engine = await stack.enter_async_context(open_engine(services.store, _graphs(), settings))
        crew = Crew(database, folder, services.store, engine)
        stack.callback(crew.dismiss)
        yield crew


def open_gates(gate: Path) -> None:
    for name in ("a", "b", "c"):
        (gate / f"{name}.go").touch()


def _graphs() -> LoadedGraphs:
    return load_graphs(read_manifest(GRAPHS))
