"""Things that a test run makes once, for all of its workers: the first one that needs it makes it, the others wait.

- `migrated_file`  an empty SQLite database with the newest tables, to be copied
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from assent.kernel.store import migrations


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """The folder that `make` filled for this run."""
    base = factory.getbasetemp()
    run = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, made = run / name, run / f"{name}.made"
    with locked(run / f"{name}.lock"):
        if not made.exists():
            folder.mkdir()
            make(folder)
            made.touch()
    return folder


@contextmanager
def locked(file: Path) -> Iterator[None]:
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return once(tmp_path_factory, "migrated", _migrate) / "empty.db"


def _migrate(folder: Path) -> None:
    migrations.upgrade(f"sqlite:///{folder / 'empty.db'}")
