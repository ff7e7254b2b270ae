"""Many `assent` processes in little time: one process imports Assent and forks a child for each command.

To import Assent and LangGraph takes more CPU time than most tests of a server. `Forked` is a child, with the methods of
`subprocess.Popen`; `forker` starts the process that forks, once per worker. A shell finds `CLIENT` as `assent`: it
hands its arguments, folder, environment and streams to that process and ends with the exit code of the child. There, a
command that serves until it is stopped gets a free port and stays behind once it listens; its process id is appended to
the file that `STARTED` names.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, NoReturn

from assent.surfaces import extensions

ROOT = Path(__file__).parents[1]
ASSENT = [sys.executable, "-m", "assent"]
PRELOADED = [
    *(
        "assent.app",
        "assent.surfaces.cli.main",
        "assent.surfaces.cli.server.server",
        "assent.surfaces.cli.server.worker",
        "assent.surfaces.routes",
        "assent.kernel.store.drivers.postgres",
        "assent.kernel.store.drivers.sqlite",
        "assent.kernel.store.migrations",
    ),
    *("assent.runs.queues.procrastinate", "assent.runs.bus.postgres", "assent.runs.checkpoints.saver"),
    *("assent.gate.middleware", "assent.assistant.calendar.server", "assent.assistant.graph"),
    *("assent.audit.signatures", "assent.outbox.webhooks"),
    *("uvicorn", "uvicorn.lifespan.off", "uvicorn.protocols.websockets.websockets_sansio_impl", "uvloop"),
    *("alembic.command", "h11", "httpcore", "langchain.agents", "langchain_core.language_models.fake_chat_models"),
    *("langgraph.func", "langgraph.graph", "psycopg_pool", "rich.table"),
]

CLIENT = f"""#!{sys.executable} -SE
import json, os, socket, sys, tempfile, time

arguments = sys.argv[1:]
stays = arguments[:1] in (["dev"], ["demo"], ["serve"], ["worker"], ["calendar"]) and "--stdio" not in arguments
if stays and arguments[0] != "worker":
    arguments += ["--port", "0"]
output, errors = [tempfile.TemporaryFile("a+") for _ in "12"] if stays else [sys.stdout, sys.stderr]
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
    connection.connect(os.environ["FORKING"])
    call = {{"arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}}
    socket.send_fds(connection, [json.dumps(call).encode()], [0, output.fileno(), errors.fileno()])
    pid = connection.recv(100).decode()
    if stays:
        open(os.environ["STARTED"], "a").write(pid + "\\n")
        connection.settimeout(0.01)
    code = None
    while code is None and not (stays and output.seek(0) == 0 and output.read().rstrip(" ").endswith("\\n\\n")):
        try:
            code = connection.recv(100).decode() or "1"
        except TimeoutError:
            pass
if stays:
    for kept, stream in ((output, sys.stdout), (errors, sys.stderr)):
        kept.seek(0)
        print(kept.read(), file=stream)
sys.exit(int(code or 0))
"""


@cache
def forker() -> Path:
    """The socket of the process that forks. It ends with this one."""
    address = Path(tempfile.mkdtemp(prefix="forking-")) / "socket"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.forking", str(address)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    _kept.append(process)
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    return address


def end() -> None:
    """Ends the process that forks, if there is one: a child left behind is a warning, and so a failure, of the run."""
    while _kept:
        process = _kept.pop()
        process.communicate()
    forker.cache_clear()


_kept: list[subprocess.Popen[str]] = []


class Forked:
    """An `assent` process, or another program of Python: `-m` and a module, or `-c` and code. `stderr` is None
    where errors go the way of the output. On a `terminal`, all three streams are that file."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        errors_apart: bool = False,
        program: Sequence[str] = ASSENT[1:],
        terminal: int | None = None,
    ) -> None:
        self.returncode: int | None = None
        self.stdout, output = _pipe()
        self.stderr: IO[str] | None = None
        errors = os.dup(output)
        if errors_apart:
            os.close(errors)
            self.stderr, errors = _pipe()
        self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._connection.connect(str(forker()))
        call = {"arguments": list(arguments), "folder": str(folder), "environment": dict(environment)}
        call["program"] = list(program)
        streams = [0, output, errors] if terminal is None else [terminal] * 3
        socket.send_fds(self._connection, [json.dumps(call).encode()], streams)
        os.close(output)
        os.close(errors)
        self.pid = int(self._connection.recv(100))

    def __enter__(self) -> Forked:
        return self

    def __exit__(self, *exception: object) -> None:
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        self.wait()

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("assent", timeout or 0)
            self.returncode = int(self._connection.recv(100))
            self._connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended since
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _pipe() -> tuple[IO[str], int]:
    """What is read, and the number of what is written to."""
    read, written = os.pipe()
    return os.fdopen(read, encoding="utf-8"), written


def _serve(address: str) -> None:
    """Until the standard input is closed: the process that started this one is gone."""
    for name in PRELOADED:
        importlib.import_module(name)
    extensions.installed()
    gc.freeze()
    running: dict[int, socket.socket] = {}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        ended = _on_end_of_children()
        listener.bind(address)
        listener.listen()
        print("ready", flush=True)
        while sys.stdin not in (ready := select.select([sys.stdin, listener, ended], [], [])[0]):
            if ended in ready:
                ended.recv(1000)
                _report(running)
            if listener in ready:
                _fork(listener, running)
    os._exit(0)


def _on_end_of_children() -> socket.socket:
    """Becomes readable when a child has ended."""
    readable, written = socket.socketpair()
    written.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(written.detach())
    return readable


def _report(running: dict[int, socket.socket]) -> None:
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            with running.pop(ended[0]) as connection, suppress(OSError):  # that nobody waits any more
                connection.send(str(os.waitstatus_to_exitcode(ended[1])).encode())


def _fork(listener: socket.socket, running: dict[int, socket.socket]) -> None:
    connection, _ = listener.accept()
    message, files, *_ = socket.recv_fds(connection, 1 << 20, 3)
    pid = os.fork()
    if pid == 0:
        for other in (listener, connection, *running.values()):
            other.close()
        _execute(json.loads(message), files)
    running[pid] = connection
    for file in files:
        os.close(file)
    connection.send(str(pid).encode())


def _execute(call: dict[str, object], files: Sequence[int]) -> NoReturn:
    """One command, in the child, as if it had been started alone."""
    os.close(signal.set_wakeup_fd(-1))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    arguments, environment, folder = call["arguments"], call["environment"], call["folder"]
    program = call.get("program", ASSENT[1:])
    assert isinstance(arguments, list)
    assert isinstance(environment, dict)
    assert isinstance(program, list)
    os.chdir(str(folder))
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv = ["assent", *arguments]
    sys.orig_argv = [sys.executable, *program, *arguments]
    sys.path[0] = str(folder)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    how, what = program
    if how == "-c":
        exec(what, {"__name__": "__main__"})  # noqa: S102 - a script of the tests
    else:
        runpy.run_module(what, run_name="__main__")
    sys.exit()


if __name__ == "__main__":
    _serve(sys.argv[1])
