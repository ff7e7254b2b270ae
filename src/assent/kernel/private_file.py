"""Files that only their owner can read, written as a whole: readers see the old content or the new one, and so does
the next start after a loss of power."""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ONLY_OWNER = 0o600
_OWNERS_FOLDER = 0o700
_LOCK = ".lock"


def replace(file: Path, content: bytes) -> None:
    with _draft(file, content) as draft:
        draft.replace(file)


def create(file: Path, content: bytes) -> bool:
    """Where two processes create it at once, the first one's stays. Returns whether that is this one."""
    with _draft(file, content) as draft:
        try:
            os.link(draft, file)
        except FileExistsError:
            return False
    return True


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """For a change that depends on what a file in this folder holds: one at a time, over all processes."""
    folder.mkdir(mode=_OWNERS_FOLDER, parents=True, exist_ok=True)
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, _ONLY_OWNER)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _draft(file: Path, content: bytes) -> Iterator[Path]:
    file.parent.mkdir(mode=_OWNERS_FOLDER, parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _ONLY_OWNER), "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        yield draft
    finally:
        draft.unlink(missing_ok=True)
    _sync(file.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
