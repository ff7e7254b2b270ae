"""Looks up threads that a caller may see, inside the transaction that uses them, so that nothing changes in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from assent.errors import AssentError, NotFound
from assent.identity.authorization import owned_by
from assent.identity.model.access import Principal
from assent.identity.model.visibility import Visible
from assent.kernel.store.transaction import Tx
from assent.threads.rows import threads

P = ParamSpec("P")
T = TypeVar("T")


def sees_thread(tx: Tx, caller: Principal, thread_id: str) -> bool:
    """Whether the thread exists for the caller, by its owner."""
    thread = threads.get(tx, thread_id, values=False)
    return thread is not None and thread.shown_to(owned_by(caller))


def on_thread(
    visible: Visible | None,
    function: Callable[Concatenate[Tx, str, P], T],
    *,
    missing: Callable[[str], AssentError] | None = None,
) -> Callable[Concatenate[Tx, str, P], T]:
    """The store function over a thread; a thread that the caller may not see is not found."""
    if visible is None:
        return function

    def checked(tx: Tx, thread_id: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
        thread = threads.get(tx, thread_id, values=False)
        if thread is None or not thread.shown_to(visible):
            raise (missing or no_thread)(thread_id)
        return function(tx, thread_id, *args, **kwargs)

    return checked


def no_thread(thread_id: str) -> AssentError:
    return NotFound(f"Thread with ID {thread_id} not found")
