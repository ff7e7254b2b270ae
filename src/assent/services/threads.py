"""Threads: made, found, changed, copied, removed. What a thread's state is, and was, is in `thread_states`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from assent.domain.access import Principal, Scope
from assent.domain.configs import clean_metadata
from assent.domain.ids import new_id
from assent.domain.runs import Cancel, Run, RunStatus
from assent.domain.threads import Lifetime, Query, Thinning, Thread, ThreadStatus
from assent.domain.visibility import Visible, shows
from assent.engine.histories import Edit, Histories, Update
from assent.engine.project import Project
from assent.errors import AlreadyExists, AssentError, BadRequest, Conflict, ThreadWaits
from assent.ports import Authorizer, Store
from assent.services.answering import require_settled
from assent.services.authorization import on_thread
from assent.services.refusals import noted
from assent.services.thread_access import ThreadAccess
from assent.services.thread_states import OnState, ThreadStates, found, put_state, refresh, waiting
from assent.store import asking, frames, runs, thread_search, thread_storage, threads
from assent.store.containment import check_filter
from assent.store.thread_storage import Size
from assent.store.transaction import Tx

IfExists = Literal["raise", "do_nothing"]
OnRemoval = Callable[[str, Sequence[Run]], Awaitable[None]]

READ = (Scope.RUNS_WRITE, Scope.ITEMS_READ)
_EXPIRED_AT_ONCE = 100


class Threads:
    def __init__(
        self,
        store: Store,
        project: Project,
        *,
        on_state: OnState | None = None,
        on_removal: OnRemoval | None = None,
        authorizer: Authorizer | None = None,
    ) -> None:
        """`on_state` is told of every state that was edited, after it was stored; `on_removal` of runs that were not
        at their end when their thread was removed."""
        self._store = store
        self._on_removal = on_removal
        self._may = ThreadAccess(authorizer)
        self._histories = Histories(store, project)
        self.states = ThreadStates(store, self._histories, on_state, self._may)

    async def create(
        self,
        caller: Principal,
        *,
        thread_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        if_exists: IfExists = "raise",
        lifetime: Lifetime | None = None,
        supersteps: Sequence[Sequence[Update]] = (),
    ) -> Thread:
        """A new thread, with a past where `supersteps` tell one: then its metadata names the graph."""
        caller.require(Scope.RUNS_WRITE)
        known = thread_id or new_id()
        visible, wanted = await self._may.create(caller, known, metadata or {}, if_exists=if_exists)
        kept = clean_metadata(wanted)
        past = await self._past(caller.tenant, known, kept, supersteps) if supersteps else None
        return await self._store.write(caller.tenant, _create, known, kept, if_exists, lifetime, past, visible)

    async def get(self, caller: Principal, thread_id: str) -> Thread:
        caller.require_any(*READ)
        visible = await self._may.read(caller, thread_id)
        thread = await self._store.read(caller.tenant, on_thread(visible, found), thread_id)
        await self._note_shown(caller.tenant, [thread])
        return thread

    async def search(
        self, caller: Principal, query: Query, *, values: bool = True, interrupts: bool = True
    ) -> tuple[list[Thread], bool]:
        """One page, and whether there is more. Says what of a thread will be shown: states can be large, and
        questions that are shown can be answered by position."""
        caller.require_any(*READ)
        query = await self._may.search(caller, query)
        _check(query)
        page, more = await self._store.read(caller.tenant, thread_search.search, query, values=values)
        if interrupts:
            await self._note_shown(caller.tenant, page)
        return page, more

    async def count(self, caller: Principal, query: Query) -> int:
        caller.require_any(*READ)
        query = await self._may.search(caller, query)
        _check(query)
        return await self._store.read(caller.tenant, thread_search.count, query)

    async def change(
        self,
        caller: Principal,
        thread_id: str,
        *,
        metadata: Mapping[str, Any] | None = None,
        lifetime: Lifetime | None = None,
        shown: bool = True,
    ) -> Thread:
        """Metadata is merged over what is there, key by key. `shown` says whether the caller gets to see the thread."""
        caller.require(Scope.RUNS_WRITE)
        visible, wanted = await self._may.update(caller, thread_id, metadata)
        change = on_thread(visible, _change)
        thread = await self._store.write(caller.tenant, change, thread_id, clean_metadata(wanted), lifetime)
        await self._note_shown(caller.tenant, [thread] if shown else [])
        return thread

    async def copy(self, caller: Principal, thread_id: str) -> Thread:
        """A thread of its own that stands where this one does: same state, same open questions."""
        caller.require(Scope.RUNS_WRITE)
        new = new_id()
        visible = await self._may.read(caller, thread_id)
        _, more = await self._may.create(caller, new, {})
        copy = on_thread(visible, _copy, missing=_nothing_to_copy)
        copied, running = await self._store.write(caller.tenant, copy, thread_id, new, clean_metadata(more))
        if not running or copied.graph_id is None:
            return copied
        outcome = await self.states.outcome(caller.tenant, copied.graph_id, copied.id)
        return await self._store.write(caller.tenant, refresh, copied.id, outcome)

    async def delete(self, caller: Principal, thread_id: str) -> None:
        """With its runs and checkpoints. What runs on it is stopped first."""
        caller.require(Scope.RUNS_WRITE)
        await self._remove(caller, thread_id, await self._may.delete(caller, thread_id))

    async def prune(self, caller: Principal, thread_ids: Iterable[str], strategy: Thinning) -> int:
        """Removes threads, or what they went through before their latest state. Says how many; unknown ones are
        passed over, and so are those that run where their past is still needed, or that the caller may not remove
        because a call of theirs is in doubt."""
        caller.require(Scope.RUNS_WRITE)
        asked = list(dict.fromkeys(thread_ids))
        visible = await self._may.prune(caller, asked)
        known = await self._store.read(caller.tenant, _known, asked, visible)
        if strategy is Thinning.KEEP_LATEST:
            return sum([await self._store.write(caller.tenant, _thin_out, thread_id) for thread_id in known])
        return sum([await self._remove_if_settled(caller, thread_id, visible) for thread_id in known])

    async def storage(self, caller: Principal, thread_id: str) -> dict[str, Size]:
        caller.require_any(*READ)
        visible = await self._may.read(caller, thread_id)
        return await self._store.read(caller.tenant, on_thread(visible, _storage), thread_id)

    async def delete_expired(self) -> int:
        """Removes the threads of all tenants whose time is over, or their past. For the system itself."""
        done = 0
        while due := await self._store.read(None, threads.expired, _EXPIRED_AT_ONCE):
            done += sum([await self._store.write(tenant, _expire, thread_id) for tenant, thread_id in due])
        return done

    async def _past(
        self, tenant: str, thread_id: str, metadata: Mapping[str, Any], supersteps: Sequence[Sequence[Update]]
    ) -> Edit:
        graph_id = metadata.get("graph_id")
        if not isinstance(graph_id, str):
            raise BadRequest("supersteps need a graph: name it as metadata.graph_id")
        return await self._histories.edit(tenant, graph_id, thread_id, supersteps, metadata={"graph_id": graph_id})

    async def _remove_if_settled(self, caller: Principal, thread_id: str, visible: Visible | None) -> bool:
        try:
            await self._remove(caller, thread_id, visible)
        except ThreadWaits:
            return False
        return True

    async def _remove(self, caller: Principal, thread_id: str, visible: Visible | None) -> None:
        tenant = caller.tenant
        async with noted(self._store, caller):
            running, gone = await self._store.write(tenant, on_thread(visible, _remove_or_stop), thread_id, caller)
        for run in running:
            if self._store.queue is not None:
                await self._store.queue.cancel(tenant, run.id)
        if running:
            gone = await self._store.write(tenant, _remove_with_runs, thread_id)
        if self._on_removal is not None:
            await self._on_removal(tenant, gone)

    async def _note_shown(self, tenant: str, shown: Iterable[Thread]) -> None:
        unseen = [thread for thread in shown if thread.waits and not thread.shown]
        if unseen:
            await self._store.write(tenant, _mark_shown, unseen)


def _check(query: Query) -> None:
    check_filter(query.metadata)
    check_filter(query.values)


def _create(
    tx: Tx,
    thread_id: str,
    metadata: dict[str, Any],
    if_exists: IfExists,
    lifetime: Lifetime | None,
    past: Edit | None,
    visible: Visible | None,
) -> Thread:
    if not threads.insert(tx, thread_id, metadata):
        if if_exists == "raise" or not shows(visible, found(tx, thread_id).metadata):
            raise AlreadyExists(f"Thread with ID {thread_id} already exists")
        return _shown(tx, found(tx, thread_id))
    if lifetime is not None:
        threads.set_lifetime(tx, thread_id, lifetime)
    if past is not None:
        past.store(tx)
        put_state(tx, found(tx, thread_id), past.outcome)
    return _shown(tx, found(tx, thread_id))


def _change(tx: Tx, thread_id: str, metadata: dict[str, Any], lifetime: Lifetime | None) -> Thread:
    thread = found(tx, thread_id, lock=True)
    threads.set_metadata(tx, thread_id, {**thread.metadata, **metadata})
    if lifetime is not None:
        threads.set_lifetime(tx, thread_id, lifetime)
    return found(tx, thread_id)


def _copy(tx: Tx, thread_id: str, copy_id: str, more: dict[str, Any]) -> tuple[Thread, bool]:
    """The copy, and whether the original runs: then its row lags behind what was copied."""
    source = threads.lock(tx, thread_id)
    if source is None:
        raise _nothing_to_copy(thread_id)
    threads.insert(tx, copy_id, {**source.metadata, **more}, config=source.config)
    thread_storage.copy_checkpoints(tx, thread_id, copy_id)
    if source.ttl_minutes is not None:
        threads.set_lifetime(tx, copy_id, Lifetime(source.ttl_minutes, Thinning(source.ttl_strategy or "delete")))
    running = source.status is ThreadStatus.BUSY
    if source.ran and not running:
        threads.set_state(
            tx,
            copy_id,
            status=source.status,
            values=source.values,
            interrupts=source.interrupts or {},
            error=source.error,
            next=source.next or [],
        )
        last = next(iter(runs.page(tx, thread_id, status=None, limit=1, offset=0)), None)
        asking.follow(tx, waiting(found(tx, copy_id), source.pending, source.values, last))
    return _shown(tx, found(tx, copy_id)), running


def _nothing_to_copy(thread_id: str) -> AssentError:
    return Conflict("Conflict", hint=f"there is no thread {thread_id}")


def _remove_or_stop(tx: Tx, thread_id: str, caller: Principal) -> tuple[list[Run], list[Run]]:
    """The runs that have to be stopped before the thread can go; none, and it is gone, with the other runs."""
    require_settled(tx, caller, found(tx, thread_id, lock=True))
    active = runs.active(tx, thread_id)
    running = [run for run in active if run.status is RunStatus.RUNNING]
    if not running:
        return [], _remove_with_runs(tx, thread_id)
    for run in running:
        runs.cancel(tx, run, Cancel.INTERRUPT)
    return running, []


def _remove_with_runs(tx: Tx, thread_id: str) -> list[Run]:
    """The runs that had not ended. Nobody will end their streams any more."""
    active = runs.active(tx, thread_id)
    for run in active:
        frames.close(tx, run)
    threads.remove(tx, thread_id)
    return active


def _known(tx: Tx, thread_ids: Sequence[str], visible: Visible | None) -> list[str]:
    there = [thread for thread_id in thread_ids if (thread := threads.get(tx, thread_id)) is not None]
    return [thread.id for thread in there if shows(visible, thread.metadata)]


def _thin_out(tx: Tx, thread_id: str) -> bool:
    """A run that is taken back needs the checkpoints from before it."""
    gone = threads.lock(tx, thread_id) is None
    return not gone and not runs.active(tx, thread_id) and thread_storage.keep_latest(tx, thread_id)


def _storage(tx: Tx, thread_id: str) -> dict[str, Size]:
    found(tx, thread_id)
    return thread_storage.sizes(tx, thread_id)


def _expire(tx: Tx, thread_id: str) -> bool:
    """It may have been given more time, or been set running, since it was found."""
    thread = threads.lock(tx, thread_id)
    if thread is None or thread.status is ThreadStatus.BUSY:
        return False
    if thread.ttl_minutes is None or thread.expires_at is None or thread.expires_at > tx.now():
        return False
    if thread.ttl_strategy == Thinning.KEEP_LATEST:
        threads.set_lifetime(tx, thread_id, Lifetime(thread.ttl_minutes, Thinning.KEEP_LATEST))
        return _thin_out(tx, thread_id)
    return threads.remove(tx, thread_id)


def _mark_shown(tx: Tx, shown: Sequence[Thread]) -> None:
    for thread in shown:
        threads.mark_shown(tx, thread.id, as_of=thread.state_updated_at)


def _shown(tx: Tx, thread: Thread) -> Thread:
    """Its questions are about to be seen."""
    if thread.waits and not thread.shown:
        threads.mark_shown(tx, thread.id)
    return thread
