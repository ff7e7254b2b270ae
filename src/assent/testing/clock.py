"""The database's clock, which is the only one: a test moves it instead of waiting."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol


class HasClock(Protocol):
    """A store: SQLite, Postgres, or the file of a local inbox."""

    clock_offset: timedelta


class Clock:
    def __init__(self, store: HasClock) -> None:
        self._store = store

    @property
    def offset(self) -> timedelta:
        """How far it is ahead of the real time."""
        return self._store.clock_offset

    def advance(self, time: timedelta = timedelta(), /, **units: float) -> None:
        """Moves it on: `advance(hours=2)`, with the units of `timedelta`."""
        self._store.clock_offset += time + timedelta(**units)

    def reset(self) -> None:
        """Back to the real time."""
        self._store.clock_offset = timedelta()
