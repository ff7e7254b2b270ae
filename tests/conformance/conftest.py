"""LangGraph's own server and ours, on the same graphs: one process of each per session, shared by all workers."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from bench.reference import ENVIRONMENT, reference
from bench.served import assent, begin
from tests.missing import missing
from tests.postgres import SESSION, locked

GRAPHS = Path(__file__).parent / "graphs"
_OF_CLIENTS = Path(__file__).parents[1] / "graphs"
"""The graphs of `tests/e2e`, as far as LangGraph's server can load them: it has no LangChain."""
JOBS = 40
"""How many runs LangGraph's server executes at once. It polls for new ones, so that a run takes about a second."""


@dataclass(frozen=True)
class Pair:
    theirs: LangGraphClient
    ours: LangGraphClient

    def __iter__(self) -> Iterator[LangGraphClient]:
        return iter((self.theirs, self.ours))


@pytest.fixture(scope="session")
def addresses(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    if not ENVIRONMENT.exists():
        missing("LangGraph's server: tools/setup reference")
    session = request.config.stash[SESSION]
    session.mkdir(mode=0o755, exist_ok=True)
    with shared(session / "conformance") as urls:
        yield urls


@contextmanager
def shared(folder: Path) -> Iterator[list[str]]:
    """The addresses of both servers. The first worker starts them, the last one ends them."""
    folder.mkdir(exist_ok=True)
    with locked(folder):
        state = _state(folder)
        if not state["servers"]:
            state["servers"] = [_started(folder, name, command) for name, command in _COMMANDS.items()]
        _write(folder, {**state, "users": [*state["users"], os.getpid()]})
    try:
        yield [f"http://127.0.0.1:{server['port']}" for server in state["servers"]]
    finally:
        with locked(folder):
            state = _state(folder)
            state["users"].remove(os.getpid())
            if not state["users"]:
                _end(state.pop("servers"))
            _write(folder, {"servers": [], **state})


def _state(folder: Path) -> dict[str, Any]:
    """Without workers that died."""
    file = folder / "state.json"
    state = json.loads(file.read_text()) if file.exists() else {"servers": [], "users": []}
    return {**state, "users": [pid for pid in state["users"] if psutil.pid_exists(pid)]}


def _write(folder: Path, state: dict[str, Any]) -> None:
    (folder / "state.json").write_text(json.dumps(state))


def _reference(folder: Path, port: int) -> list[str]:
    return [*reference(folder, port), "--n-jobs-per-worker", str(JOBS)]


def _ours(folder: Path, port: int) -> list[str]:
    """The code of this checkout; benchmarks measure the installed wheel."""
    return assent(folder, port, python=Path(sys.executable))


_COMMANDS = {"theirs": _reference, "ours": _ours}
_OWN: dict[int, subprocess.Popen[bytes]] = {}
"""The servers that this worker started."""


def _started(folder: Path, name: str, command: Any) -> dict[str, int]:
    place = folder / name
    shutil.copytree(GRAPHS, place, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    (place / "clients").mkdir(exist_ok=True)
    for module in ("echo", "slow", "questions", "nested", "streams"):
        shutil.copy(_OF_CLIENTS / f"{module}.py", place / "clients")
    served, process = begin(command, place)
    _OWN[process.pid] = process
    return {"port": served.port, "pid": process.pid}


def _end(servers: list[dict[str, int]]) -> None:
    for server in servers:
        with suppress(ProcessLookupError):
            os.kill(server["pid"], signal.SIGTERM)
    for server in servers:
        if process := _OWN.pop(server["pid"], None):
            with suppress(subprocess.TimeoutExpired):  # LangGraph's server waits for streams that nobody reads any more
                process.wait(5)
            process.kill()
            process.wait()


@pytest.fixture
async def pair(addresses: list[str]) -> AsyncIterator[Pair]:
    made = Pair(*(get_client(url=url) for url in addresses))
    yield made
    async with asyncio.timeout(10):
        for client in made:
            await client.aclose()
