"""Runs of a thread: their statuses, and the rules for a new run while another one is active.

The order of a thread's runs is decided here and on the rows, never by a queue: only the head of a thread is handed to
one. A run with an answer goes first, because all later runs wait for that answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from assent.errors import ThreadBusy, ThreadWaits
from assent.threads.model.configs import DECISION, IDENTITY, LIMITS
from assent.threads.model.threads import Interrupts

_OF_TASKS = frozenset(f"langgraph_{name}" for name in ("step", "node", "triggers", "path", "checkpoint_ns"))
"""Metadata of the calling task, sent by a RemoteGraph. LangGraph overwrites it for its own tasks."""


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
    """How a run is cancelled: keep its results, or roll it back."""

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
    passes: str | None = None
    """The position of the thread, by `checkpoints.heads`, when a decision let this run pass its breakpoint."""
    lost: int = 0
    """The number of attempts that ended because their process died."""
    prepared: Any = field(default=None, compare=False, repr=False)
    """The facts with which the attempt begins, if the transaction that began it has read them."""

    @property
    def named_by(self) -> str | None:
        """The actor who named its receiver; None where unknown: a run with an answer belongs to the actor of the
        question, and its receiver may come from the author of the answer."""
        return None if self.answers else self.actor

    @property
    def setting(self) -> tuple[Any, ...]:
        """The graph, actor, config, context and metadata that nodes see. Without the attributes of the actor, which may
        change, and the limits of its execution."""
        config = {name: value for name, value in (self.kwargs.get("config") or {}).items() if name not in LIMITS}
        configurable = {k: v for k, v in (config.pop("configurable", None) or {}).items() if not k.startswith(IDENTITY)}
        metadata = {**(config.pop("metadata", None) or {}), **self.metadata}
        shown = {name: value for name, value in metadata.items() if name not in {*_OF_TASKS, DECISION}}
        context = self.kwargs.get("context") or {}
        return self.graph_id, self.assistant_id, self.actor, config, configurable, context, shown


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an attempt: the run's status and the thread's state after it. `result` is the waiter's answer.
    The values of a run that ended without a question are to be written only (`jsonable.texts`).

    `output` lists the state fields that callers see, where the graph's output schema is only a part of it.
    `unread`: the state after it cannot be read, and the thread still shows the state before it."""

    status: RunStatus
    values: Any = None
    interrupts: Interrupts = field(default_factory=dict)
    next: tuple[str, ...] = ()
    error: dict[str, Any] | None = None
    rolled_back: bool = False
    stopped: tuple[str, ...] = ()
    """The nodes that it stopped before although another node asks a question."""
    unread: bool = False
    refused: bool = False
    """It ended before any of its nodes began."""
    output: frozenset[str] | None = None
    notes: tuple[str, ...] = ()
    """A note for the person who decides whether the thread continues from here."""

    @property
    def pending(self) -> list[dict[str, Any]]:
        return [question for task in self.interrupts.values() for question in task]

    @property
    def result(self) -> Any:
        if self.error is not None and self.status in (RunStatus.ERROR, RunStatus.TIMEOUT):
            return {"__error__": self.error}
        values = self._seen
        if not self.pending:
            return values
        return {**(values if isinstance(values, dict) else {}), "__interrupt__": self.pending}

    @property
    def _seen(self) -> Any:
        if self.output is None or not isinstance(self.values, dict):
            return self.values
        return {name: value for name, value in self.values.items() if name in self.output}


def durable(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a run behind the gate: every step is stored before the next one begins."""
    return {**kwargs, "durability": "sync", "checkpoint_during": True}


def either(left: list[str] | str | None, right: list[str] | str | None) -> list[str] | str | None:
    """The union of the nodes at which two runs stop. `*` is a name among them."""
    if not left or not right or left == right:
        return left or right
    named = [node for nodes in (left, right) for node in ([nodes] if isinstance(nodes, str) else nodes)]
    return list(dict.fromkeys(named))


def run_view(run: Run) -> dict[str, Any]:
    """The run for LangGraph's clients and webhook receivers."""
    return {
        "run_id": run.id,
        "thread_id": run.thread_id,
        "assistant_id": run.assistant_id,
        "metadata": run.metadata,
        "status": run.status,
        "kwargs": {**_asked(run), "config": _config(run)},
        "multitask_strategy": run.multitask_strategy,
        "created_at": run.created_at.isoformat(),
        "updated_at": run.updated_at.isoformat(),
        "langsmith_session_name": None,
        "cancel_reason": run.cancel,
    }


def _asked(run: Run) -> dict[str, Any]:
    """The arguments; the checkpoint only of a run that begins at one."""
    return {name: value for name, value in run.kwargs.items() if name != "checkpoint" or value is not None}


def _config(run: Run) -> dict[str, Any]:
    """The config of the graph, with the ids of its run, thread and assistant."""
    asked = run.kwargs.get("config") or {}
    ids = {"run_id": run.id, "thread_id": run.thread_id, "graph_id": run.graph_id, "assistant_id": run.assistant_id}
    metadata = {**(asked.get("metadata") or {}), **run.metadata}
    return {**asked, "configurable": {**(asked.get("configurable") or {}), **ids}, "metadata": metadata}


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Cancelled runs: those that are being executed have still to be stopped, the others are over."""

    running: tuple[Run, ...] = ()
    over: tuple[Run, ...] = ()


@dataclass(frozen=True, slots=True)
class Admission:
    """The effect of admitting a run on the active ones."""

    supersedes: tuple[Run, ...] = ()
    by: Cancel | None = None
    drops_questions: bool = False


_STRATEGIES = "send a multitask_strategy with the run, or set default_multitask_strategy: chat pages need `interrupt`"


def admit(strategy: Strategy, *, active: Sequence[Run], pending: Sequence[dict[str, Any]], answers: bool) -> Admission:
    """Whether a new run may join its thread, and which runs it replaces. `pending` are the thread's open questions."""
    if answers:
        return Admission()
    if strategy is Strategy.REJECT and active:
        raise ThreadBusy(hint=_STRATEGIES)
    if strategy is Strategy.REJECT and pending:
        raise ThreadWaits(pending=list(pending), hint=_STRATEGIES)
    if strategy in (Strategy.REJECT, Strategy.ENQUEUE):
        return Admission()
    return Admission(tuple(active), Cancel(strategy.value), drops_questions=bool(pending))


def next_in_line(pending: Sequence[Run], *, waits: bool, now: datetime) -> Run | None:
    """The next run: the first in order that is not delayed; while the thread waits, only an answer."""
    awake = [run for run in pending if run.wake_at is None or run.wake_at <= now]
    ready = [run for run in awake if run.answers or not waits]
    return min(ready, key=lambda run: (not run.answers, run.position), default=None)
