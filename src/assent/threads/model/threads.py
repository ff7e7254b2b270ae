"""A thread: the state of one conversation, and the reasons for the status `interrupted`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from assent.errors import Invalid
from assent.identity.model.visibility import Visible, shows
from assent.kernel import canonical
from assent.kernel.ids import as_uuid

Interrupts = dict[str, list[dict[str, Any]]]
"""Task id → the questions of that task, each `{id, value}`, with `response_schema` where it has one."""


class ThreadStatus(StrEnum):
    IDLE = "idle"
    BUSY = "busy"
    INTERRUPTED = "interrupted"
    ERROR = "error"


class Visibility(StrEnum):
    """Which programs of a tenant may read and run a thread besides its owner. People are not limited by it."""

    PRIVATE = "private"
    SHARED = "shared"


class Thinning(StrEnum):
    """The action on an expired thread: delete it, or only its history before the latest state."""

    DELETE = "delete"
    KEEP_LATEST = "keep_latest"


class SortBy(StrEnum):
    THREAD_ID = "thread_id"
    STATUS = "status"
    CREATED_AT = "created_at"
    UPDATED_AT = "updated_at"
    STATE_UPDATED_AT = "state_updated_at"


@dataclass(frozen=True, slots=True)
class Thread:
    id: str
    status: ThreadStatus
    metadata: dict[str, Any]
    config: dict[str, Any]
    values: Any
    interrupts: Interrupts | None
    error: dict[str, Any] | None
    next: list[str] | None
    shown: bool
    created_at: datetime
    updated_at: datetime
    state_updated_at: datetime | None
    ttl_minutes: float | None = None
    ttl_strategy: str | None = None
    expires_at: datetime | None = None
    owner: str | None = None
    """The actor that created the thread: a named agent, service or person. None where unknown."""
    visibility: Visibility = Visibility.SHARED
    turn_ended_at: datetime | None = None
    """When a run last ended without a question."""

    def open_to(self, actor: str) -> bool:
        """Whether a program may read and run the thread."""
        return self.owner in (None, actor) or self.visibility is Visibility.SHARED

    def shown_to(self, visible: Visible | None) -> bool:
        return shows(visible, self.metadata, self.open_to)

    @property
    def pending(self) -> list[dict[str, Any]]:
        """The open questions, whatever the status: they stay answerable after a failed resume."""
        return [question for task in (self.interrupts or {}).values() for question in task]

    @property
    def waits(self) -> bool:
        return bool(self.pending)

    @property
    def graph_id(self) -> str | None:
        """The graph of this state: the first run, or the thread's creator, has put it into the metadata."""
        named = self.metadata.get("graph_id")
        return named if isinstance(named, str) else None

    @property
    def ran(self) -> bool:
        """Whether the thread has, or had, any state."""
        return not (self.values is None and self.interrupts is None and self.error is None)


@dataclass(frozen=True, slots=True)
class Lifetime:
    """How long a thread is stored, from now on, and the action at the end."""

    minutes: float
    strategy: Thinning = Thinning.DELETE

    def ends(self, now: datetime) -> datetime:
        return now + timedelta(minutes=self.minutes)


@dataclass(frozen=True, slots=True)
class ThreadSweep:
    """The default lifetime of new threads, how often expired ones are looked for, and how many at once."""

    lifetime: Lifetime | None = None
    every_minutes: float = 1.0
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A search for threads, with its order. `metadata` and `values` are contained in the thread's own."""

    ids: Sequence[str] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    status: ThreadStatus | None = None
    sort_by: SortBy = SortBy.CREATED_AT
    descending: bool = True
    limit: int = 10
    offset: int = 0
    owner: str | None = None
    visible: Visible | None = None


def contained(wanted: Any, value: Any) -> bool:
    """Whether the value contains `wanted`, by the rules of a search."""
    if isinstance(wanted, dict):
        return isinstance(value, dict) and all(
            name in value and contained(part, value[name]) for name, part in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(value, list) and all(any(contained(part, each) for each in value) for part in wanted)
    return canonical.same(wanted, value)


def resting(*, waits: bool, next: Sequence[str]) -> ThreadStatus:
    """The status of a thread without active runs: interrupted, or idle."""
    return ThreadStatus.INTERRUPTED if waits or next else ThreadStatus.IDLE


def require_thread_id(thread_id: str) -> None:
    """Refuses an id that no thread can have."""
    if as_uuid(thread_id) is None:
        raise Invalid("thread_id: not a UUID", hint="use POST /threads to create one with a generated id")
