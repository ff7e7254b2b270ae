"""Where the calendar in this process is kept if no setting names its file: beside the database that it belongs to."""

from __future__ import annotations

from pathlib import Path

from assent.settings import AssistantSettings

_OWN_FOLDER, _SHARED = ".assent", "calendar.db"
"""The databases of one project are in a folder of their own, and share a calendar."""

_beside: Path | None = None


def keep_calendar_beside(database: Path | None) -> None:
    """Set once, by the command that serves."""
    global _beside
    _beside = database


def calendar_file(settings: AssistantSettings) -> Path:
    if _beside is None or "calendar" in settings.model_fields_set:
        return settings.calendar.absolute()
    named = _beside.with_name(_SHARED) if _beside.parent.name == _OWN_FOLDER else _beside.with_suffix(".calendar.db")
    return named.absolute()
