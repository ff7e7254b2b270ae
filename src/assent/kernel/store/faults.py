"""Translates errors of the databases into errors that a caller can act on.

By code, never by text: an error's message may quote a caller's input.
"""

from __future__ import annotations

import sqlite3

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from assent.errors import AssentError, Invalid, StorageFull, StoreBusy, Unavailable

_BUSY_CODES = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_LOST_CODES = frozenset({sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL})
_RETRYABLE_STATES = frozenset({"40001", "40P01"})  # serialization failure, deadlock: nothing was written
_BUSY_STATES = _RETRYABLE_STATES | {"55P03", "53200", "53300", "53400"}  # lock time-out, memory, connections, limits
_FULL_STATE = "53100"
_NUL_STATE = "22P05"
_LOST_CLASSES = ("08", "57", "58")  # connection, operator intervention, system error


def too_long() -> Invalid:
    return Invalid("the query takes too long", hint="request less, or use a simpler filter")


def is_retryable(error: DBAPIError) -> bool:
    return getattr(error.orig, "sqlstate", None) in _RETRYABLE_STATES


def has_no_connection_left(error: Exception) -> bool:
    """Whether Postgres refused a connection because others have all of them."""
    return any(text in str(error) for text in ("too many clients already", "remaining connection slots"))


def translate(error: DBAPIError) -> AssentError | None:
    """The Assent error for a driver's error, or None for a bug of ours (a bad statement, a constraint)."""
    if isinstance(error.orig, sqlite3.Error):
        return _translate_sqlite(error, getattr(error.orig, "sqlite_errorcode", 0) & 0xFF)
    return _translate_postgres(error, getattr(error.orig, "sqlstate", None))


def _translate_sqlite(error: DBAPIError, code: int) -> AssentError | None:
    if code in _BUSY_CODES:
        return StoreBusy()
    if code == sqlite3.SQLITE_FULL:
        return StorageFull()
    if code == sqlite3.SQLITE_INTERRUPT:
        return too_long()
    return _unreachable(error) if code in _LOST_CODES else None


def _translate_postgres(error: DBAPIError, state: str | None) -> AssentError | None:
    if state in _BUSY_STATES:
        return StoreBusy()
    if state == _FULL_STATE:
        return StorageFull()
    if state == _NUL_STATE or (state is None and "NUL (0x00)" in str(error.orig)):
        return Invalid("text cannot contain the character NUL")
    never_answered = state is None and isinstance(error, OperationalError | InterfaceError)
    lost = error.connection_invalidated or never_answered or (state or "").startswith(_LOST_CLASSES)
    return _unreachable(error) if lost else None


def _unreachable(error: DBAPIError) -> Unavailable:
    reason = str(error.orig).strip().partition("\n")[0]
    return Unavailable(f"the database cannot be reached: {reason or 'no answer'}")
