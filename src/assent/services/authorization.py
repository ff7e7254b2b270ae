"""Where a project's auth handlers are asked, whoever they are: before a use case touches a row.

A use case asks its `Authorizer` what the caller may do; that may refuse, may change the `metadata` that is about to be
kept, and may answer with a condition on rows. A row that does not meet it is not there for this caller: by id it is
the same 404 as one that never was, and searches leave it out. `on_thread` puts the check into the transaction that
does the work, so that nothing changes in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar
from uuid import UUID

from assent.domain.access import Principal
from assent.domain.ids import as_uuid
from assent.domain.visibility import Visible, shows
from assent.errors import AssentError, NotFound
from assent.store import threads
from assent.store.transaction import Tx

P = ParamSpec("P")
T = TypeVar("T")


class AllowAll:
    """The authorizer of a project without handlers: scopes and tenants are what limits its callers."""

    async def authorize(self, caller: Principal, resource: str, action: str, value: dict[str, Any]) -> Visible | None:
        return None


def on_thread(
    visible: Visible | None,
    function: Callable[Concatenate[Tx, str, P], T],
    *,
    missing: Callable[[str], AssentError] | None = None,
) -> Callable[Concatenate[Tx, str, P], T]:
    """The store function over a thread, for which a thread that the caller may not see is missing."""
    if visible is None:
        return function

    def checked(tx: Tx, thread_id: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
        thread = threads.get(tx, thread_id)
        if thread is None or not shows(visible, thread.metadata):
            raise (missing or no_thread)(thread_id)
        return function(tx, thread_id, *args, **kwargs)

    return checked


def no_thread(thread_id: str) -> AssentError:
    return NotFound(f"Thread with ID {thread_id} not found")


def named(id: str | None) -> UUID | str | None:
    """An id as handlers know it from LangGraph's own server."""
    found = as_uuid(id) if id else None
    return UUID(found) if found else id
