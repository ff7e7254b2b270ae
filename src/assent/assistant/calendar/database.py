"""The calendar's file: a small SQLite database of its own, apart from Assent's store, because an assistant's calendar
usually belongs to somebody else. Several processes may share the file; each use opens it anew."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from assent.errors import ConfigError

_LOCK_WAIT_SECONDS = 10
_SCHEMA = """
CREATE TABLE IF NOT EXISTS calendars (
    calendar_id TEXT PRIMARY KEY, name TEXT NOT NULL, description TEXT NOT NULL, is_primary INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS events (
    event_id TEXT PRIMARY KEY, calendar_id TEXT NOT NULL REFERENCES calendars, name TEXT NOT NULL,
    start TEXT NOT NULL, starts_at INTEGER NOT NULL, ends_at INTEGER NOT NULL, location TEXT, description TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS events_by_start ON events (calendar_id, starts_at);
CREATE TABLE IF NOT EXISTS results (key TEXT PRIMARY KEY, request TEXT NOT NULL, result TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS logins (login_id TEXT PRIMARY KEY, expires_at REAL NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS login_states (
    state_hash TEXT PRIMARY KEY, login_id TEXT NOT NULL REFERENCES logins ON DELETE CASCADE, expires_at REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS connections (connected_at REAL NOT NULL) STRICT;
INSERT OR IGNORE INTO calendars VALUES ('primary', 'Personal', 'The calendar that is meant where none is named.', 1);
INSERT OR IGNORE INTO calendars VALUES ('work', 'Work', 'Meetings and deadlines.', 0);
"""


class Database:
    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._opened() as connection:
            connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        with self._opened() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction, and the only one that writes: what is read in it is still so when it ends."""
        with self._opened() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=_LOCK_WAIT_SECONDS, isolation_level=None)) as connection:
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA foreign_keys = ON")
            yield connection


def database_file(named: str | Path) -> Path:
    """A path, also where it is written as Assent's own databases are: `sqlite:///calendar.db`."""
    text = str(named).removeprefix("sqlite:///")
    if not text or text == ":memory:" or "://" in text:
        raise ConfigError(f"the calendar cannot be kept in {named}", hint="name a file, such as .assent/calendar.db")
    return Path(text)
