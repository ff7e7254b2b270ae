"""The interface to the storage of grants: the server that runs the graph, or a local file.

The gate reads and writes through store functions; a keeper runs them, from a thread or from a coroutine. The server
sets its own keeper around every run, and it overrides the author's keeper.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

from assent.kernel.canonical import Json
from assent.kernel.store.transaction import Tx
from assent.review.model.grants import Grant
from assent.threads.rows import answers
from assent.threads.rows.checkpoints import Attempt

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pending:
    """A question that the gate is about to raise. `before` are the earlier questions of its task."""

    thread_id: str
    interrupt_id: str
    value: Json
    response_schema: Json
    before: Sequence[str] = ()


class Keeper(ABC):
    attempt: Attempt | None = None
    """The attempt of the run; its writes are valid only while it owns the run."""

    @abstractmethod
    def run(self, function: Callable[[Tx], T]) -> T:
        """Runs a store function in one durable transaction."""

    @abstractmethod
    async def arun(self, function: Callable[[Tx], T]) -> T: ...

    def failed(self, error: Exception) -> None:  # noqa: B027 - nothing to do where no server runs the graph
        """Records that a step of the gate failed permanently. A server then stops the run, even if a handler catches
        the error."""

    def raising(self, pending: Pending) -> Callable[[Tx], None] | None:
        """Writes a question before it is raised. A server needs no such write: it creates items from interrupted
        runs."""
        return None

    def answer(self, tx: Tx, thread_id: str, interrupt_id: str) -> Json:
        """The recorded answer to this question of the gate; None without one. A server records it with the run that
        continues the thread."""
        given = answers.standing(tx, thread_id, interrupt_id)
        return given and given.value

    def mark_used(self, thread_id: str, interrupt_ids: Sequence[str]) -> Callable[[Tx], None] | None:
        """Records that the answers to these questions were used. A server derives that from its runs."""
        return None


@dataclass(slots=True)
class _Held:
    grant: Grant
    taken: bool = False


_current: ContextVar[Keeper | None] = ContextVar("keeper", default=None)
_held: ContextVar[_Held | None] = ContextVar("held", default=None)


def current_keeper() -> Keeper | None:
    return _current.get()


@contextmanager
def using_keeper(keeper: Keeper) -> Iterator[None]:
    """Sets the keeper for every gate in this context."""
    token = _current.set(keeper)
    try:
        yield
    finally:
        _current.reset(token)


def current_grant() -> Grant | None:
    """The grant of the running tool call; None if the call needs no grant. Its `id` is an idempotency key: a receiver
    recognises a retry of the same call by it."""
    held = _held.get()
    return held.grant if held else None


def take_over(grant: Grant) -> bool:
    """Whether a second gate may use the grant that an outer gate has consumed: once."""
    held = _held.get()
    if held is None or held.grant is not grant or held.taken:
        return False
    held.taken = True
    return True


@contextmanager
def granted(grant: Grant | None) -> Iterator[None]:
    token = _held.set(None if grant is None else _Held(grant))
    try:
        yield
    finally:
        _held.reset(token)
