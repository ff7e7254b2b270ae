"""Authorization of assistants by the project's auth handlers, with the names of `langgraph_sdk.auth.types`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from assent.identity.authorization import AllowAll, Authorizer, about_threads, named
from assent.identity.model.access import Principal
from assent.identity.model.visibility import Visible
from assent.threads.model.assistants import Change, Query

_CONTENT = ("graph_id", "name", "description", "config", "context")


class AssistantAccess:
    """Each method returns the filter of assistants visible to the caller; None: all."""

    def __init__(self, authorizer: Authorizer | None = None, *, guarded: bool = False) -> None:
        """`guarded`: only its owner and administrators change an assistant."""
        self._authorizer = authorizer or AllowAll()
        self._guarded = guarded

    def limit(self, caller: Principal, action: str) -> Principal | None:
        """The caller, if limited to the assistants they own; None if a project handler decides or there is no limit."""
        governed = self._authorizer.governs(caller, "assistants", action)
        return caller if self._guarded and not governed else None

    async def read(self, caller: Principal, assistant_id: str) -> Visible | None:
        return await self._authorize(caller, "read", {"assistant_id": named(assistant_id)})

    async def search(self, caller: Principal, query: Query, *, limit: int = 0, offset: int = 0) -> Query:
        """The query, restricted to the assistants visible to the caller."""
        value: dict[str, Any] = {
            "graph_id": query.graph_id,
            "metadata": dict(query.metadata),
            "limit": limit,
            "offset": offset,
        }
        visible = await self._authorize(caller, "search", value)
        return replace(query, metadata=value.get("metadata") or {}, visible=visible)

    async def create(
        self, caller: Principal, assistant_id: str, wanted: Change, if_exists: str
    ) -> tuple[Visible | None, Change]:
        return await self._write(caller, "create", assistant_id, wanted, if_exists=if_exists)

    async def update(self, caller: Principal, assistant_id: str, wanted: Change) -> tuple[Visible | None, Change]:
        return await self._write(caller, "update", assistant_id, wanted)

    async def set_latest(self, caller: Principal, assistant_id: str, version: int) -> Visible | None:
        return await self._authorize(caller, "update", {"assistant_id": named(assistant_id), "version": version})

    async def delete(self, caller: Principal, assistant_id: str) -> Visible | None:
        return await self._authorize(caller, "delete", {"assistant_id": named(assistant_id)})

    async def delete_threads(self, caller: Principal, assistant_id: str) -> Visible | None:
        """The filter of the assistant's threads to delete with it."""
        return await about_threads(self._authorizer, caller, "delete", {"assistant_id": named(assistant_id)})

    async def _write(
        self, caller: Principal, action: str, assistant_id: str, wanted: Change, **more: Any
    ) -> tuple[Visible | None, Change]:
        """Also returns the change as the handler edited it."""
        value: dict[str, Any] = {name: getattr(wanted, name) for name in _CONTENT}
        value |= {"assistant_id": named(assistant_id), "metadata": dict(wanted.metadata or {}), **more}
        visible = await self._authorize(caller, action, value)
        return visible, replace(wanted, metadata=value.get("metadata") or {})

    async def _authorize(self, caller: Principal, action: str, value: dict[str, Any]) -> Visible | None:
        return await self._authorizer.authorize(caller, "assistants", action, value)
