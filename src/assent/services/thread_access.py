"""What the project's auth handlers are asked about threads and their runs, by the names of `langgraph_sdk.auth.types`.

To handlers a run is a part of its thread: starting one is the action `create_run` of the resource `threads`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from assent.domain.access import Principal
from assent.domain.runs import Cancel, Strategy
from assent.domain.threads import Query
from assent.domain.visibility import AllOf, Has, Visible
from assent.ports import Authorizer
from assent.services.authorization import AllowAll, named
from assent.services.starting import RunRequest

Metadata = dict[str, Any]


class ThreadAccess:
    """Every answer says which threads are there for the caller; None: all."""

    def __init__(self, authorizer: Authorizer | None = None) -> None:
        self._authorizer = authorizer or AllowAll()

    async def create(
        self, caller: Principal, thread_id: str, metadata: Mapping[str, Any], **more: Any
    ) -> tuple[Visible | None, Metadata]:
        """And the metadata that the thread gets in the end."""
        return await self._write(caller, "create", {"thread_id": named(thread_id), **more}, metadata)

    async def update(
        self, caller: Principal, thread_id: str, metadata: Mapping[str, Any] | None = None, **more: Any
    ) -> tuple[Visible | None, Metadata]:
        return await self._write(caller, "update", {"thread_id": named(thread_id), **more}, metadata or {})

    async def read(self, caller: Principal, thread_id: str, run_id: str | None = None) -> Visible | None:
        asked = {"thread_id": named(thread_id), **({"run_id": named(run_id)} if run_id else {})}
        return await self._ask(caller, "read", asked)

    async def delete(self, caller: Principal, thread_id: str, run_id: str | None = None) -> Visible | None:
        asked = {"thread_id": named(thread_id), **({"run_id": named(run_id)} if run_id else {})}
        return await self._ask(caller, "delete", asked)

    async def prune(self, caller: Principal, thread_ids: Sequence[str]) -> Visible | None:
        return await self._ask(caller, "delete", {"thread_ids": [named(thread_id) for thread_id in thread_ids]})

    async def search(self, caller: Principal, query: Query) -> Query:
        """The query as the caller may make it."""
        asked = {"values": dict(query.values), "status": query.status, "limit": query.limit, "offset": query.offset}
        visible, metadata = await self._write(caller, "search", asked, query.metadata)
        return replace(query, metadata=metadata, visible=visible)

    async def inbox(self, caller: Principal) -> Visible | None:
        """Whose questions are there for the caller: those of the threads they may find."""
        visible, metadata = await self._write(caller, "search", {"values": {}, "status": None}, {})
        own = tuple(Has(name, value) for name, value in metadata.items())
        return AllOf((*own, *((visible,) if visible else ()))) if own else visible

    async def list_runs(self, caller: Principal, thread_id: str) -> Visible | None:
        return await self._ask(caller, "search", {"thread_id": named(thread_id), "metadata": {}})

    async def cancel(
        self, caller: Principal, how: Cancel, thread_id: str | None, run_ids: Sequence[str], status: str | None = None
    ) -> Visible | None:
        runs = {"run_ids": [named(run_id) for run_id in run_ids] or None, "status": status}
        asked = {"thread_id": named(thread_id), "action": str(how), "metadata": runs}
        return await self._ask(caller, "update", asked)

    async def create_run(
        self, caller: Principal, thread_id: str | None, run_id: str, request: RunRequest, strategy: Strategy
    ) -> tuple[Visible | None, RunRequest]:
        """And the run as it is made in the end: what else it is made of is shown, its metadata can be changed."""
        if isinstance(self._authorizer, AllowAll):  # nobody looks at it
            return None, request
        asked: dict[str, Any] = {
            "thread_id": named(thread_id),
            "assistant_id": named(request.assistant_id),
            "run_id": named(run_id),
            "status": "pending",
            "prevent_insert_if_inflight": strategy is Strategy.REJECT,
            "multitask_strategy": str(strategy),
            "if_not_exists": "create" if request.create_thread else "reject",
            "after_seconds": request.after_seconds,
            "kwargs": {one.name: getattr(request, one.name) for one in fields(request)},
        }
        visible, metadata = await self._write(caller, "create_run", asked, request.metadata)
        return visible, replace(request, metadata=metadata)

    async def _write(
        self, caller: Principal, action: str, value: dict[str, Any], metadata: Mapping[str, Any]
    ) -> tuple[Visible | None, Metadata]:
        asked: dict[str, Any] = {**value, "metadata": dict(metadata)}
        visible = await self._ask(caller, action, asked)
        return visible, asked.get("metadata") or {}

    async def _ask(self, caller: Principal, action: str, value: dict[str, Any]) -> Visible | None:
        return await self._authorizer.authorize(caller, "threads", action, value)
