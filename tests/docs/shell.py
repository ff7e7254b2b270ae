"""A real shell for the examples of a page: one folder, one environment, and the servers that a block starts."""

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.cli.command import PATIENCE, environment
from tests.docs.documents import ROOT
from tests.forking import CLIENT
from tests.waiting import wait_until

CURL = '#!/bin/sh\nPATH=${PATH#*:} exec curl --fail-with-body --show-error "$@"\n'
MAKE = f'#!/bin/sh\nPATH=${{PATH#*:}} exec make --dry-run --silent --directory {ROOT} "$@" >/dev/null\n'
PROGRAMS = {"assent": CLIENT, "curl": CURL, "make": MAKE}


class Shell:
    """Runs the commands of one page. Variables and functions of a block are there in the next one."""

    def __init__(self, folder: Path, forking: Path, swaps: Mapping[str, str]) -> None:
        self.folder, self.swaps = folder, swaps
        self._state, self._started = folder / ".state", folder / ".started"
        for name, text in PROGRAMS.items():
            _install(folder / ".venv" / "bin" / name, text)
        path = f"{folder / '.venv' / 'bin'}:{os.environ['PATH']}"
        self._environment = environment(PATH=path, FORKING=str(forking), STARTED=str(self._started))

    def __call__(self, commands: str) -> str:
        """What the commands of a block print. Servers that they start end with them."""
        try:
            return self.run(commands)
        finally:
            self.stop_servers()

    def run(self, commands: str) -> str:
        """What the commands print; they have to succeed."""
        script = self._swapped(commands)
        assert "…" not in script, f"nothing stands in for … in {script}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", self._remembering(script)],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, f"{script}\nended with {done.returncode}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def _swapped(self, text: str) -> str:
        for written, real in self.swaps.items():
            text = text.replace(written, real)
        return text

    def _remembering(self, script: str) -> str:
        return f"[ ! -f {self._state} ] || . {self._state}\n{script}\n{{ declare -px; declare -f; }} > {self._state}"

    def stop_servers(self) -> None:
        pids = [int(pid) for pid in self._started.read_text().split()] if self._started.exists() else []
        self._started.unlink(missing_ok=True)
        for pid in pids:
            if _is_there(pid):
                os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not any(map(_is_there, pids)), "a server that an example started does not stop")


def _install(program: Path, text: str) -> None:
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(text)
    program.chmod(0o755)


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
