"""Real server processes for tests: `assent dev` on a free port and a database of its own, killed or stopped at will."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.forking import ASSENT, Forked
from tests.waiting import wait_until

GRAPHS = Path(__file__).parent / "graphs" / "langgraph.json"
_PATIENCE = 90.0
_LONGEST_PAUSE = 0.1


@dataclass
class ServerProcess:
    """One `assent` process. `output` is what it has printed so far, on either stream."""

    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    output: str = ""
    url: str = ""

    def start(self) -> ServerProcess:
        self.launch()
        self.url = self._wait_for(r"listening\s+(http://\S+)")
        wait_until(self._answers, f"the server does not answer:\n{self.output}")
        return self

    def launch(self) -> None:
        """Starts it without waiting until it serves."""
        self.output, self.url = "", ""
        self.process = self._launched({**os.environ, "ASSENT_LOG_LEVEL": "info", **self.environment})
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _launched(self, environment: dict[str, str]) -> subprocess.Popen[str] | Forked:
        """A copy of a process that has imported everything, unless another program is to run."""
        python, *program = self.command[: len(ASSENT)]
        if [python, *program] == ASSENT or program[:1] == ["-c"]:
            arguments = self.command[len(ASSENT) :]
            return Forked(arguments, folder=Path.cwd(), environment=environment, program=program)
        return subprocess.Popen(
            self.command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def kill(self) -> None:
        self.process.kill()
        self._gone()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self._gone()

    def wait(self) -> int:
        """Its exit code, once it has ended by itself."""
        return self._gone()

    def _gone(self) -> int:
        code = self.process.wait(_PATIENCE)
        self._reader.join()
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code

    def printed(self, name: str) -> str:
        """What the start announced under `name`, such as `agent key`."""
        return self._wait_for(rf"^\s+{name}\s+(\S+)")

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output += line

    def _answers(self) -> bool:
        if self.process.poll() is not None:
            raise AssertionError(f"the server ended with {self.process.returncode}:\n{self.output}")
        try:
            return httpx.get(f"{self.url}/ok", timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    def _wait_for(self, pattern: str) -> str:
        def printed() -> re.Match[str] | None:
            if self.process.poll() is not None and not self._reader.is_alive():
                raise AssertionError(f"the server ended with {self.process.returncode}:\n{self.output}")
            return re.search(pattern, self.output, re.MULTILINE)

        wait_until(lambda: printed() is not None, f"{pattern} was not printed")
        match = printed()
        assert match is not None
        return match[1]


def dev_server(database: str, *, config: Path = GRAPHS, **environment: str) -> ServerProcess:
    command = [*ASSENT, "dev", "--port", "0", "--config", str(config), "--database", database]
    return ServerProcess(command, environment)


@contextmanager
def running(server: ServerProcess) -> Iterator[ServerProcess]:
    try:
        server.start()
        yield server
    finally:
        if server.process.poll() is None:
            server.kill()


def frames(response: httpx.Response) -> Iterator[dict[str, str]]:
    """Raw server-sent events, for what the SDKs hide."""
    current: dict[str, str] = {}
    for line in response.iter_lines():
        if line:
            name, _, value = line.partition(": ")
            current[name] = value
        elif current:
            yield current
            current = {}
