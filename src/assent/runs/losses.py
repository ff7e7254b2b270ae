"""Records store calls that fail inside an attempt of a run.

LangGraph writes checkpoints in the background, and a tool node or an author's code can catch an error of the gate. The
run could then succeed without a call, or ask on a state that was never stored. So after the first call for which the
store was unavailable, the attempt stores nothing more and is aborted. The next attempt continues from the last
checkpoint.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from assent.errors import Unavailable
from assent.threads.rows.state.checkpoints import Fenced

_current: ContextVar[list[Exception] | None] = ContextVar("losses", default=None)


def watch() -> list[Exception]:
    """Starts recording in this task and its child tasks, and returns the list of errors."""
    lost: list[Exception] = []
    _current.set(lost)
    return lost


def note(error: Exception) -> None:
    """Records an error of a store call of the run."""
    if (lost := _current.get()) is not None:
        lost.append(error)


@contextmanager
def noted() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        note(error)
        raise


def require_none() -> None:
    """Refuses writes of an aborted attempt: they could hide the loss."""
    if (cause := cutting_off(_current.get() or ())) is not None:
        raise Unavailable(f"the attempt was aborted: {cause}") from cause


def any_noted() -> bool:
    return bool(_current.get())


def cutting_off(lost: Sequence[Exception]) -> Unavailable | None:
    return next((error for error in lost if isinstance(error, Unavailable)), None)


def raised_for(lost: Sequence[Exception], error: BaseException | None) -> Exception | None:
    """The store error to raise at the end of the graph in place of `error`. It replaces an error of the graph, which
    may be a consequence, but not a cancellation."""
    if error is None:
        return cutting_off(lost) or next(iter(lost), None)
    return cutting_off(lost) if isinstance(error, Exception) else None


def is_cut_off(value: Any) -> bool:
    """Whether a task was aborted rather than failed, so that another attempt repeats it. If this error were stored, the
    task would count as failed and its question as answered."""
    return isinstance(value, Unavailable | Fenced | asyncio.CancelledError)
