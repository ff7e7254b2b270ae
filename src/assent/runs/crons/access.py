"""Which crons a caller may use: calls the project's auth handlers for crons, with the names of
`langgraph_sdk.auth.types`, and checks the owner of a cron, as for threads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from assent.errors import Forbidden
from assent.identity.authorization import AllowAll, Authorizer, named, owned_by
from assent.identity.model.access import Principal, Scope
from assent.identity.model.visibility import Visible, both
from assent.threads.model.crons import Cron
from assent.threads.rows.crons import Query


class CronAccess:
    """Every method returns the condition on the crons that the caller may see; None: all."""

    def __init__(self, authorizer: Authorizer | None = None) -> None:
        self._authorizer = authorizer or AllowAll()

    async def create(self, caller: Principal, metadata: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the cron's final metadata."""
        value = {**facts, "user_id": caller.id, "metadata": dict(metadata)}
        await self._ask(caller, "create", value)
        return value.get("metadata") or {}

    async def read(self, caller: Principal, cron_id: str) -> Visible | None:
        return await self._ask(caller, "read", {"cron_id": named(cron_id)})

    async def update(
        self, caller: Principal, cron_id: str, metadata: Mapping[str, Any], facts: Mapping[str, Any]
    ) -> tuple[Visible | None, dict[str, Any]]:
        value = {**facts, "cron_id": named(cron_id), "metadata": dict(metadata)}
        visible = await self._ask(caller, "update", value)
        return visible, value.get("metadata") or {}

    async def delete(self, caller: Principal, cron_id: str) -> Visible | None:
        return await self._ask(caller, "delete", {"cron_id": named(cron_id)})

    async def search(self, caller: Principal, query: Query, *, limit: int = 0, offset: int = 0) -> Query:
        value: dict[str, Any] = {
            "assistant_id": named(query.assistant_id),
            "thread_id": named(query.thread_id),
            "limit": limit,
            "offset": offset,
            "metadata": dict(query.metadata),
        }
        visible = await self._ask(caller, "search", value)
        return replace(query, metadata=value.get("metadata") or {}, visible=visible)

    def require_author(self, caller: Principal, cron: Cron) -> None:
        """Its runs have the rights of its owner, so only the owner determines what they do. Where a handler of the
        project decides about crons, the caller becomes the owner."""
        if caller.actor != cron.owner and not self._authorizer.governs(caller, "crons", "update"):
            raise Forbidden(
                "only its owner changes what a cron runs, and when",
                hint="others may disable, end or delete it: create a cron of your own",
            )

    async def _ask(self, caller: Principal, action: str, value: dict[str, Any]) -> Visible | None:
        caller.require(Scope.RUNS_WRITE)
        visible = await self._authorizer.authorize(caller, "crons", action, value)
        governed = self._authorizer.governs(caller, "crons", action)
        return visible if governed else both(visible, owned_by(caller))
