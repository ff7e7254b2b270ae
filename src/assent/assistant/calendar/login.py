"""The login that gives the assistant access to the calendar: a link, a consent page, a callback.

It imitates the OAuth of a real calendar without a second party. One calendar file belongs to one person, so there is
one connection: a completed login connects it for every caller, until it is revoked.
"""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Callable

from assent.assistant.calendar.database import Database
from assent.kernel.ids import token_hash

LINK_SECONDS = 7 * 24 * 3600
"""A link may wait in an inbox for days."""

STATE_SECONDS = 600
"""The consent page is open in a browser."""


class Login:
    def __init__(self, database: Database, *, now: Callable[[], float] = time.time) -> None:
        self._database = database
        self._now = now

    def connected(self) -> bool:
        with self._database.read() as connection:
            return connection.execute("SELECT 1 FROM connections").fetchone() is not None

    def wanted(self) -> str:
        """The id of the pending login; repeated requests share one link."""
        with self._database.write() as connection:
            self._forget_expired(connection)
            waiting = connection.execute("SELECT login_id FROM logins").fetchone()
            if waiting:
                return str(waiting["login_id"])
            login_id = secrets.token_urlsafe(24)
            connection.execute("INSERT INTO logins VALUES (?, ?)", (login_id, self._now() + LINK_SECONDS))
            return login_id

    def state(self, login_id: str) -> str | None:
        """A new secret for one view of the consent page; None if no such login is pending."""
        with self._database.write() as connection:
            self._forget_expired(connection)
            if not connection.execute("SELECT 1 FROM logins WHERE login_id = ?", (login_id,)).fetchone():
                return None
            state = secrets.token_urlsafe(32)
            row = (token_hash(state), login_id, self._now() + STATE_SECONDS)
            connection.execute("INSERT INTO login_states VALUES (?, ?, ?)", row)
            return state

    def complete(self, state: str) -> bool:
        """Connects, once. This ends the login and every other view of its page."""
        with self._database.write() as connection:
            self._forget_expired(connection)
            rows = connection.execute("SELECT login_id FROM login_states WHERE state_hash = ?", (token_hash(state),))
            login = rows.fetchone()
            if login is None:
                return False
            connection.execute("DELETE FROM logins WHERE login_id = ?", (login["login_id"],))
            connection.execute("DELETE FROM connections")
            connection.execute("INSERT INTO connections VALUES (?)", (self._now(),))
            return True

    def revoke(self) -> bool:
        """Ends the connection and every pending link. Returns whether there was a connection."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM logins")
            return connection.execute("DELETE FROM connections").rowcount > 0

    def _forget_expired(self, connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM logins WHERE expires_at <= ?", (self._now(),))
        connection.execute("DELETE FROM login_states WHERE expires_at <= ?", (self._now(),))
