"""`assent` in processes that can be killed often: copies of one that has imported everything, half a second to a start.

A site is what serves: one process on SQLite; a server and two workers on Postgres.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

import httpx

from assent.app import open_services
from assent.identity.model.access import DEFAULT_TENANT, Kind, Role, operator
from assent.settings import Settings
from tests.waiting import wait_until

GRAPHS = Path(__file__).parent / "langgraph.json"
SECRET = "a secret of the tests' own, long enough"
FORKS = multiprocessing.get_context("forkserver")
_PRELOADED = [
    "tests.gate.crashing",
    "tests.graphs_gated.agents",
    "assent.surfaces.cli.main",
    "assent.surfaces.cli.server.server",
    "assent.surfaces.cli.server.worker",
    "assent.surfaces.api.langgraph.assistants",
    "assent.surfaces.api.langgraph.runs",
    "assent.runs.bus.postgres",
    "assent.runs.queues.procrastinate",
    "assent.runs.checkpoints.saver",
    "assent.runs.project.gate_keeper",
    "assent.gate.middleware",
    "assent.outbox.client",
    "assent.outbox.webhooks",
    "assent.kernel.store.drivers.postgres",
    "assent.kernel.store.drivers.sqlite",
    "assent.surfaces.web.pages.inbox",
]


@dataclass
class Forked:
    """One `assent` process. What it prints goes to the file `log`."""

    arguments: Sequence[str]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    process: BaseProcess | None = None

    def launch(self) -> None:
        self.log.unlink(missing_ok=True)
        FORKS.set_forkserver_preload(_PRELOADED)
        self.process = FORKS.Process(
            target=run_command, args=(list(self.arguments), dict(self.environment), str(self.log)), daemon=True
        )
        self.process.start()

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join(30)
            self.process.close()
            self.process = None

    @property
    def output(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def wait_for(self, text: str) -> None:
        def said() -> bool:
            assert self.process is not None
            assert self.process.is_alive(), f"the process ended:\n{self.output}"
            return text in self.output

        wait_until(said, f"{text!r} was not printed:\n{self.output}", patience=60)


def run_command(arguments: list[str], environment: dict[str, str], log: str) -> None:
    """What the forked process does."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    os.environ.update(environment)
    sys.argv = ["assent", *arguments]
    from assent.surfaces.cli.main import main

    main()


class Site:
    """Always at the same address, whoever answers there."""

    def __init__(self, folder: Path, database: str, *, workers: int = 0, mode: str = "dev") -> None:
        self.database = database
        self.url = f"http://127.0.0.1:{_free_port()}"
        environment = {"ASSENT_SECRET_KEY": SECRET, "ASSENT_RUN_PATIENCE": "2s", "ASSENT_RUN_CONCURRENCY": "64"}
        config = ["--config", str(GRAPHS), "--database", database]
        port = self.url.rpartition(":")[2]
        alone = {} if workers == 0 else {"ASSENT_RUN_IN_SERVER": "false"}
        self.server = Forked([mode, "--port", port, *config], folder / "server.log", environment | alone)
        self.workers = [
            Forked(["worker", *config], folder / f"worker-{number}.log", environment) for number in range(workers)
        ]

    @property
    def processes(self) -> list[Forked]:
        return [self.server, *self.workers]

    def start(self) -> None:
        """Starts whatever does not run."""
        launched = [process for process in self.processes if process.process is None]
        for one in launched:
            one.launch()
        for one in launched:
            one.wait_for("Assent worker" if one in self.workers else "listening")
        wait_until(self._answers, f"the server does not answer:\n{self.server.output}")

    def stop(self) -> None:
        for process in self.processes:
            process.kill()

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/ok", timeout=5).status_code == 200
        except httpx.TransportError:
            return False


@contextmanager
def open_site(folder: Path, database: str, *, workers: int = 0, mode: str = "dev") -> Iterator[Site]:
    site = Site(folder, database, workers=workers, mode=mode)
    try:
        site.start()
        yield site
    finally:
        site.stop()


def make_keys(database: str, *names: str, role: Role = Role.REVIEWER, tenant: str = DEFAULT_TENANT) -> dict[str, str]:
    """A key for each of these new people."""

    async def make() -> dict[str, str]:
        made = {}
        async with open_services(Settings(database=database)) as services:
            for name in names:
                await services.users.create(operator(tenant), name=name, role=role)
                key = await services.keys.create(
                    operator(tenant), kind=Kind.REVIEWER, name=f"{name}'s", user=name, scopes=()
                )
                made[name] = key.secret
        return made

    return asyncio.run(make())


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
