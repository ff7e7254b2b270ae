"""Turns what the databases say when they cannot serve into errors that a caller can act on."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError

from assent.errors import AssentError, StorageFull, StoreBusy, Unavailable

_RETRYABLE_STATES = frozenset({"40001", "40P01"})  # serialization failure, deadlock: nothing was written
_FULL_STATES = frozenset({"53100"})


def is_retryable(error: DBAPIError) -> bool:
    return getattr(error.orig, "sqlstate", None) in _RETRYABLE_STATES


def translate(error: DBAPIError) -> AssentError | None:
    """The Assent error behind a driver's error, or None where it is a bug of ours (a bad statement, a constraint)."""
    text = str(error.orig)
    state = getattr(error.orig, "sqlstate", None)
    if state in _FULL_STATES or "disk is full" in text:
        return StorageFull()
    if "database is locked" in text or "database table is locked" in text or state in _RETRYABLE_STATES:
        return StoreBusy()
    if error.connection_invalidated or _lost(text, state):
        return Unavailable(f"the database cannot be reached: {text.splitlines()[0] if text else 'no answer'}")
    return None


def _lost(text: str, state: str | None) -> bool:
    unreachable = state is not None and state[:2] in {"08", "57"}
    return unreachable or "disk I/O error" in text or "unable to open database" in text or "connection failed" in text
