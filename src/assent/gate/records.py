"""The port of the gate: its records of questions, answers and grants, wherever they are kept.

The gate's steps are functions over `Records`. A store function runs them in one transaction (`stored`), in the server
or over a local file; a process elsewhere sends each to a server (`elsewhere`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from assent.kernel.canonical import Json
from assent.review.model.grants import Call, Grant, Passage
from assent.review.rows.gate import Judged, Pause

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pending:
    """A question that the gate is about to raise. `before` are the earlier questions of its task."""

    thread_id: str
    interrupt_id: str
    value: Json
    response_schema: Json
    before: Sequence[str] = ()
    graph: str = ""

    @property
    def question(self) -> dict[str, Json]:
        """The interrupt, as a thread shows it."""
        return {"id": self.interrupt_id, "value": self.value, "response_schema": self.response_schema}


@dataclass(frozen=True, slots=True)
class Questions:
    """The gate's questions about one call in one task. `answered` has the answers, oldest first; those of `decided`
    questions are valid. `items` are the items of all of them. `next_id` is the id of the open question, or of the next
    one."""

    answered: Mapping[str, Json]
    decided: frozenset[str]
    items: frozenset[str]
    next_id: str
    exist: bool
    by_position: tuple[str, ...]
    """The questions about any call that this task has asked by position, as the gate did up to 0.2.0."""


@dataclass(frozen=True, slots=True)
class Look:
    """The policy's judgement of a call, whether the call has started (then the judgement comes too late for it), and
    the gate's questions about it."""

    judged: Judged
    begun: bool
    questions: Questions


@dataclass(frozen=True, slots=True)
class Answered:
    """The questions of a task that LangGraph has answers to. `anything`: an answer that names no question is there."""

    ids: frozenset[str]
    anything: bool = False

    def includes(self, interrupt_id: str) -> bool:
        return self.anything or interrupt_id in self.ids


class Records(Protocol):
    def covers(self, grant: Grant, call: Call) -> bool:
        """Whether this grant is for exactly this call."""
        ...

    def look(self, call: Call, positions: Sequence[str]) -> Look:
        """`positions` are the ids of the task's own questions."""
        ...

    def judge(self, call: Call) -> Judged: ...

    def use_standing(self, call: Call) -> bool:
        """Whether a standing approval covers the call; it is used up by one."""
        ...

    def consume(self, call: Call, answered: Answered) -> Passage:
        """Consumes the grant of the call."""
        ...

    def recall(self, call: Call, of_items: Collection[str] | None) -> Passage:
        """The state of a call that may not start any more."""
        ...

    def give_back(self, passage: Passage) -> None:
        """The call that this passage let through was not made."""
        ...

    def pause(self, grant_id: str, paused: Pause) -> None: ...

    def finish(self, grant_id: str, result: Json, *, failed: bool) -> None: ...

    def announce_doubt(self, grant_id: str, interrupt_id: str) -> None: ...

    def ask(self, pending: Pending) -> tuple[Json, Json]:
        """Records a question; returns the value and the schema of the interrupt to raise."""
        ...

    def mark_used(self, thread_id: str, interrupt_ids: Sequence[str]) -> None:
        """The answers to these questions were used."""
        ...


class Keeper(ABC):
    """Performs the steps of a gate on the records."""

    notes: bool = True
    """Whether the gate records its questions by steps. A server derives them from its runs."""

    @abstractmethod
    def perform(self, step: Callable[[Records], T]) -> T: ...

    @abstractmethod
    def aperform(self, step: Callable[[Records], T]) -> Coroutine[Any, Any, T]: ...

    def failed(self, error: Exception) -> None:  # noqa: B027 - nothing to do where no server runs the graph
        """Records that a step of the gate failed permanently. A server then stops the run, even if a handler catches
        the error."""

    def making(self, grant: Grant | None) -> AbstractContextManager[None]:
        """Around the call itself."""
        return nullcontext()

    def seal(self, document: Json) -> str | None:
        """A seal on what a graph keeps in the state of its thread, which callers of a server can write. None without a
        server: everybody who can write the state may decide."""
        return None
