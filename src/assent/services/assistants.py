"""Assistants: graphs with configurations of their own, and what the graphs behind them look like.

Assistants of a graph that is not there (renamed, removed, or not loaded because of an error) are kept but not shown;
they are back as soon as the graph is, or when they are pointed at another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from assent.domain.access import Principal, Scope
from assent.domain.assistants import Assistant, AssistantVersion, Change, Query, make, restore, revise
from assent.domain.ids import as_uuid, new_id
from assent.domain.threads import Query as ThreadQuery
from assent.domain.visibility import Visible, shows
from assent.engine import schemas
from assent.engine.graphs import GraphSpec
from assent.errors import AlreadyExists, Invalid, NotFound
from assent.ports import Authorizer, Store
from assent.services.answering import require_settled
from assent.services.assistant_access import AssistantAccess
from assent.services.own_assistants import OwnAssistants
from assent.services.refusals import noted
from assent.store import assistants, runs, thread_search, threads
from assent.store.assistants import SortBy
from assent.store.transaction import Tx

if TYPE_CHECKING:
    from assent.engine.graphs import AnyPregel

IfExists = Literal["raise", "do_nothing"]

_THREADS_AT_ONCE = 200
_READ = (Scope.RUNS_WRITE, Scope.ITEMS_READ)


class Assistants:
    def __init__(self, store: Store, graphs: Mapping[str, GraphSpec], authorizer: Authorizer | None = None) -> None:
        self._store = store
        self._may = AssistantAccess(authorizer)
        self._is_open = authorizer is None
        self._graphs = graphs
        self._own = OwnAssistants(store, graphs)

    async def create(
        self,
        caller: Principal,
        graph_id: str,
        wanted: Change,
        *,
        assistant_id: str | None = None,
        if_exists: IfExists = "raise",
    ) -> Assistant:
        caller.require(Scope.RUNS_WRITE)
        new = new_id() if assistant_id is None else _uuid(assistant_id)
        self._require_graph(graph_id)
        visible, wanted = await self._may.create(caller, new, replace(wanted, graph_id=graph_id), if_exists)
        await self._own.ensure(caller.tenant)
        return await self._store.write(caller.tenant, _create, new, graph_id, wanted, if_exists, visible)

    async def search(
        self,
        caller: Principal,
        query: Query,
        *,
        sort_by: SortBy = "created_at",
        descending: bool = True,
        limit: int = 10,
        offset: int = 0,
    ) -> tuple[list[Assistant], int]:
        """One page, and how many there are in all."""
        query = await self._before_listing(caller, query, limit=limit, offset=offset)
        return await self._store.read(
            caller.tenant,
            assistants.search,
            query,
            list(self._graphs),
            sort_by=sort_by,
            descending=descending,
            limit=limit,
            offset=offset,
        )

    async def count(self, caller: Principal, query: Query) -> int:
        query = await self._before_listing(caller, query)
        return await self._store.read(caller.tenant, assistants.count, query, list(self._graphs))

    async def get(self, caller: Principal, assistant_id: str) -> Assistant:
        caller.require_any(*_READ)
        return await self._get(caller, _uuid(assistant_id))

    async def change(self, caller: Principal, assistant_id: str, change: Change) -> Assistant:
        """Makes the next version, which is in force at once."""
        caller.require(Scope.RUNS_WRITE)
        if change.graph_id is not None:
            self._require_graph(change.graph_id)
        known = _uuid(assistant_id)
        visible, change = await self._may.update(caller, known, change)
        await self._own.ensure(caller.tenant)
        return await self._store.write(caller.tenant, self._change, known, change, visible)

    async def set_latest(self, caller: Principal, assistant_id: str, version: int) -> Assistant:
        """Puts an earlier version in force again, or a later one."""
        caller.require(Scope.RUNS_WRITE)
        known = _uuid(assistant_id)
        visible = await self._may.set_latest(caller, known, version)
        await self._own.ensure(caller.tenant)
        return await self._store.write(caller.tenant, self._set_latest, known, version, visible)

    async def versions(
        self,
        caller: Principal,
        assistant_id: str,
        *,
        metadata: Mapping[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
    ) -> list[AssistantVersion]:
        caller.require_any(*_READ)
        known = _uuid(assistant_id)
        visible = await self._may.read(caller, known)
        await self._own.ensure(caller.tenant)
        found = await self._store.read(
            caller.tenant, _versions, known, visible, metadata=metadata or {}, limit=limit, offset=offset
        )
        if not found:
            raise _unknown(assistant_id)
        return found

    async def delete(self, caller: Principal, assistant_id: str, *, delete_threads: bool = False) -> None:
        """With its versions and, where asked for, its threads: those go first, so that a second try finds the rest."""
        caller.require(Scope.RUNS_WRITE)
        known = _uuid(assistant_id)
        visible = await self._may.delete(caller, known)
        await self._own.ensure(caller.tenant)
        if delete_threads:
            theirs = await self._may.delete_threads(caller, known)
            async with noted(self._store, caller):
                while await self._delete_some_threads(caller, known, visible, theirs):
                    pass
        await self._store.write(caller.tenant, _delete, known, visible)

    async def _delete_some_threads(
        self, caller: Principal, assistant_id: str, visible: Visible | None, theirs: Visible | None
    ) -> bool:
        """Not all at once, so that no other write has to wait long."""
        tenant = caller.tenant
        deleted, running = await self._store.write(tenant, _delete_threads, assistant_id, visible, theirs, caller)
        if self._store.queue is not None:
            for run_id in running:
                await self._store.queue.cancel(tenant, run_id)
        return deleted > 0

    # What the graph behind an assistant looks like

    async def drawing(self, caller: Principal, name_or_id: str, *, xray: bool | int = False) -> dict[str, Any]:
        caller.require_any(*_READ)
        assistant = await self._get(caller, self._own.ids.get(name_or_id) or _uuid(name_or_id))
        async with self._opened(assistant) as graph:
            return await asyncio.to_thread(schemas.drawing, graph, xray=xray)

    async def schemas(self, caller: Principal, assistant_id: str) -> dict[str, Any]:
        assistant = await self.get(caller, assistant_id)
        async with self._opened(assistant) as graph:
            return {"graph_id": assistant.graph_id, **await asyncio.to_thread(schemas.schemas, graph)}

    async def subgraphs(
        self, caller: Principal, assistant_id: str, *, namespace: str | None = None, recurse: bool = False
    ) -> dict[str, Any]:
        assistant = await self.get(caller, assistant_id)
        async with self._opened(assistant) as graph:
            return await asyncio.to_thread(schemas.subgraphs, graph, namespace=namespace, recurse=recurse)

    # For whoever starts runs

    async def resolve(self, caller: Principal, name_or_id: str) -> Assistant:
        """The assistant that a run names, by its id or by its graph's name. One read."""
        caller.require_any(*_READ)
        found = await self._store.read(caller.tenant, assistants.get, self._id_of(name_or_id))
        if self._missing(name_or_id, found):
            return await self._store.write(caller.tenant, self._own.write, name_or_id)
        runnable = self._runnable(found)
        if runnable.is_graphs_own:  # everyone's
            return runnable
        return self._runnable(runnable if shows(await self._may.read(caller, runnable.id), runnable.metadata) else None)

    async def finder(self, caller: Principal, name_or_id: str) -> Callable[[Tx], Assistant]:
        """The same for the transaction that starts the run. Where the project's auth has a say it is read before."""
        caller.require_any(*_READ)
        if not self._is_open:
            found = await self.resolve(caller, name_or_id)
            return lambda tx: found
        await self._own.ensure(caller.tenant)  # or many first runs at once would all write it, and wait for one another
        return lambda tx: self.resolve_in(tx, name_or_id)

    def resolve_in(self, tx: Tx, name_or_id: str) -> Assistant:
        """The same inside a write of another service, where it costs no read of its own."""
        found = assistants.get(tx, self._id_of(name_or_id))
        return self._own.write(tx, name_or_id) if self._missing(name_or_id, found) else self._runnable(found)

    # Inside a transaction

    def _change(self, tx: Tx, assistant_id: str, change: Change, visible: Visible | None) -> Assistant:
        present = _locked(tx, assistant_id, visible)
        version = assistants.newest_version(tx, assistant_id) + 1
        changed = revise(present, change, version=version, now=tx.now())
        self._require_graph(changed.graph_id)
        assistants.put_in_force(tx, changed)
        assistants.add_version(tx, changed)
        return changed

    def _set_latest(self, tx: Tx, assistant_id: str, number: int, visible: Visible | None) -> Assistant:
        present = _locked(tx, assistant_id, visible)
        version = assistants.version(tx, assistant_id, number)
        if version is None:
            raise NotFound(f"Version {number} not found for assistant {assistant_id}")
        self._require_graph(version.graph_id)
        restored = restore(present, version, tx.now())
        assistants.put_in_force(tx, restored)
        return restored

    # What is there and what is not

    async def _before_listing(self, caller: Principal, query: Query, **page: int) -> Query:
        caller.require_any(*_READ)
        if query.graph_id is not None:
            self._require_graph(query.graph_id)
        await self._own.ensure(caller.tenant)
        return await self._may.search(caller, query, **page)

    async def _get(self, caller: Principal, assistant_id: str) -> Assistant:
        visible = await self._may.read(caller, assistant_id)
        await self._own.ensure(caller.tenant)
        found = await self._store.read(caller.tenant, assistants.get, assistant_id)
        if found is None or found.graph_id not in self._graphs or not shows(visible, found.metadata):
            raise NotFound("Not Found", hint=f"there is no assistant {assistant_id}, or its graph is not loaded")
        return found

    def _opened(self, assistant: Assistant) -> AbstractAsyncContextManager[AnyPregel]:
        spec = self._graphs[assistant.graph_id]
        return spec.open(assistant.config, checkpointer=None, store=None, access="assistants.read")

    def _id_of(self, name_or_id: str) -> str:
        found = self._own.ids.get(name_or_id) or as_uuid(name_or_id)
        if found is None:
            raise Invalid(
                f"Invalid assistant: '{name_or_id}'. Must be either:\n- A valid assistant UUID, or\n"
                f"- One of the registered graphs: {', '.join(self._graphs)}"
            )
        return found

    def _missing(self, name_or_id: str, found: Assistant | None) -> bool:
        """Whether a graph's name leads to no assistant of that graph, so that it has to be written again."""
        return name_or_id in self._graphs and (found is None or found.graph_id != name_or_id)

    def _runnable(self, found: Assistant | None) -> Assistant:
        if found is None:
            raise NotFound("Thread or assistant not found.")
        self._require_graph(found.graph_id)
        return found

    def _require_graph(self, graph_id: str) -> None:
        if graph_id not in self._graphs:
            raise NotFound(f"Graph '{graph_id}' not found. Expected one of: {sorted(self._graphs)}")


def _create(
    tx: Tx, assistant_id: str, graph_id: str, wanted: Change, if_exists: IfExists, visible: Visible | None
) -> Assistant:
    made = make(assistant_id, graph_id, wanted, tx.now())
    if assistants.insert(tx, made):
        return made
    present = assistants.lock(tx, assistant_id)
    if if_exists == "raise" or present is None or not shows(visible, present.metadata):
        raise AlreadyExists(f"Assistant {assistant_id} already exists")
    return present


def _versions(tx: Tx, /, assistant_id: str, visible: Visible | None, **page: Any) -> list[AssistantVersion]:
    present = assistants.get(tx, assistant_id)
    return assistants.versions(tx, assistant_id, **page) if present and shows(visible, present.metadata) else []


def _delete_threads(
    tx: Tx, assistant_id: str, visible: Visible | None, theirs: Visible | None, caller: Principal
) -> tuple[int, list[str]]:
    """How many of the caller's threads went, and which runs of them may still be executed somewhere."""
    _locked(tx, assistant_id, visible)
    query = ThreadQuery(metadata={"assistant_id": assistant_id}, visible=theirs, limit=_THREADS_AT_ONCE)
    found = thread_search.search(tx, query, values=False)[0]
    running = [run.id for thread in found for run in runs.active(tx, thread.id)]
    for thread in found:
        require_settled(tx, caller, thread)
        threads.remove(tx, thread.id)
    return len(found), running


def _delete(tx: Tx, assistant_id: str, visible: Visible | None) -> None:
    _locked(tx, assistant_id, visible)
    assistants.remove(tx, assistant_id)


def _locked(tx: Tx, assistant_id: str, visible: Visible | None) -> Assistant:
    found = assistants.lock(tx, assistant_id)
    if found is None or not shows(visible, found.metadata):
        raise _unknown(assistant_id)
    return found


def _uuid(text: str) -> str:
    found = as_uuid(text)
    if found is None:
        raise Invalid("Invalid assistant ID: must be a UUID")
    return found


def _unknown(assistant_id: str) -> NotFound:
    return NotFound(f"Assistant {assistant_id} not found")
