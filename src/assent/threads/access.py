"""Which threads a caller may use: calls the project's auth handlers for threads and their runs, with the names of
`langgraph_sdk.auth.types`, and checks the owner of a thread.

For handlers a run is a part of its thread: starting one is the action `create_run` of the resource `threads`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from assent.identity.authorization import AllowAll, Authorizer, about_threads, named, owned_by
from assent.identity.model.access import Principal
from assent.identity.model.visibility import AllOf, Has, Visible
from assent.threads.model.runs import Cancel, Strategy
from assent.threads.model.threads import Query
from assent.threads.run_requests import RunRequest

Metadata = dict[str, Any]

_OURS = ("caller_metadata", "cron")
"""The fields of a request that do not come from the client."""

INBOX = "assent:inbox"
"""The mark in `value` for `@auth.on` handlers that a search is about items of the inbox, not threads."""


class ThreadAccess:
    """Every method returns the condition on the threads that the caller may see; None: all."""

    def __init__(self, authorizer: Authorizer | None = None) -> None:
        self._authorizer = authorizer or AllowAll()

    async def create(
        self, caller: Principal, thread_id: str, metadata: Mapping[str, Any], **more: Any
    ) -> tuple[Visible | None, Metadata]:
        """Also returns the thread's final metadata."""
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
        """The query, limited to the caller's threads."""
        asked = {"values": dict(query.values), "status": query.status, "limit": query.limit, "offset": query.offset}
        visible, metadata = await self._write(caller, "search", asked, query.metadata)
        return replace(query, metadata=metadata, visible=visible)

    async def inbox(self, caller: Principal) -> Visible | None:
        """The condition on the threads whose questions the caller may see, by the project's handlers. The owner of a
        thread does not matter: an agent that triages questions sees those of others. A mark tells the handlers that the
        search is for the inbox, so that they can show reviewers questions of other people's threads."""
        asked: dict[str, Any] = {"values": {}, "status": None, "metadata": {}, INBOX: True}
        visible = await self._authorizer.authorize(caller, "threads", "search", asked)
        metadata: Metadata = asked.get("metadata") or {}
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
        """Also returns the final run: handlers see its other fields, and can change its metadata."""
        if not self._authorizer.governs(caller, "threads", "create_run"):  # no handler reads it
            return owned_by(caller), request
        asked: dict[str, Any] = {
            "thread_id": named(thread_id),
            "assistant_id": named(request.assistant_id),
            "run_id": named(run_id),
            "status": "pending",
            "prevent_insert_if_inflight": strategy is Strategy.REJECT,
            "multitask_strategy": str(strategy),
            "if_not_exists": "create" if request.create_thread else "reject",
            "after_seconds": request.after_seconds,
            "kwargs": {
                field.name: getattr(request, field.name) for field in fields(request) if field.name not in _OURS
            },
        }
        visible, metadata = await self._write(caller, "create_run", asked, request.metadata)
        return visible, replace(request, metadata=metadata, caller_metadata=request.metadata)

    async def _write(
        self, caller: Principal, action: str, value: dict[str, Any], metadata: Mapping[str, Any]
    ) -> tuple[Visible | None, Metadata]:
        asked: dict[str, Any] = {**value, "metadata": dict(metadata)}
        visible = await self._ask(caller, action, asked)
        return visible, asked.get("metadata") or {}

    async def _ask(self, caller: Principal, action: str, value: dict[str, Any]) -> Visible | None:
        return await about_threads(self._authorizer, caller, action, value)
