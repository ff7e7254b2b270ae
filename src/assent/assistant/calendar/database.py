"""The calendar's file: a small SQLite database, separate from Assent's store, because a real calendar is usually
another system. Several processes may share the file; each use opens it."""

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
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)  # appointments are private
        with self._opened() as connection:
            connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")
        with self.write() as connection:
            _add_attendees(connection)

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        with self._opened() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """A write transaction that excludes others, so that its reads stay valid."""
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


def _add_attendees(connection: sqlite3.Connection) -> None:
    """Files of release 0.2 have no such column."""
    if "attendees" not in {row["name"] for row in connection.execute("PRAGMA table_info(events)")}:
        connection.execute("ALTER TABLE events ADD COLUMN attendees TEXT NOT NULL DEFAULT '[]'")


def database_file(named: str | Path) -> Path:
    """The path of the file; also accepts `sqlite:///calendar.db`."""
    text = str(named).removeprefix("sqlite:///")
    if not text or text == ":memory:" or "://" in text:
        raise ConfigError(f"the calendar cannot be stored in {named}", hint="name a file, such as .assent/calendar.db")
    return Path(text)
