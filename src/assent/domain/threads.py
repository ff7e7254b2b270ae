"""A thread: one conversation's state as the row shows it, and why it may be `interrupted`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from assent.domain.visibility import Visible

Interrupts = dict[str, list[dict[str, Any]]]
"""Task id → the questions that task asks, each `{id, value}` and `response_schema` where it has one."""


class ThreadStatus(StrEnum):
    IDLE = "idle"
    BUSY = "busy"
    INTERRUPTED = "interrupted"
    ERROR = "error"


class Thinning(StrEnum):
    """What becomes of a thread that is too old: it goes, or only what it went through before its latest state."""

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

    @property
    def pending(self) -> list[dict[str, Any]]:
        """The questions nobody has answered yet, whatever the status says: a failed resume leaves them answerable."""
        return [question for task in (self.interrupts or {}).values() for question in task]

    @property
    def waits(self) -> bool:
        return bool(self.pending)

    @property
    def graph_id(self) -> str | None:
        """The graph whose state this is: the first run, or whoever made the thread, has put it into the metadata."""
        named = self.metadata.get("graph_id")
        return named if isinstance(named, str) else None

    @property
    def ran(self) -> bool:
        """Whether there is, or was, any state."""
        return not (self.values is None and self.interrupts is None and self.error is None)


@dataclass(frozen=True, slots=True)
class Lifetime:
    """How long a thread is kept, from now on, and what happens then."""

    minutes: float
    strategy: Thinning = Thinning.DELETE

    def ends(self, now: datetime) -> datetime:
        return now + timedelta(minutes=self.minutes)


@dataclass(frozen=True, slots=True)
class Query:
    """Which threads, and in which order. `metadata` and `values` are contained in the thread's own."""

    ids: Sequence[str] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    status: ThreadStatus | None = None
    sort_by: SortBy = SortBy.CREATED_AT
    descending: bool = True
    limit: int = 10
    offset: int = 0
    visible: Visible | None = None


def resting(*, waits: bool, next: Sequence[str]) -> ThreadStatus:
    """The status of a thread that nothing runs on: stopped on the way, or done."""
    return ThreadStatus.INTERRUPTED if waits or next else ThreadStatus.IDLE
