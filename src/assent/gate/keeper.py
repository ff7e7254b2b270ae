"""The keeper of the gates in this context, and the grant of the running call.

The server sets its own keeper around every run, and it overrides the author's keeper.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from assent.gate.records import Keeper
from assent.review.model.grants import Grant


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
