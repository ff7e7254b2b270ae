"""Imports threads, assistants and store items from a LangGraph server or a checkpointer.

A thread is imported with its whole history in one transaction, and a second import skips it. An ended run is recorded
at the thread's latest state, so that the questions of a waiting thread appear in the inbox and a decision has a run to
continue. No graph is executed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from assent.errors import AssentError, BadRequest, Invalid, NotFound, Unauthenticated, Unavailable
from assent.identity.keys import program_named
from assent.identity.model.access import Kind, Principal, Scope
from assent.kernel import events
from assent.kernel.canonical import NotJson
from assent.kernel.ids import new_id
from assent.kernel.quotas import documents, quotas
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.review import thread_items
from assent.review.threads.secrets import require_all_unmasked
from assent.runs.assistants.own import OwnAssistants
from assent.runs.engine import endings
from assent.runs.engine.histories import Edit, Histories
from assent.runs.project.project import Project
from assent.runs.sources.source import ForeignAssistant, ForeignThread, Past, Source
from assent.runs.start import kwargs_of
from assent.threads.model.assistants import Assistant, Change, make, own_id
from assent.threads.model.configs import clean_configurable, clean_metadata, clean_run_metadata, merge
from assent.threads.model.identities import stand_in
from assent.threads.model.imports import Fate, Report, Sort, thread_id_for
from assent.threads.model.runs import RunStatus, Strategy
from assent.threads.model.threads import Thread, Visibility
from assent.threads.rows import assistants, runs, threads
from assent.threads.rows.memory import items as memory
from assent.threads.rows.memory.items import Put
from assent.threads.rows.state.checkpoints import Attempt
from assent.threads.run_requests import RunRequest

Json = dict[str, Any]
OnProgress = Callable[[int, int], None]
"""Called with the number of processed threads and the total."""

_FOREIGN_ID = "imported_thread_id"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Options of an import. `graph_id` is the graph of threads that name none; `renamed` maps the source's graph names
    to those here. Threads belong to the agent `owner`; without one, every agent of the tenant may use them."""

    graph_id: str | None = None
    renamed: Mapping[str, str] = field(default_factory=dict)
    owner: str | None = None
    dry_run: bool = False


class Importing:
    def __init__(self, store: Store, project: Project, visibility: Visibility) -> None:
        """`visibility`: of threads that have an owner."""
        self.store = store
        self.project = project
        self.visibility = visibility
        self.histories = Histories(store, project)
        self.own_assistants = OwnAssistants(store, project.graphs)

    async def run(self, caller: Principal, source: Source, wanted: Wanted, on_progress: OnProgress) -> Report:
        caller.require(Scope.ADMIN)
        for graph_id in (wanted.graph_id, *wanted.renamed.values()):
            if graph_id is not None:
                self.project.spec(graph_id)
        return await _Import(self, caller, source, wanted, await self._owner(caller, wanted)).run(on_progress)

    async def _owner(self, caller: Principal, wanted: Wanted) -> str | None:
        if wanted.owner is None:
            return None
        owner_id, _ = await self.store.read(caller.tenant, program_named, Kind.AGENT, wanted.owner)
        return f"{Kind.AGENT}:{owner_id}"


class _Import:
    """One import under way."""

    def __init__(
        self, importing: Importing, caller: Principal, source: Source, wanted: Wanted, owner: str | None
    ) -> None:
        self._store, self._project = importing.store, importing.project
        self._histories, self._own = importing.histories, importing.own_assistants
        self._caller, self._source, self._wanted, self._owner = caller, source, wanted, owner
        self._visibility = importing.visibility if owner else Visibility.SHARED
        self._report = Report(source.name, wanted.dry_run)
        self._graphs: dict[str, str] = {}

    async def run(self, on_progress: OnProgress) -> Report:
        if not self._wanted.dry_run:
            await self._own.ensure(self._caller.tenant)
        await self._all(Sort.ASSISTANT, self._assistants())
        await self._all(Sort.MEMORY, self._memories())
        total, done = await self._source.thread_count(), 0
        async for thread in self._source.threads():
            await self._trying(Sort.THREAD, thread.id, self._thread(thread))
            done += 1
            on_progress(done, max(total, done))
        return self._report

    async def _all(self, sort: Sort, importing: Awaitable[None]) -> None:
        """Reports a source that does not support this sort of object, and continues."""
        try:
            await importing
        except (Unavailable, Unauthenticated):
            raise
        except AssentError as error:
            self._report.refuse(sort, "all", error.message, error.hint)

    async def _assistants(self) -> None:
        async for assistant in self._source.assistants():
            self._graphs[assistant.id] = assistant.graph_id
            await self._trying(Sort.ASSISTANT, assistant.id, self._assistant(assistant))

    async def _memories(self) -> None:
        async for put in self._source.memories():
            await self._trying(Sort.MEMORY, "/".join((*put.namespace, put.key)), self._memory(put))

    async def _trying(self, sort: Sort, id: str, taking: Awaitable[Fate]) -> None:
        """Reports a failed object and continues. Only an unreachable or unauthenticated source or store ends the
        import."""
        try:
            self._report.count(sort, await taking)
        except (Unavailable, Unauthenticated):
            raise
        except AssentError as error:
            self._report.refuse(sort, id, error.message, error.hint)
        except (ValueError, TypeError, NotJson) as error:
            self._report.refuse(sort, id, f"cannot be stored: {error}")

    async def _write(self, function: Callable[..., Fate], *args: Any) -> Fate:
        if self._wanted.dry_run:
            return Fate.TAKEN
        return await self._store.write(self._caller.tenant, function, *args)

    async def _assistant(self, assistant: ForeignAssistant) -> Fate:
        graph_id = self._served(assistant.graph_id)
        if await self._store.read(self._caller.tenant, _has_assistant, assistant, self._own.ids.values()):
            return Fate.PRESENT
        return await self._write(_take_assistant, assistant, graph_id, self._owner)

    async def _memory(self, put: Put) -> Fate:
        if not isinstance(put.value, Mapping):
            raise Invalid("the value is not an object")
        if await self._store.read(self._caller.tenant, memory.get, put.namespace, put.key) is not None:
            return Fate.PRESENT
        return await self._write(_take_memory, put)

    async def _thread(self, foreign: ForeignThread) -> Fate:
        thread_id = thread_id_for(foreign.id)
        if await self._store.read(self._caller.tenant, threads.get, thread_id) is not None:
            return Fate.PRESENT
        if foreign.busy:
            raise BadRequest("a run is in progress on this thread", hint="repeat the import when the run has ended")
        graph_id = self._graph_of(foreign)
        if graph_id is None and foreign.began:
            raise Invalid("the graph of this thread is unknown", hint="name the graph: --graph NAME")
        if graph_id is None:
            return await self._write(self._insert, foreign, thread_id, {})
        read = partial(self._source.past, foreign)
        edit, past = await self._histories.adopt(self._caller.tenant, graph_id, thread_id, read)
        if not past.checkpoints:
            return await self._write(
                self._insert, foreign, thread_id, {"graph_id": graph_id} if foreign.graph_id else {}
            )
        await require_all_unmasked(values=edit.outcome.values, interrupts=edit.outcome.interrupts)
        if flaw := thread_items.flaw(self._store.limits, edit.outcome.pending):
            raise Invalid(f"its question has {flaw}")
        fate = await self._write(self._take, foreign, thread_id, graph_id, edit, past)
        if fate is Fate.TAKEN:
            self._remark(foreign, thread_id, edit, past)
        return fate

    def _remark(self, foreign: ForeignThread, thread_id: str, edit: Edit, past: Past) -> None:
        if thread_id != foreign.id:
            self._report.note(foreign.id, f"its id is not a UUID: imported as thread {thread_id}")
        for note in past.notes:
            self._report.note(foreign.id, note)
        if edit.outcome.status is RunStatus.SUCCESS and (edit.outcome.pending or edit.outcome.next):
            self._report.waiting += 1

    def _graph_of(self, foreign: ForeignThread) -> str | None:
        """The graph of the thread; None if unknown."""
        assistant = foreign.metadata.get("assistant_id")
        named = foreign.graph_id or self._graphs.get(str(assistant)) or self._wanted.graph_id
        return None if named is None else self._served(named)

    def _served(self, named: str) -> str:
        graph_id = self._wanted.renamed.get(named, named)
        try:
            return self._project.spec(graph_id).name
        except NotFound as error:
            hint = f"add it to langgraph.json, or name the graph that replaces it: --graph {named}=NAME"
            raise NotFound(error.message, hint=hint) from error

    def _insert(self, tx: Tx, foreign: ForeignThread, thread_id: str, stamp: Json) -> Fate:
        origin = {} if thread_id == foreign.id else {_FOREIGN_ID: foreign.id}
        metadata = {**clean_metadata(foreign.metadata), **origin, **stamp}
        documents.require(tx, metadata=metadata)
        facts: Json = {"owner": self._owner, "visibility": self._visibility, "created_at": foreign.created_at}
        if not threads.insert(tx, thread_id, metadata, **facts):
            return Fate.PRESENT
        events.append(tx, self._caller, "thread.imported", f"thread:{thread_id}", {"source": self._source.name})
        return Fate.TAKEN

    def _take(self, tx: Tx, foreign: ForeignThread, thread_id: str, graph_id: str, edit: Edit, past: Past) -> Fate:
        quotas.require_storage(tx)
        assistant = self._assistant_of(tx, foreign, graph_id)
        stamp = {"graph_id": graph_id, "assistant_id": assistant.id}
        if self._insert(tx, foreign, thread_id, stamp) is Fate.PRESENT:
            return Fate.PRESENT
        thread = threads.get(tx, thread_id)
        assert thread is not None
        runs.insert_pending(tx, run_id := new_id(), thread_id, **self._run(assistant, thread, past))
        run = runs.begin(tx, run_id)
        assert run is not None
        edit.store(tx)
        gated = self._project.is_gated(graph_id)
        endings.finish(tx, run, Attempt(run.id, run.attempt), edit.outcome, shown=True, gated=gated)
        return Fate.TAKEN

    def _assistant_of(self, tx: Tx, foreign: ForeignThread, graph_id: str) -> Assistant:
        """The assistant that ran on the thread, if it is imported and of that graph, else the graph's own."""
        named = assistants.get(tx, str(foreign.metadata.get("assistant_id")))
        return named if named is not None and named.graph_id == graph_id else self._own.write(tx, graph_id)

    def _run(self, assistant: Assistant, thread: Thread, past: Past) -> Json:
        """The columns of the run that ends at the thread's latest state, with the settings of the source's last run."""
        actor, asked = self._owner or self._caller.actor, past.asked
        given = asked.get("config") or {}
        configurable = clean_configurable({**(asked.get("context") or {}), **(given.get("configurable") or {})})
        config, context = merge(
            {**given, "configurable": configurable},
            None,
            {"config": assistant.config, "context": assistant.context},
        )
        config = {**config, "configurable": {**config["configurable"], **stand_in(actor)}, "metadata": {}}
        stops: Json = {name: asked.get(name) for name in ("interrupt_before", "interrupt_after")}
        stamp = {"graph_id": thread.graph_id, "assistant_id": assistant.id}
        return {
            "assistant_id": assistant.id,
            "graph_id": thread.graph_id,
            "actor": actor,
            "answers": False,
            "wake_at": None,
            "temporary": False,
            "multitask_strategy": Strategy.REJECT,
            "metadata": {**clean_run_metadata({**assistant.metadata, **thread.metadata}), **stamp},
            "kwargs": kwargs_of(RunRequest(assistant.id, **stops), config, context),
            "webhook": None,
        }


def _has_assistant(tx: Tx, assistant: ForeignAssistant, own: Collection[str]) -> bool:
    """Whether the assistant is here. The first version of a graph's own assistant does not count if the source has
    changed it. A dry run has not written the own assistants."""
    newest = assistants.newest_version(tx, assistant.id) or int(assistant.id in own)
    return newest > 1 or (newest == 1 and not _is_changed_own(assistant))


def _is_changed_own(assistant: ForeignAssistant) -> bool:
    return assistant.id == own_id(assistant.graph_id) and len(assistant.versions) > 1


def _take_assistant(tx: Tx, assistant: ForeignAssistant, graph_id: str, owner: str | None) -> Fate:
    quotas.require_storage(tx)
    made = [_version(tx, assistant, content, graph_id, owner) for content in assistant.versions]
    if assistants.lock(tx, assistant.id) is None:
        assistants.insert(tx, made[0])
    for version in made[1:]:
        assistants.add_version(tx, version)
    assistants.put_in_force(tx, next(version for version in made if version.version == assistant.version))
    return Fate.TAKEN


def _version(tx: Tx, assistant: ForeignAssistant, content: Json, graph_id: str, owner: str | None) -> Assistant:
    """Config and context mirror each other, so both are merged."""
    config = {name: value for name, value in (content.get("config") or {}).items() if name != "configurable"}
    context = {**((content.get("config") or {}).get("configurable") or {}), **(content.get("context") or {})}
    fields = {name: content.get(name) for name in ("name", "description", "metadata")}
    made = make(assistant.id, graph_id, Change(config=config, context=context, **fields), tx.now(), owner)
    documents.require(tx, config=made.config, context=made.context, metadata=made.metadata)
    return replace(made, version=content["version"])


def _take_memory(tx: Tx, put: Put) -> Fate:
    memory.put(tx, [put])
    return Fate.TAKEN
