"""`assent …` as a person or a script runs it: inside this process where that is enough, as a process of its own where
signals, sockets or the way in matter."""

import json
import os
import queue
import signal
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.forking import Forked

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0
EVERYWHERE = "0.0.0.0"  # noqa: S104 - what the tests try to listen on


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def environment(**changes: str) -> dict[str, str]:
    """The surroundings of a new process: nothing of ours but what is named."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ASSENT_")}
    return kept | {"COLUMNS": "200", "NO_COLOR": "1"} | changes


def execute(folder: Path, *arguments: str, **changes: str) -> Result:
    """One command in a process of its own."""
    with Forked(arguments, folder=folder, environment=environment(**changes), errors_apart=True) as process:
        assert process.stderr
        with ThreadPoolExecutor() as readers:  # it would stop at a full pipe
            out, err = readers.map(lambda stream: stream.read(), (process.stdout, process.stderr))
        return Result(process.wait(PATIENCE), out, err)


class Server:
    """A server process, from its first line to its last."""

    def __init__(self, process: Forked) -> None:
        self.process = process
        self.said: dict[str, str] = {}
        self.log: list[str] = []
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        assert process.stderr
        threading.Thread(target=self._listen, args=[process.stdout], daemon=True).start()
        self._reader = threading.Thread(target=self.log.extend, args=[process.stderr], daemon=True)
        self._reader.start()

    @property
    def url(self) -> str:
        return self.said["listening"].split()[0]

    def await_start(self) -> None:
        """Reads what a start prints, up to the empty line that ends it."""
        while "sign in" not in self.said or not self._last_blank:
            line = self._lines.get(timeout=PATIENCE)
            if line is None:
                self._reader.join(PATIENCE)
                raise AssertionError(f"the server ended: {self.process.wait(PATIENCE)} {''.join(self.log)}")
            self._last_blank = not line.strip()
            name, value = line[2:15].strip(), line[15:].strip()
            if line.startswith("  ") and value:
                self.said[name] = value

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return code

    def get(self, path: str, **headers: str) -> httpx.Response:
        with httpx.Client(base_url=self.url, trust_env=False, timeout=PATIENCE) as client:
            return client.get(path, headers=headers)

    _last_blank = False

    def _listen(self, stream: "Iterator[str]") -> None:
        for line in stream:
            self._lines.put(line)
        self._lines.put(None)


@contextmanager
def serving(folder: Path, *arguments: str, changes: Mapping[str, str] | None = None) -> Iterator[Server]:
    """`assent dev --port 0` or whatever else is given, started; killed afterwards where the test did not stop it."""
    command = arguments or ("dev", "--port", "0")
    with Forked(command, folder=folder, environment=environment(**(changes or {})), errors_apart=True) as process:
        server = Server(process)
        try:
            server.await_start()
            yield server
        finally:
            process.kill()
            process.wait(PATIENCE)
