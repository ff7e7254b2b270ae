"""Whether somebody has let the assistant at the calendar, and how they do: a link, a consent page, a callback.

It stands in for the OAuth of a real calendar and has its shape, without a second party. One calendar file belongs to
one person, so there is one connection: whoever completes a login connects it for every caller, until it is revoked.
"""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Callable

from assent.assistant.calendar.database import Database
from assent.domain.ids import token_hash

LINK_SECONDS = 7 * 24 * 3600
"""A link may wait in somebody's inbox for days."""

STATE_SECONDS = 600
"""The page behind it is open in a browser."""


class Login:
    def __init__(self, database: Database, *, now: Callable[[], float] = time.time) -> None:
        self._database = database
        self._now = now

    def connected(self) -> bool:
        with self._database.read() as connection:
            return connection.execute("SELECT 1 FROM connections").fetchone() is not None

    def wanted(self) -> str:
        """The id of the login that waits for its person, so that asking twice shows one link."""
        with self._database.write() as connection:
            self._forget_expired(connection)
            waiting = connection.execute("SELECT login_id FROM logins").fetchone()
            if waiting:
                return str(waiting["login_id"])
            login_id = secrets.token_urlsafe(24)
            connection.execute("INSERT INTO logins VALUES (?, ?)", (login_id, self._now() + LINK_SECONDS))
            return login_id

    def state(self, login_id: str) -> str | None:
        """A fresh secret for one view of the consent page; None where no such login waits."""
        with self._database.write() as connection:
            self._forget_expired(connection)
            if not connection.execute("SELECT 1 FROM logins WHERE login_id = ?", (login_id,)).fetchone():
                return None
            state = secrets.token_urlsafe(32)
            row = (token_hash(state), login_id, self._now() + STATE_SECONDS)
            connection.execute("INSERT INTO login_states VALUES (?, ?, ?)", row)
            return state

    def complete(self, state: str) -> bool:
        """Connects, once. The login and every other view of its page end with it."""
        with self._database.write() as connection:
            self._forget_expired(connection)
            known = connection.execute("SELECT login_id FROM login_states WHERE state_hash = ?", (token_hash(state),))
            login = known.fetchone()
            if login is None:
                return False
            connection.execute("DELETE FROM logins WHERE login_id = ?", (login["login_id"],))
            connection.execute("DELETE FROM connections")
            connection.execute("INSERT INTO connections VALUES (?)", (self._now(),))
            return True

    def revoke(self) -> bool:
        """Ends the connection, and every link that could bring it back. Says whether there was one."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM logins")
            return connection.execute("DELETE FROM connections").rowcount > 0

    def _forget_expired(self, connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM logins WHERE expires_at <= ?", (self._now(),))
        connection.execute("DELETE FROM login_states WHERE expires_at <= ?", (self._now(),))
