"""Which rows a caller may see and change: by the project's auth handlers, and by the owner of a thread.

A use case calls its `Authorizer` before it touches a row. The authorizer may refuse, may change the `metadata` that is
about to be stored, and may return a condition on rows. A row that does not meet it does not exist for this caller: by
id it is the same 404 as a missing one, and searches leave it out.

A program sees the threads that it created and those that are shared. People are not limited: they review all agents.
Where a handler of the project decides about threads, its decision replaces this rule.
"""

from __future__ import annotations

from typing import Any, Protocol
from uuid import UUID

from assent.identity.model.access import Principal, Scope
from assent.identity.model.visibility import OpenTo, Visible, both
from assent.kernel.ids import as_uuid


class Authorizer(Protocol):
    """Decides by the project's auth handlers, beyond scopes and tenants."""

    async def authorize(self, caller: Principal, resource: str, action: str, value: dict[str, Any]) -> Visible | None:
        """Raises where the caller may not do this, and otherwise returns the condition on rows; None: all. `value` is
        the request, by the names of `langgraph_sdk.auth.types`; its `metadata` may be changed."""
        ...

    def governs(self, caller: Principal, resource: str, action: str) -> bool:
        """Whether a handler of the project decides this for the caller, in place of the default rule."""
        ...


class AllowAll:
    """The authorizer of a project without handlers: only scopes and tenants limit its callers."""

    async def authorize(self, caller: Principal, resource: str, action: str, value: dict[str, Any]) -> Visible | None:
        return None

    def governs(self, caller: Principal, resource: str, action: str) -> bool:
        return False


async def about_threads(
    authorizer: Authorizer, caller: Principal, action: str, value: dict[str, Any]
) -> Visible | None:
    """The condition on the threads that the caller may see; None: all of the tenant."""
    visible = await authorizer.authorize(caller, "threads", action, value)
    return visible if authorizer.governs(caller, "threads", action) else both(visible, owned_by(caller))


def owned_by(caller: Principal) -> OpenTo | None:
    """The condition on the threads of a program. One with the scope `admin` sees all of them, as people do."""
    return None if caller.is_person or caller.may(Scope.ADMIN) else OpenTo(caller.actor)


def named(id: str | None) -> UUID | str | None:
    """An id in the type that LangGraph's own server passes to handlers."""
    uuid = as_uuid(id) if id else None
    return UUID(uuid) if uuid else id
