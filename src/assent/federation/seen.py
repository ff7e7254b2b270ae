"""Threads and questions in the shapes in which servers show them. Everything in them is untrusted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from assent.kernel import canonical

TITLES = ("title", "thread_title", "thread_name", "name", "subject")
"""Names under which threads have their titles."""

_LONGEST_NAME = 255


@dataclass(frozen=True, slots=True)
class Seen:
    """A thread as its deployment shows it. `pending` is None where the thread does not say what it asks."""

    id: str
    status: str
    version: str
    graph_id: str | None
    assistant_id: str | None
    pending: list[Mapping[str, Any]] | None
    title: str | None = None


def is_plain(text: Any) -> bool:
    """Whether the text can be a name: no database here stores NUL, and an index refuses long texts."""
    return isinstance(text, str) and 0 < len(text) <= _LONGEST_NAME and text.isprintable()


def seen(row: Mapping[str, Any]) -> Seen:
    metadata = row.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    asked = row.get("interrupts")
    return Seen(
        id=str(row["thread_id"]),
        status=str(row.get("status")),
        version=_version(row.get("updated_at")),
        graph_id=_name(named.get("graph_id")),
        assistant_id=_name(named.get("assistant_id")),
        pending=None if asked is None else list(_listed(asked)),
        title=next(filter(None, (_name(named.get(name)) for name in TITLES)), None),
    )


def _name(value: Any) -> str | None:
    return value if is_plain(value) else None


def _version(value: Any) -> str:
    text = str(value)
    return text if is_plain(text) else canonical.digest_text(ascii(value))


def _listed(asked: Any) -> Iterator[Mapping[str, Any]]:
    """The interrupts of a thread: by task, or as a list."""
    if isinstance(asked, dict):
        for task, raised in asked.items():
            yield from _raised(raised, str(task))
    else:
        yield from _raised(asked, "")


def asked(state: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    tasks = state.get("tasks")
    for task in tasks if isinstance(tasks, list) else ():
        if isinstance(task, dict):
            yield from _raised(task.get("interrupts"), str(task.get("id")))


def _raised(raised: Any, task: str) -> Iterator[Mapping[str, Any]]:
    for place, entry in enumerate(raised if isinstance(raised, list) else ()):
        if isinstance(entry, dict):
            known = entry.get("id") or entry.get("interrupt_id") or f"task:{task}:{place}"
            if is_plain(id := str(known)):
                yield {"id": id, "value": entry.get("value"), "response_schema": entry.get("response_schema")}
