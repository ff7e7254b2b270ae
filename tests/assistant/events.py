"""The rows of a calendar's file."""

import sqlite3
from contextlib import closing
from pathlib import Path

Event = tuple[str, str]
"""Its name, and its time of day: which day it is depends on when the test runs."""


def events_in(file: Path) -> list[Event]:
    if not file.exists():
        return []
    with closing(sqlite3.connect(file)) as connection:
        rows = connection.execute("SELECT name, substr(start, 12, 5) FROM events ORDER BY name").fetchall()
    return [(str(name), str(at)) for name, at in rows]


AFTER_EACH_FLOW: tuple[list[Event], ...] = (
    [("Meeting", "15:00")],
    [("Meeting", "15:00"), ("Standup", "09:00")],
    [("Dentist", "10:00"), ("Meeting", "15:00"), ("Standup", "09:00")],
    [("Dentist", "10:00"), ("Meeting", "15:00"), ("Standup", "09:00"), ("Team Meeting", "10:00")],
    [
        *(("Call with Ana", "17:00"), ("Dentist", "10:00"), ("Meeting", "16:00")),
        *(("Standup", "09:00"), ("Team Meeting", "10:00")),
    ],
)
"""What the five flows of the documentation leave behind, one after the other."""
