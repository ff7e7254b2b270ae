"""Runs of a thread: their statuses, and what may happen when a run is asked for while another one is there.

The order of a thread's runs is decided here and on the rows, never by a queue: only the head of a thread is handed to
one. A run that carries an answer goes first, because everything behind it waits for that answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from assent.domain.threads import Interrupts
from assent.errors import ThreadBusy, ThreadWaits


class RunStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    SUCCESS = "success"
    ERROR = "error"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"

    @property
    def active(self) -> bool:
        return self in (RunStatus.PENDING, RunStatus.RUNNING)


class Strategy(StrEnum):
    REJECT = "reject"
    ENQUEUE = "enqueue"
    INTERRUPT = "interrupt"
    ROLLBACK = "rollback"


class Cancel(StrEnum):
    """How a run is ended early: keep what it did, or leave no trace of it."""

    INTERRUPT = "interrupt"
    ROLLBACK = "rollback"


@dataclass(frozen=True, slots=True)
class Run:
    id: str
    thread_id: str
    assistant_id: str
    graph_id: str
    status: RunStatus
    position: int
    attempt: int
    actor: str
    answers: bool
    wake_at: datetime | None
    cancel: Cancel | None
    temporary: bool
    multitask_strategy: Strategy
    metadata: dict[str, Any]
    kwargs: dict[str, Any]
    error: dict[str, Any] | None
    webhook: str | None
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended: the run's status and the thread's state after it. `result` is what a waiter is given."""

    status: RunStatus
    values: Any = None
    interrupts: Interrupts = field(default_factory=dict)
    next: tuple[str, ...] = ()
    error: dict[str, Any] | None = None
    rolled_back: bool = False

    @property
    def pending(self) -> list[dict[str, Any]]:
        return [question for task in self.interrupts.values() for question in task]

    @property
    def result(self) -> Any:
        if self.error is not None and self.status in (RunStatus.ERROR, RunStatus.TIMEOUT):
            return {"__error__": self.error}
        if not self.pending:
            return self.values
        return {**(self.values if isinstance(self.values, dict) else {}), "__interrupt__": self.pending}


def durable(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """As a run behind the gate is executed: every step is stored before the next one begins."""
    return {**kwargs, "durability": "sync", "checkpoint_during": True}


def run_view(run: Run) -> dict[str, Any]:
    """The run as LangGraph's clients and webhook receivers know it."""
    return {
        "run_id": run.id,
        "thread_id": run.thread_id,
        "assistant_id": run.assistant_id,
        "metadata": run.metadata,
        "status": run.status,
        "kwargs": run.kwargs,
        "multitask_strategy": run.multitask_strategy,
        "created_at": run.created_at.isoformat(),
        "updated_at": run.updated_at.isoformat(),
        "langsmith_session_name": None,
        "cancel_reason": run.cancel,
    }


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Runs that were cancelled: those that someone executes have still to be stopped, the others are over."""

    running: tuple[Run, ...] = ()
    over: tuple[Run, ...] = ()


@dataclass(frozen=True, slots=True)
class Admission:
    """What admitting a run does to those that are there."""

    supersedes: tuple[Run, ...] = ()
    by: Cancel | None = None
    drops_questions: bool = False


def admit(strategy: Strategy, *, active: Sequence[Run], pending: Sequence[dict[str, Any]], answers: bool) -> Admission:
    """Whether a new run may join its thread, and what it replaces. `pending` are the thread's open questions."""
    if answers:
        return Admission()
    if strategy is Strategy.REJECT and active:
        raise ThreadBusy()
    if strategy is Strategy.REJECT and pending:
        raise ThreadWaits(pending=list(pending))
    if strategy in (Strategy.REJECT, Strategy.ENQUEUE):
        return Admission()
    return Admission(tuple(active), Cancel(strategy.value), drops_questions=bool(pending))


def next_in_line(pending: Sequence[Run], *, waits: bool, now: datetime) -> Run | None:
    """The run whose turn it is: the first in order that is awake; while the thread waits, only an answer."""
    awake = [run for run in pending if run.wake_at is None or run.wake_at <= now]
    ready = [run for run in awake if run.answers or not waits]
    return min(ready, key=lambda run: (not run.answers, run.position), default=None)
