"""`assent dev` reloads the project when one of its files changes.

The process stops as for a signal, then replaces itself by a new one (`exec`), which inherits the listening socket:
modules are fresh, port and process id stay, and new connections wait. The new process continues unfinished runs as
after a crash.

A thread watches from before the project is loaded, so no change is missed. Nothing is open during loading, so a change
then restarts immediately, even if an import hangs.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from assent.errors import Invalid
from assent.runs.project.manifest import sources_of
from assent.settings import environment

if TYPE_CHECKING:
    from assent.surfaces.cli.server.server import Server

log = logging.getLogger(__name__)

OPTION = "--reloaded"
_QUIET_MS = 100
"""Quiet period before a reload, so that a checkout of many files is one change."""

_NOT_SOURCES = frozenset({"__pycache__", "node_modules", "site-packages"})
_NAMED = 3
_REQUEST_SECONDS = 3
"""Time for active requests to end after a file has changed."""


class Reload:
    """Watches the project and replaces the process after a change."""

    def __init__(self, config: Path, handed: str | None = None) -> None:
        """`handed` is the state from the previous process; None at the first start."""
        self.is_first_start = handed is None
        self.changed: tuple[str, ...] = ()
        self.after: tuple[str, ...] = ()
        """The names of the files whose change led to this process."""
        self._listener: socket.socket | None = None
        if handed is not None:
            self.after, self._listener = _taken(handed)
        self._config = config.resolve()
        self._environment, self._folder = dict(environment()), Path.cwd()  # before the project's own
        self._stop: Callable[[], None] | None = self._restart
        self._watches = False
        self._lock, self._over = threading.Lock(), threading.Event()

    def __enter__(self) -> Reload:
        self._watches = True
        threading.Thread(target=self._watch, name="reload", daemon=True).start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._cancel()

    def hold(self) -> None:
        """From now on a change is only recorded."""
        with self._lock:
            self._stop = None

    def _stop_by(self, stop: Callable[[], None]) -> None:
        """From now on a change calls `stop`."""
        with self._lock:
            self._stop = stop
            if self.changed:
                stop()

    def listen(self, bind: Callable[[], socket.socket]) -> socket.socket:
        """The socket to serve on. The server closes it; if a reload may follow, a duplicate stays open."""
        if not self._watches:
            return bind()
        self._listener = self._listener or bind()
        return self._listener.dup()

    async def serve(self, server: Server, listener: socket.socket) -> None:
        """Serves until a signal or a change stops the server."""
        self._stop_by(partial(server.leave, within=_REQUEST_SECONDS))
        await server.serve(sockets=[listener])
        self.hold()
        if server.interrupted:
            self._cancel()
        elif self.changed:
            _end_at_once_by_signals()

    def restart_if_due(self) -> None:
        """Call it inside the event loop: the loop's end would wait for threads that a run has left."""
        if self.changed:
            self._restart()

    def _restart(self) -> NoReturn:
        command = sys.orig_argv[: sys.orig_argv.index(OPTION)] if OPTION in sys.orig_argv else list(sys.orig_argv)
        if self._listener is not None:
            self._listener.set_inheritable(True)
            command += [OPTION, json.dumps({"listener": self._listener.fileno(), "changed": self.changed})]
        sys.stdout.flush()
        os.chdir(self._folder)
        os.execve(sys.executable, command, self._environment)  # noqa: S606 - our own command line

    def _watch(self) -> None:
        try:
            changed = Sources(self._config).await_change(self._over)
        except (OSError, RuntimeError) as error:  # such as the system's limit of watched folders
            log.warning("watch project failed: no reload on changes", extra={"reason": str(error)})
            return
        with self._lock:
            if self._over.is_set():
                return
            self.changed = changed
            if self._stop is not None:
                self._stop()

    def _cancel(self) -> None:
        """Ignores past and future changes."""
        with self._lock:
            self._over.set()
            self.changed, self._stop = (), None


class Sources:
    """The files that a project is loaded from: Python files, langgraph.json, `.env`."""

    def __init__(self, config: Path) -> None:
        self._config = config
        self._places = sources_of(self._config) if self._config.exists() else ()

    def await_change(self, over: threading.Event) -> tuple[str, ...]:
        """Waits for a change. Returns the names of the changed files; empty if the wait is cancelled."""
        while not over.is_set():
            try:
                if paths := self._next_change(over):
                    return tuple(sorted(map(self._name, paths)))
            except FileNotFoundError:  # a folder was removed before it was watched
                over.wait(_QUIET_MS / 1000)
        return ()

    def _next_change(self, over: threading.Event) -> set[Path]:
        """The first changed files; empty if there is a new folder to watch."""
        from watchfiles import Change, watch

        options = {"step": _QUIET_MS, "recursive": False, "ignore_permission_denied": True, "raise_interrupt": False}
        for changes in watch(*self._folders(), watch_filter=None, stop_event=over, **options):  # type: ignore[arg-type]
            paths = [Path(path) for _, path in changes]
            new = [path for kind, path in changes if kind is Change.added and _is_source_folder(Path(path))]
            sources = {path for path in (*paths, *_files(map(Path, new))) if self._has(path)}
            if sources or new:
                return sources
        return set()

    def _folders(self) -> set[Path]:
        """Every folder by itself, so that excluded folders are not watched at all."""
        beside = {self._config.parent, *(place.parent for place in self._places if not place.is_dir())}
        return beside | {folder for place in self._places for folder in _walk(place)}

    def _has(self, path: Path) -> bool:
        if path.name == ".env" or path == self._config or path in self._places:
            return not path.is_dir()
        return path.suffix == ".py" and not path.name.startswith(".")

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self._config.parent) if path.is_relative_to(self._config.parent) else path)


def _walk(place: Path) -> Iterator[Path]:
    for folder, names, _ in os.walk(place):
        names[:] = [name for name in names if _is_source_folder(Path(folder, name))]
        yield Path(folder)


def _files(folders: Iterable[Path]) -> Iterator[Path]:
    return (file for place in folders for folder in _walk(place) for file in folder.iterdir())


def _is_source_folder(path: Path) -> bool:
    """Excludes caches, virtual environments and hidden folders: version control, `.assent`, `.langgraph_api`."""
    hidden = path.name.startswith(".") or path.name in _NOT_SOURCES
    return path.is_dir() and not hidden and not (path / "pyvenv.cfg").exists()


def _end_at_once_by_signals() -> None:
    """For the time that a reload waits for runs. Nothing is lost: they continue at the next start, as after a crash."""
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, os._exit, 0)


def summary(changed: tuple[str, ...]) -> str:
    more = len(changed) - _NAMED
    return ", ".join(changed[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _taken(handed: str) -> tuple[tuple[str, ...], socket.socket]:
    try:
        state = json.loads(handed)
        listener = socket.socket(fileno=int(state["listener"]))
        listener.set_inheritable(False)
        return tuple(map(str, state["changed"])), listener
    except (ValueError, KeyError, TypeError, OSError):
        raise Invalid(f"{OPTION} is for internal use by a reload", hint=f"omit {OPTION}") from None
