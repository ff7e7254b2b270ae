"""What the project's auth handlers are asked about assistants, by the names of `langgraph_sdk.auth.types`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from assent.domain.access import Principal
from assent.domain.assistants import Change, Query
from assent.domain.visibility import Visible
from assent.ports import Authorizer
from assent.services.authorization import AllowAll, named

_CONTENT = ("graph_id", "name", "description", "config", "context")


class AssistantAccess:
    """Every answer says which assistants are there for the caller; None: all."""

    def __init__(self, authorizer: Authorizer | None = None) -> None:
        self._authorizer = authorizer or AllowAll()

    async def read(self, caller: Principal, assistant_id: str) -> Visible | None:
        return await self._ask(caller, "read", {"assistant_id": named(assistant_id)})

    async def search(self, caller: Principal, query: Query, *, limit: int = 0, offset: int = 0) -> Query:
        """The query as the caller may make it."""
        asked: dict[str, Any] = {
            "graph_id": query.graph_id,
            "metadata": dict(query.metadata),
            "limit": limit,
            "offset": offset,
        }
        visible = await self._ask(caller, "search", asked)
        return replace(query, metadata=asked.get("metadata") or {}, visible=visible)

    async def create(
        self, caller: Principal, assistant_id: str, wanted: Change, if_exists: str
    ) -> tuple[Visible | None, Change]:
        return await self._write(caller, "create", assistant_id, wanted, if_exists=if_exists)

    async def update(self, caller: Principal, assistant_id: str, wanted: Change) -> tuple[Visible | None, Change]:
        return await self._write(caller, "update", assistant_id, wanted)

    async def set_latest(self, caller: Principal, assistant_id: str, version: int) -> Visible | None:
        return await self._ask(caller, "update", {"assistant_id": named(assistant_id), "version": version})

    async def delete(self, caller: Principal, assistant_id: str) -> Visible | None:
        return await self._ask(caller, "delete", {"assistant_id": named(assistant_id)})

    async def delete_threads(self, caller: Principal, assistant_id: str) -> Visible | None:
        """Which of the assistant's threads go with it."""
        return await self._authorizer.authorize(caller, "threads", "delete", {"assistant_id": named(assistant_id)})

    async def _write(
        self, caller: Principal, action: str, assistant_id: str, wanted: Change, **more: Any
    ) -> tuple[Visible | None, Change]:
        """And what is written in the end."""
        asked: dict[str, Any] = {name: getattr(wanted, name) for name in _CONTENT}
        asked |= {"assistant_id": named(assistant_id), "metadata": dict(wanted.metadata or {}), **more}
        visible = await self._ask(caller, action, asked)
        return visible, replace(wanted, metadata=asked.get("metadata") or {})

    async def _ask(self, caller: Principal, action: str, value: dict[str, Any]) -> Visible | None:
        return await self._authorizer.authorize(caller, "assistants", action, value)
