"""Who keeps the grants for a gate: the server that runs the graph, or a local file.

What the gate reads and writes are store functions; a keeper runs them, from a thread or from a coroutine. The server
sets its own keeper around every run, and it counts before whatever an author has named.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

from assent.domain.canonical import Json
from assent.domain.grants import Grant
from assent.store.checkpoints import Attempt
from assent.store.transaction import Tx

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pending:
    """A question that the gate is about to raise. `before` are those that its task has behind it."""

    thread_id: str
    interrupt_id: str
    value: Json
    response_schema: Json
    before: Sequence[str] = ()


class Keeper(ABC):
    attempt: Attempt | None = None
    """The attempt of the run that wants to make calls; what it writes counts only while it still has the run."""

    @abstractmethod
    def run(self, function: Callable[[Tx], T]) -> T:
        """Runs a store function in one durable transaction."""

    @abstractmethod
    async def arun(self, function: Callable[[Tx], T]) -> T: ...

    def raising(self, pending: Pending) -> Callable[[Tx], None] | None:
        """Writes a question down before it is raised. A server makes items of what its runs wait for, and needs not."""
        return None

    def heard(self, thread_id: str, interrupt_ids: Sequence[str]) -> Callable[[Tx], None] | None:
        """Notes that the answers to these questions have done their work. A server knows that from its runs."""
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
def kept_by(keeper: Keeper) -> Iterator[None]:
    """Every gate in here asks this keeper."""
    token = _current.set(keeper)
    try:
        yield
    finally:
        _current.reset(token)


def current_grant() -> Grant | None:
    """The grant under which the running tool was let through. Its `id` is the key by which a receiver can know a second
    try of the same call. None where the call runs freely."""
    held = _held.get()
    return held.grant if held else None


def take_over(grant: Grant) -> bool:
    """Whether a second gate may let the call through by the grant that one before it has consumed: once."""
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
