"""Server processes under measurement: started alike, on a port and in a folder of their own, read by their CPU time and
memory. What they print goes to a file, as in production, because printing is part of what a request costs."""

from __future__ import annotations

import http.client
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

GRAPHS = Path(__file__).parent / "graphs"
INSTALLED = Path(__file__).parents[1] / ".tools" / "installed"
"""An environment with the wheel and what it requires, as users have it (`tools/setup installed`). The one of the tests
has packages that LangChain and LangSmith import when they find them."""

_PATIENCE, _PATIENCE_OF_CHILDREN = 180.0, 20.0
_MEBIBYTE = 1024**2


@dataclass(frozen=True)
class Served:
    """A server that answers. `started_in` is the time from its start to its first answer."""

    port: int
    process: psutil.Process
    started_in: float

    def cpu_seconds(self) -> float:
        return sum(sum(one.cpu_times()[:2]) for one in self._processes())

    def resident_mib(self) -> float:
        return float(sum(one.memory_info().rss for one in self._processes())) / _MEBIBYTE

    def _processes(self) -> list[psutil.Process]:
        return [self.process, *self.process.children(recursive=True)]


Command = Callable[[Path, int], list[str]]
"""What starts a server in a folder, on a port."""


def assent(folder: Path, port: int, python: Path | None = None) -> list[str]:
    database = f"sqlite:///{folder / 'assent.db'}"
    command = [str(python or installed()), "-m", "assent", "dev", "--port", str(port)]
    return [*command, "--config", str(folder / "langgraph.json"), "--database", database]


def installed() -> Path:
    python = INSTALLED / "bin" / "python"
    if not python.exists():
        raise RuntimeError("Assent is not installed for benchmarks: run tools/setup installed, or `make bench`")
    return python


@contextmanager
def workplace() -> Iterator[Path]:
    """A folder with the graphs, where a server finds them and leaves its data."""
    with tempfile.TemporaryDirectory(prefix="assent-bench-") as made:
        folder = Path(made)
        shutil.copytree(GRAPHS, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        yield folder


@contextmanager
def serving(command: Command, folder: Path) -> Iterator[Served]:
    served, process = begin(command, folder)
    try:
        yield served
    finally:
        _end(process, served)


def _end(process: subprocess.Popen[bytes], served: Served) -> None:
    """Children write their state after the first process is gone, as those of LangGraph.js do."""
    children = served.process.children(recursive=True) if served.process.is_running() else []
    process.terminate()
    process.wait(_PATIENCE)
    for child in psutil.wait_procs(children, _PATIENCE_OF_CHILDREN)[1]:
        child.kill()


def begin(command: Command, folder: Path) -> tuple[Served, subprocess.Popen[bytes]]:
    """A server that answers, and its process, which the caller ends."""
    port = _free_port()
    with (folder / "output.txt").open("ab") as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            command(folder, port), cwd=folder, env=environment(), stdout=output, stderr=subprocess.STDOUT
        )
    try:
        _wait_for_answer(process, port, folder)
    except BaseException:
        process.kill()
        raise
    return Served(port, psutil.Process(process.pid), time.perf_counter() - started), process


def environment() -> dict[str, str]:
    """As a user has it: with bytecode, and without settings of whoever runs the benchmark."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "ASSENT_", "LANG"))}


def _wait_for_answer(process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not _answers(port):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the server did not start:\n{(folder / 'output.txt').read_text()}")
        time.sleep(0.01)


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/ok")
        return connection.getresponse().status in (200, 404)  # Aegra has no such route
    except OSError:
        return False
    finally:
        connection.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
