"""Many `assent` commands in little time: one process imports Assent and forks a child for each command of a shell.

`CLIENT` is the program that the shell finds as `assent`. It hands its arguments, folder, environment and streams to the
forking process and ends with the exit code of the child. A command that serves until it is stopped gets a free port and
stays behind once it listens; its process id is appended to the file that `STARTED` names.
"""

import importlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRELOADED = [
    *(
        "assent.app",
        "assent.surfaces.cli.main",
        "assent.surfaces.routes",
        "assent.kernel.store.postgres",
        "assent.kernel.store.sqlite",
        "assent.kernel.store.migrations",
    ),
    *("assent.runs.queues.procrastinate", "assent.assistant.calendar.server", "assent.assistant.graph"),
    *("uvicorn", "uvloop", "alembic.command", "rich.table", "langgraph.graph", "psycopg_pool"),
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


@contextmanager
def forking(folder: Path) -> Iterator[Path]:
    """The socket of a process that runs commands, until the end of the block."""
    address = folder / "forking.sock"
    command = [sys.executable, "-m", "tests.docs.forking", str(address)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
            yield address
        finally:
            process.kill()


def _serve(address: str) -> None:
    for name in PRELOADED:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address)
        listener.listen()
        print("ready", flush=True)
        while True:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _execute(connection)
            connection.close()


def _execute(connection: socket.socket) -> None:
    """One command, in the child."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    message, files, *_ = socket.recv_fds(connection, 1 << 20, 3)
    call = json.loads(message)
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.chdir(call["folder"])
    os.environ.clear()
    os.environ.update(call["environment"])
    sys.argv = ["assent", *call["arguments"]]
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    connection.send(str(os.getpid()).encode())
    code = _exit_code()
    sys.stdout.flush()
    sys.stderr.flush()
    connection.send(str(code).encode())
    os._exit(code)


def _exit_code() -> int:
    from assent.surfaces.cli.main import main

    try:
        main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


if __name__ == "__main__":
    _serve(sys.argv[1])
