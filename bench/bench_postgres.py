"""Runs on Postgres with workers: how long it takes from the request until another process executes the run, and what a
second worker adds to a graph that waits for something else.

Postgres is one of its own, durable as it comes. The server executes no runs; its address is the queue of the workers.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from secrets import token_hex
from statistics import median

from assent.app import open_services
from assent.identity.model.access import Kind, operator
from assent.settings import Settings
from bench.items import Caller
from bench.rows import Row, at_most, ratio_at_least
from bench.served import Served, environment, installed, serving, workplace
from tests.postgres_server import PostgresServer, kill_server, reachable_programs

STARTS, WARM_UP = 60, 10
CLIENTS, TURNS, CONCURRENCY = 48, 3, 16


def run() -> list[Row]:
    with _postgres() as url, workplace() as folder:
        key = asyncio.run(_agent_key(url))
        with _server(url, folder) as served, ExitStack() as workers:
            workers.enter_context(_worker(url, folder))
            started = _starts(served, key)
            alone = _rate(served, key)
            workers.enter_context(_worker(url, folder))
            together = _rate(served, key)
    return [
        at_most("Postgres: create → start in another process", median(started), "ms", target=6),
        ratio_at_least("Postgres: two workers / one, graph that waits", together, "runs/s", peer=alone, target=1.7),
    ]


def _starts(served: Served, key: str) -> list[float]:
    """Milliseconds from the request to the first line of the node, by the clock that all processes share."""
    with closing(Caller(served.port, key)) as caller:
        return [_start(caller) for _ in range(WARM_UP + STARTS)][WARM_UP:]


def _start(caller: Caller) -> float:
    thread = caller.post("/threads", {})["thread_id"]
    sent = time.monotonic()
    begun = caller.post(f"/threads/{thread}/runs/wait", {"assistant_id": "moment", "input": {}})["reply"]
    return (float(begun) - sent) * 1000


def _rate(served: Served, key: str) -> float:
    """Runs per second, after a round in which every worker has loaded the graph."""
    with ThreadPoolExecutor(CLIENTS) as threads:
        list(threads.map(lambda _: _wait(served, key, 1), range(CLIENTS)))
        began = time.monotonic()
        list(threads.map(lambda _: _wait(served, key, TURNS), range(CLIENTS)))
        return CLIENTS * TURNS / (time.monotonic() - began)


def _wait(served: Served, key: str, turns: int) -> None:
    with closing(Caller(served.port, key)) as caller:
        thread = caller.post("/threads", {})["thread_id"]
        for _ in range(turns):
            caller.post(f"/threads/{thread}/runs/wait", {"assistant_id": "waits", "input": {}})


async def _agent_key(url: str) -> str:
    async with open_services(Settings(database=url)) as services:
        return (await services.keys.create(operator(), kind=Kind.AGENT, name="bench")).secret


@contextmanager
def _postgres() -> Iterator[str]:
    directory = Path(tempfile.mkdtemp(prefix="assent-bench-"))
    directory.chmod(0o755)  # it runs as another user where this runs as root
    programs = reachable_programs(directory)
    if programs is None:
        raise RuntimeError("there is no Postgres: install requirements/dev.txt")
    server = PostgresServer(programs, directory, {})
    try:
        server.initialise()
        server.start()
        yield server.url
    finally:
        kill_server(server.data)
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _server(url: str, folder: Path) -> Iterator[Served]:
    def command(folder: Path, port: int) -> list[str]:
        return _assent("serve", url, folder, "--port", str(port))

    with serving(command, folder) as served:
        yield served


@contextmanager
def _worker(url: str, folder: Path) -> Iterator[None]:
    with (folder / "worker.txt").open("ab") as output:
        process = subprocess.Popen(
            _assent("worker", url, folder), cwd=folder, env=environment(), stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


def _assent(command: str, url: str, folder: Path, *options: str) -> list[str]:
    """The settings are in a file, because the environment of whoever measures is not passed on."""
    settings = folder / "assent.toml"
    if not settings.exists():
        settings.write_text(f'secret_key = "{token_hex()}"\nrun_in_server = false\nrun_concurrency = {CONCURRENCY}\n')
        os.chmod(settings, 0o600)
    config = ["--config", str(folder / "langgraph.json"), "--database", url]
    return [str(installed()), "-m", "assent", command, *config, *options]
