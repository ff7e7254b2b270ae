"""Assistants: named configurations of graphs, with drawings and schemas of the graphs.

Assistants of a missing graph (renamed, removed, or failed to load) are hidden, not deleted. They are visible again once
the graph is loaded or the assistant names another graph.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from assent.audit.refusals import noted
from assent.errors import AlreadyExists, Forbidden, Invalid, NotFound
from assent.identity.authorization import Authorizer
from assent.identity.model.access import Principal, Scope
from assent.identity.model.visibility import Visible, shows
from assent.kernel import fair_threads
from assent.kernel.ids import as_uuid, new_id
from assent.kernel.quotas import documents, quotas
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.review import thread_items
from assent.review.threads.secrets import Secrets
from assent.review.threads.withdrawal import require_removable
from assent.runs.assistants.access import AssistantAccess
from assent.runs.assistants.own import OwnAssistants
from assent.runs.project import schemas
from assent.runs.project.graphs import GraphSpec
from assent.threads.model.assistants import Assistant, AssistantVersion, Change, Query, make, own_id, restore, revise
from assent.threads.model.threads import Query as ThreadQuery
from assent.threads.rows import assistants, contributors, runs, thread_search
from assent.threads.rows.assistants import SortBy

if TYPE_CHECKING:
    from assent.runs.project.graphs import AnyPregel

IfExists = Literal["raise", "do_nothing"]

_THREADS_AT_ONCE = 200
_READ = (Scope.RUNS_WRITE, Scope.ITEMS_READ)


class Assistants:
    def __init__(
        self,
        store: Store,
        graphs: Mapping[str, GraphSpec],
        authorizer: Authorizer | None = None,
        *,
        guarded: bool = False,
        failed: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`guarded`: only its owner and administrators change an assistant, and only administrators a graph's own.
        The whole tenant may read and run it. `failed`: graphs that did not load, with the reason."""
        self._store = store
        self._may = AssistantAccess(authorizer, guarded=guarded)
        self._is_open = authorizer is None
        self._graphs = graphs
        self._failed = failed
        self._own = OwnAssistants(store, graphs)

    @property
    def graph_ids(self) -> Collection[str]:
        return self._graphs.keys()

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
        await documents.require_given(self._store.limits, **_documents(wanted))
        await self._own.ensure(caller.tenant)
        return await self._store.write(
            caller.tenant, self._create, new, graph_id, wanted, if_exists, visible, owner=caller.actor
        )

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
        """One page, and the total count."""
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
        """Creates the next version and makes it current."""
        caller.require(Scope.RUNS_WRITE)
        if change.graph_id is not None:
            self._require_graph(change.graph_id)
        uuid = _uuid(assistant_id)
        visible, change = await self._may.update(caller, uuid, change)
        await documents.require_given(self._store.limits, **_documents(change))
        await self._own.ensure(caller.tenant)
        return await self._store.write(
            caller.tenant, self._change, caller.actor, uuid, change, visible, self._may.limit(caller, "update")
        )

    async def set_latest(self, caller: Principal, assistant_id: str, version: int) -> Assistant:
        """Makes another version current."""
        caller.require(Scope.RUNS_WRITE)
        uuid = _uuid(assistant_id)
        visible, limit = await self._may.set_latest(caller, uuid, version), self._may.limit(caller, "update")
        await self._own.ensure(caller.tenant)
        return await self._store.write(caller.tenant, self._set_latest, caller.actor, uuid, version, visible, limit)

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
        uuid = _uuid(assistant_id)
        visible = await self._may.read(caller, uuid)
        await self._own.ensure(caller.tenant)
        page = await self._store.read(
            caller.tenant, _versions, uuid, visible, metadata=metadata or {}, limit=limit, offset=offset
        )
        if not page:
            raise _unknown(assistant_id)
        return page

    async def delete(self, caller: Principal, assistant_id: str, *, delete_threads: bool = False) -> None:
        """Deletes the assistant with its versions. Threads are deleted first, so that a retry finds the rest."""
        caller.require(Scope.RUNS_WRITE)
        uuid = _uuid(assistant_id)
        visible, limit = await self._may.delete(caller, uuid), self._may.limit(caller, "delete")
        await self._own.ensure(caller.tenant)
        if delete_threads:
            theirs = await self._may.delete_threads(caller, uuid)
            async with Secrets(self._store).refusals(caller, None), noted(self._store, caller):
                while await self._delete_some_threads(caller, uuid, visible, theirs, limit):
                    pass
        await self._store.write(caller.tenant, _delete, uuid, visible, limit)

    async def _delete_some_threads(
        self,
        caller: Principal,
        assistant_id: str,
        visible: Visible | None,
        theirs: Visible | None,
        limit: Principal | None,
    ) -> bool:
        """Deletes one batch of threads, so that other writes do not wait long."""
        tenant = caller.tenant
        deleted, running = await self._store.write(
            tenant, _delete_threads, assistant_id, visible, theirs, caller, limit
        )
        if self._store.queue is not None:
            for run_id in running:
                await self._store.queue.cancel(tenant, run_id)
        return deleted > 0

    # Drawings and schemas of the graph

    async def drawing(self, caller: Principal, name_or_id: str, *, xray: bool | int = False) -> dict[str, Any]:
        caller.require_any(*_READ)
        assistant = await self._get(caller, self._own.ids.get(name_or_id) or _uuid(name_or_id))
        async with self._opened(assistant) as graph:
            return await fair_threads.beside(schemas.drawing, graph, xray=xray)

    async def schemas(self, caller: Principal, assistant_id: str) -> dict[str, Any]:
        assistant = await self.get(caller, assistant_id)
        async with self._opened(assistant) as graph:
            return {"graph_id": assistant.graph_id, **await fair_threads.beside(schemas.schemas, graph)}

    async def subgraphs(
        self, caller: Principal, assistant_id: str, *, namespace: str | None = None, recurse: bool = False
    ) -> dict[str, Any]:
        assistant = await self.get(caller, assistant_id)
        async with self._opened(assistant) as graph:
            return await fair_threads.beside(schemas.subgraphs, graph, namespace=namespace, recurse=recurse)

    # Used to start runs

    async def resolve(self, caller: Principal, name_or_id: str) -> Assistant:
        """The assistant with this id, or the own assistant of the graph with this name. One read."""
        caller.require_any(*_READ)
        assistant = await self._store.read(caller.tenant, assistants.get, self._id_of(name_or_id))
        if self._missing(name_or_id, assistant):
            return await self._store.write(caller.tenant, self._own.write, name_or_id)
        runnable = self._runnable(assistant)
        if runnable.is_graphs_own:  # visible to the whole tenant
            return runnable
        return self._runnable(runnable if shows(await self._may.read(caller, runnable.id), runnable.metadata) else None)

    async def finder(self, caller: Principal, name_or_id: str) -> Callable[[Tx], Assistant]:
        """As `resolve`, inside the transaction that starts the run. With project auth, the assistant is read before
        it."""
        caller.require_any(*_READ)
        if not self._is_open:
            assistant = await self.resolve(caller, name_or_id)
            return lambda tx: assistant
        await self._own.ensure(caller.tenant)  # or concurrent first runs would all write it and wait for each other
        return lambda tx: self.resolve_in(tx, name_or_id)

    def resolve_in(self, tx: Tx, name_or_id: str) -> Assistant:
        """As `resolve`, inside a transaction."""
        assistant = assistants.get(tx, self._id_of(name_or_id))
        return self._own.write(tx, name_or_id) if self._missing(name_or_id, assistant) else self._runnable(assistant)

    # Inside a transaction

    def _create(self, tx: Tx, assistant_id: str, *args: Any, **facts: Any) -> Assistant:
        """Only the server creates a graph's own assistant: it is restored before a client can take its id."""
        own = next((graph_id for graph_id, id in self._own.ids.items() if id == assistant_id), None)
        if own is not None:
            self._own.write(tx, own)
        return _create(tx, assistant_id, *args, **facts)

    def _change(
        self, tx: Tx, actor: str, assistant_id: str, change: Change, visible: Visible | None, limit: Principal | None
    ) -> Assistant:
        present = _locked(tx, assistant_id, visible, limit)
        version = assistants.newest_version(tx, assistant_id) + 1
        changed = revise(present, change, version=version, now=tx.now())
        quotas.require_storage(tx)
        documents.require(tx, **_documents(changed))
        self._require_graph(changed.graph_id)
        assistants.put_in_force(tx, changed)
        assistants.add_version(tx, changed)
        _record_contributor(tx, actor, present, changed)
        return changed

    def _set_latest(
        self, tx: Tx, actor: str, assistant_id: str, number: int, visible: Visible | None, limit: Principal | None
    ) -> Assistant:
        present = _locked(tx, assistant_id, visible, limit)
        version = assistants.version(tx, assistant_id, number)
        if version is None:
            raise NotFound(f"Version {number} not found for assistant {assistant_id}")
        self._require_graph(version.graph_id)
        restored = restore(present, version, tx.now())
        assistants.put_in_force(tx, restored)
        _record_contributor(tx, actor, present, restored)
        return restored

    # Lookup

    async def _before_listing(self, caller: Principal, query: Query, **page: int) -> Query:
        caller.require_any(*_READ)
        if query.graph_id is not None:
            self._require_graph(query.graph_id)
        await self._own.ensure(caller.tenant)
        return await self._may.search(caller, query, **page)

    async def _get(self, caller: Principal, assistant_id: str) -> Assistant:
        visible = await self._may.read(caller, assistant_id)
        await self._own.ensure(caller.tenant)
        assistant = await self._store.read(caller.tenant, assistants.get, assistant_id)
        if assistant is None or assistant.graph_id not in self._graphs or not shows(visible, assistant.metadata):
            raise NotFound("Not Found", hint=f"there is no assistant {assistant_id}, or its graph is not loaded")
        return assistant

    def _opened(self, assistant: Assistant) -> AbstractAsyncContextManager[AnyPregel]:
        spec = self._graphs[assistant.graph_id]
        return spec.open(assistant.config, checkpointer=None, store=None, access="assistants.read")

    def _id_of(self, name_or_id: str) -> str:
        for graph_id in self._failed:
            if name_or_id in (graph_id, own_id(graph_id)):
                self._require_graph(graph_id)
        assistant_id = self._own.ids.get(name_or_id) or as_uuid(name_or_id)
        if assistant_id is None:
            raise Invalid(
                f"Invalid assistant: '{name_or_id}'. Must be either:\n- A valid assistant UUID, or\n"
                f"- One of the registered graphs: {', '.join(self._graphs)}"
            )
        return assistant_id

    def _missing(self, name_or_id: str, assistant: Assistant | None) -> bool:
        """Whether the graph's own assistant is missing and has to be restored."""
        return name_or_id in self._graphs and (assistant is None or assistant.graph_id != name_or_id)

    def _runnable(self, assistant: Assistant | None) -> Assistant:
        if assistant is None:
            raise NotFound("Thread or assistant not found.")
        self._require_graph(assistant.graph_id)
        return assistant

    def _require_graph(self, graph_id: str) -> None:
        if graph_id in self._failed:
            raise NotFound(f"Graph '{graph_id}' did not load: {self._failed[graph_id]}", hint="correct the graph")
        if graph_id not in self._graphs:
            raise NotFound(f"Graph '{graph_id}' not found. Expected one of: {sorted(self._graphs)}")


def _create(
    tx: Tx,
    assistant_id: str,
    graph_id: str,
    wanted: Change,
    if_exists: IfExists,
    visible: Visible | None,
    *,
    owner: str,
) -> Assistant:
    quotas.require_storage(tx)
    made = make(assistant_id, graph_id, wanted, tx.now(), owner)
    documents.require(tx, **_documents(made))
    if assistants.insert(tx, made):
        return made
    present = assistants.lock(tx, assistant_id)
    if if_exists == "raise" or present is None or not shows(visible, present.metadata):
        raise AlreadyExists(f"Assistant {assistant_id} already exists")
    return present


def _record_contributor(tx: Tx, actor: str, before: Assistant, now: Assistant) -> None:
    """The author of a change that affects runs contributes to those runs."""
    if any(getattr(before, name) != getattr(now, name) for name in ("graph_id", "config", "context", "metadata")):
        contributors.add_to_assistant(tx, now.id, actor)


def _documents(named: Change | Assistant) -> dict[str, Any]:
    """The fields that a caller writes, for size limits."""
    return {name: getattr(named, name) for name in ("config", "context", "metadata", "description", "name")}


def _versions(tx: Tx, /, assistant_id: str, visible: Visible | None, **page: Any) -> list[AssistantVersion]:
    present = assistants.get(tx, assistant_id)
    return assistants.versions(tx, assistant_id, **page) if present and shows(visible, present.metadata) else []


def _delete_threads(
    tx: Tx,
    assistant_id: str,
    visible: Visible | None,
    theirs: Visible | None,
    caller: Principal,
    limit: Principal | None,
) -> tuple[int, list[str]]:
    """The number of deleted threads, and the ids of their runs that may still be executing."""
    _locked(tx, assistant_id, visible, limit)
    query = ThreadQuery(metadata={"assistant_id": assistant_id}, visible=theirs, limit=_THREADS_AT_ONCE)
    page = thread_search.search(tx, query, values=False)[0]
    running = [run.id for thread in page for run in runs.active(tx, thread.id)]
    for thread in page:
        require_removable(tx, caller, thread)
        thread_items.remove_thread(tx, thread.id, caller.actor)
    return len(page), running


def _delete(tx: Tx, assistant_id: str, visible: Visible | None, limit: Principal | None) -> None:
    _locked(tx, assistant_id, visible, limit)
    assistants.remove(tx, assistant_id)
    contributors.remove_those_of_assistant(tx, assistant_id)


def _locked(tx: Tx, assistant_id: str, visible: Visible | None, limit: Principal | None) -> Assistant:
    """Locks the assistant for a change. A `limit` restricts its principal to the assistants they own."""
    assistant = assistants.lock(tx, assistant_id)
    if assistant is None or not shows(visible, assistant.metadata):
        raise _unknown(assistant_id)
    if limit is not None and not assistant.changed_by(limit):
        raise _not_theirs(assistant)
    return assistant


def _not_theirs(assistant: Assistant) -> Forbidden:
    if assistant.is_graphs_own or assistant.owner is None:
        whose = f"the graph {assistant.graph_id!r}'s own" if assistant.is_graphs_own else "without an owner"
        message = f"Assistant {assistant.id} is {whose}: only an administrator may change it"
    else:
        message = (
            f"Assistant {assistant.id} belongs to {assistant.owner}: only its owner or an administrator may change it"
        )
    hint = (
        "create another assistant for the same graph, or let a person or service with the scope admin change this one"
    )
    return Forbidden(message, hint=hint)


def _uuid(text: str) -> str:
    uuid = as_uuid(text)
    if uuid is None:
        raise Invalid("Invalid assistant ID: must be a UUID")
    return uuid


def _unknown(assistant_id: str) -> NotFound:
    return NotFound(f"Assistant {assistant_id} not found")
