"""The results of calls with an idempotency key, in the calendar's file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

from assent.assistant.calendar.events import EventView
from assent.assistant.calendar.stores.port import Request
from assent.errors import Invalid

_UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True)
class Stored:
    event: EventView
    finished: bool = True


def once(connection: sqlite3.Connection, request: Request, make: Callable[[], EventView]) -> EventView:
    """Makes or changes an event in this transaction, or returns the stored result of the same request."""
    stored = kept(connection, request)
    if stored is not None:
        return stored.event
    result = make()
    keep(connection, request, result)
    return result


def kept(connection: sqlite3.Connection, request: Request) -> Stored | None:
    """None for a new call."""
    if request.key is None:
        return None
    row = connection.execute("SELECT request, result FROM results WHERE key = ?", (request.key,)).fetchone()
    if row is None:
        return None
    if row["request"] != _text(request):
        raise other_request()
    stored = json.loads(row["result"])
    return Stored(stored[_UNFINISHED], finished=False) if _UNFINISHED in stored else Stored(stored)


def keep(connection: sqlite3.Connection, request: Request, result: EventView, *, finished: bool = True) -> None:
    if request.key is not None:
        stored = json.dumps(result if finished else {_UNFINISHED: result})
        connection.execute(
            "INSERT INTO results VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET result = excluded.result"
            " WHERE request = excluded.request",
            (request.key, _text(request), stored),
        )


def other_request() -> Invalid:
    return Invalid("idempotency_key: was used for another request", hint="use a new key for a new request")


def _text(request: Request) -> str:
    return json.dumps(request.content, sort_keys=True)
