"""Creates, searches, changes, copies and deletes threads. Their states are in `states`."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from assent.audit.refusals import noted
from assent.errors import AlreadyExists, BadRequest, Conflict, Forbidden, Invalid, UnreadableState
from assent.identity.authorization import Authorizer
from assent.identity.model.access import Principal, Scope
from assent.identity.model.visibility import Visible
from assent.kernel import events
from assent.kernel.ids import new_id
from assent.kernel.quotas import documents, quotas
from assent.kernel.store.containment import check_filter
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.review.model.secrets import Cover
from assent.review.threads import chosen_ids, open_items
from assent.review.threads.answers import require_withdrawal
from assent.review.threads.secrets import Secrets, require_all_unmasked
from assent.runs.engine.histories import Edit, Histories, Update
from assent.runs.project.project import Project
from assent.runs.storable import require_storable
from assent.runs.threads import copying, removal
from assent.runs.threads.copying import Past
from assent.runs.threads.states import OnState, ThreadStates, existing_thread, put_state, shown_thread
from assent.threads.access import ThreadAccess
from assent.threads.model.configs import clean_metadata
from assent.threads.model.runs import Run
from assent.threads.model.threads import (
    Lifetime,
    Query,
    Thinning,
    Thread,
    ThreadSweep,
    Visibility,
    contained,
)
from assent.threads.rows import contributors, thread_search, threads
from assent.threads.rows.state import thread_storage
from assent.threads.rows.state.thread_storage import Size
from assent.threads.visible_threads import on_thread

IfExists = Literal["raise", "do_nothing"]
OnRemoval = Callable[[str, Sequence[Run]], Awaitable[None]]

log = logging.getLogger(__name__)

READ = (Scope.RUNS_WRITE, Scope.ITEMS_READ)
_EXPIRED_AT_ONCE = 100
_LOOKED_AT_ONCE = 20


class Threads:
    def __init__(
        self,
        store: Store,
        project: Project,
        *,
        on_state: OnState | None = None,
        on_removal: OnRemoval | None = None,
        authorizer: Authorizer | None = None,
        visibility: Visibility = Visibility.SHARED,
        sweep: ThreadSweep | None = None,
    ) -> None:
        """`on_state` is called with every edited state after it was stored; `on_removal` with the active runs of a
        deleted thread. `visibility` is the default of new threads."""
        self._visibility = visibility
        self.sweep = sweep or ThreadSweep()
        self._store = store
        self._on_removal = on_removal
        self._may = ThreadAccess(authorizer)
        self._is_gated = project.is_gated
        self._histories = Histories(store, project)
        self._secrets = Secrets(store)
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
        visibility: Visibility | None = None,
    ) -> Thread:
        """Creates a thread, with the history in `supersteps`, which requires a graph in its metadata."""
        caller.require(Scope.RUNS_WRITE)
        written = _written(supersteps)
        await require_all_unmasked(**written)
        new_thread_id = thread_id or new_id()
        visible, wanted = await self._may.create(caller, new_thread_id, metadata or {}, if_exists=if_exists)
        cleaned = clean_metadata(wanted)
        await documents.require_given(self._store.limits, metadata=cleaned)
        await require_storable(**written)
        past = await self._past(caller.tenant, new_thread_id, cleaned, supersteps) if supersteps else None
        facts: dict[str, Any] = {
            "lifetime": lifetime or self.sweep.lifetime,
            "past": past,
            "visibility": visibility or self._visibility,
            "chosen": thread_id is not None,
        }
        facts["labelled"] = bool((metadata or {}).keys() - {"graph_id", "assistant_id"})
        made, fresh = await self._store.write(
            caller.tenant, _create, caller, new_thread_id, cleaned, if_exists, visible, **facts
        )
        return made if fresh else await self._seen(caller, made)

    async def get(self, caller: Principal, thread_id: str, *, reveal: bool = True) -> Thread:
        """The thread as the caller sees it. Without `reveal`, secrets are masked for every caller."""
        thread = await self._read(caller, thread_id, values=True)
        await self._note_shown(caller.tenant, [thread])
        return await self._seen(caller, thread, reveal=reveal)

    async def find(self, caller: Principal, thread_id: str) -> Thread:
        """The thread without its state, for use cases that do not show it: its questions do not count as shown."""
        return await self._read(caller, thread_id, values=False)

    async def search(
        self, caller: Principal, query: Query, *, values: bool = True, interrupts: bool = True, reveal: bool = True
    ) -> tuple[list[Thread], bool]:
        """One page, and whether there is more. `values`: reads the states, which can be large. `interrupts`: marks the
        questions as shown, so that they can be answered by position."""
        caller.require_any(*READ)
        query = await self._may.search(caller, query)
        _check(query)
        if _may_hide(query):
            await self._store.read(caller.tenant, thread_search.require_page, query, values=values)
            matching = await self._matching(caller, query, most=query.offset + query.limit + 1)
            page, more = matching[query.offset :][: query.limit], len(matching) > query.offset + query.limit
        else:
            page, more = await self._store.read(caller.tenant, thread_search.search_for_answer, query, values=values)
        if interrupts:
            await self._note_shown(caller.tenant, page)
        return [await self._seen(caller, thread, reveal=reveal) for thread in page], more

    async def count(self, caller: Principal, query: Query) -> int:
        caller.require_any(*READ)
        query = await self._may.search(caller, query)
        _check(query)
        if _may_hide(query):
            return len(await self._matching(caller, query))
        return await self._store.read(caller.tenant, thread_search.count, query)

    async def change(
        self,
        caller: Principal,
        thread_id: str,
        *,
        metadata: Mapping[str, Any] | None = None,
        lifetime: Lifetime | None = None,
        visibility: Visibility | None = None,
        shown: bool = True,
    ) -> Thread:
        """Merges the metadata key by key. `shown`: whether the caller gets the thread in return."""
        caller.require(Scope.RUNS_WRITE)
        visible, wanted = await self._may.update(caller, thread_id, metadata)
        change = on_thread(visible, _change)
        cleaned = clean_metadata(wanted)
        await documents.require_given(self._store.limits, metadata=cleaned)
        async with self._secrets.refusals(caller, thread_id), noted(self._store, caller):
            thread = await self._store.write(caller.tenant, change, thread_id, caller, cleaned, lifetime, visibility)
        await self._note_shown(caller.tenant, [thread] if shown else [])
        return await self._seen(caller, thread) if shown else thread

    async def copy(self, caller: Principal, thread_id: str) -> Thread:
        """Copies the thread with its state, history and open questions. The caller owns the copy, and so must be able
        to see all secrets of the thread, past ones included."""
        caller.require(Scope.RUNS_WRITE)
        new = new_id()
        visible = await self._may.read(caller, thread_id)
        past = await self._require_open(caller, thread_id, visible)
        _, more = await self._may.create(caller, new, {})
        copy = on_thread(visible, copying.copy, missing=copying.nothing_to_copy)
        copied, running, asker = await self._store.write(
            caller.tenant, copy, thread_id, caller, new, clean_metadata(more), self._visibility, self._is_gated, past
        )
        if not running or copied.graph_id is None:
            return copied
        outcome = await self.states.outcome(caller.tenant, copied.graph_id, copied.id)
        gated = self._is_gated(copied.graph_id)
        facts: dict[str, Any] = {"actor": caller.actor, "asker": asker, "gated": gated}
        return await self._store.write(caller.tenant, copying.refresh, thread_id, copied.id, outcome, **facts)

    async def delete(self, caller: Principal, thread_id: str) -> None:
        """Deletes the thread with its runs and checkpoints, after its active runs are cancelled."""
        caller.require(Scope.RUNS_WRITE)
        await self._remove(caller, thread_id, await self._may.delete(caller, thread_id))

    async def prune(self, caller: Principal, thread_ids: Iterable[str], strategy: Thinning) -> int:
        """Deletes threads, or their history before the latest state. Returns the count. Skips unknown threads, active
        threads whose history is needed, and threads that the caller may not delete because of a call in doubt or an
        undelivered decision."""
        caller.require(Scope.RUNS_WRITE)
        unique_ids = list(dict.fromkeys(thread_ids))
        visible = await self._may.prune(caller, unique_ids)
        existing = await self._store.read(caller.tenant, removal.visible_ids, unique_ids, visible)
        if strategy is Thinning.KEEP_LATEST:
            return await self._thin_out(caller.tenant, existing)
        return sum([await self._remove_if_settled(caller, thread_id, visible) for thread_id in existing])

    async def _thin_out(self, tenant: str, thread_ids: Sequence[str]) -> int:
        """Threads with a damaged state keep their history, and are named when the others are done."""
        done, damaged = 0, list[str]()
        for thread_id in thread_ids:
            try:
                done += await self._store.write(tenant, removal.thin_out, thread_id)
            except UnreadableState:
                damaged.append(thread_id)
        if damaged:
            raise UnreadableState(f"the state is damaged, and the history kept, of {', '.join(damaged)}")
        return done

    async def storage(self, caller: Principal, thread_id: str) -> dict[str, Size]:
        caller.require_any(*READ)
        visible = await self._may.read(caller, thread_id)
        return await self._store.read(caller.tenant, on_thread(visible, _storage), thread_id)

    async def gated_questions(self, caller: Principal, thread_id: str) -> dict[str, str]:
        """Interrupt id → item id, of the questions that only a person may answer."""
        caller.require_any(*READ)
        visible = await self._may.read(caller, thread_id)
        return await self._store.read(caller.tenant, on_thread(visible, open_items.gated_questions), thread_id)

    async def delete_expired(self) -> int:
        """Deletes the expired threads of all tenants, or their history, up to the limit of a sweep. Called by the
        system."""
        done, seen, limit = 0, 0, self.sweep.limit
        while limit is None or seen < limit:
            at_once = min(_EXPIRED_AT_ONCE, limit - seen) if limit is not None else _EXPIRED_AT_ONCE
            due = await self._store.read(None, threads.expired, at_once)
            if not due:
                break
            seen += len(due)
            done += sum([await self._expire(tenant, thread_id) for tenant, thread_id in due])
        return done

    async def _expire(self, tenant: str, thread_id: str) -> bool:
        try:
            return await self._store.write(tenant, removal.expire, thread_id)
        except UnreadableState as error:  # else the others would wait for this thread for ever
            log.warning("delete history failed", extra={"thread_id": thread_id, "reason": str(error)})
            await self._store.write(tenant, removal.renew, thread_id)
            return False

    async def _past(
        self, tenant: str, thread_id: str, metadata: Mapping[str, Any], supersteps: Sequence[Sequence[Update]]
    ) -> Edit:
        graph_id = metadata.get("graph_id")
        if not isinstance(graph_id, str):
            raise BadRequest("supersteps need a graph: set metadata.graph_id")
        return await self._histories.edit(tenant, graph_id, thread_id, supersteps, metadata={"graph_id": graph_id})

    async def _remove_if_settled(self, caller: Principal, thread_id: str, visible: Visible | None) -> bool:
        try:
            await self._remove(caller, thread_id, visible)
        except (Forbidden, Conflict):
            return False
        return True

    async def _read(self, caller: Principal, thread_id: str, *, values: bool) -> Thread:
        caller.require_any(*READ)
        visible = await self._may.read(caller, thread_id)
        return await self._store.read(caller.tenant, on_thread(visible, existing_thread), thread_id, values=values)

    async def _seen(self, caller: Principal, thread: Thread, *, reveal: bool = True) -> Thread:
        return await (await self._secrets.view(caller, thread, reveal=reveal)).thread()

    async def _matching(self, caller: Principal, query: Query, most: int | None = None) -> list[Thread]:
        """The threads that also match as masked for the caller: a filter must not reveal masked values."""
        matching: list[Thread] = []
        step = replace(query, offset=0, limit=_LOOKED_AT_ONCE)
        while most is None or len(matching) < most:
            page, more = await self._store.read(caller.tenant, thread_search.search, step)
            for thread in page:
                view = await self._secrets.view(caller, thread)
                if not view.masked or _contains(await view.thread(), query):
                    matching.append(thread)
            if not more:
                break
            step = replace(step, offset=step.offset + _LOOKED_AT_ONCE)
        return matching

    async def _require_open(self, caller: Principal, thread_id: str, visible: Visible | None) -> Past | None:
        """Refuses a copy to a caller who cannot see all that the thread holds, or ever held. Returns a fingerprint of
        the checked data; None if the caller sees everything."""
        source, past = await self._store.read(
            caller.tenant, on_thread(visible, copying.with_past, missing=copying.nothing_to_copy), thread_id
        )
        view = await self._secrets.view(caller, source)
        if view.whole:
            return None
        if await view.hides_of_thread() or await self._ever_held(source, caller.tenant, view.hides):
            raise Forbidden(
                "the thread holds secrets that you may not see, and you would own the copy",
                hint="let its owner copy it, or a person who may reveal the secrets",
            )
        return past

    async def _ever_held(self, source: Thread, tenant: str, hides: Callable[[Any], Awaitable[bool]]) -> bool:
        if source.graph_id is None:
            return False
        return await self._histories.any_holds(tenant, source.graph_id, source.id, hides)

    async def _remove(self, caller: Principal, thread_id: str, visible: Visible | None) -> None:
        tenant = caller.tenant
        async with self._secrets.refusals(caller, thread_id), noted(self._store, caller):
            running, gone = await self._store.write(
                tenant, on_thread(visible, removal.remove_or_stop), thread_id, caller
            )
        for run in running:
            if self._store.queue is not None:
                await self._store.queue.cancel(tenant, run.id)
        if running:
            gone = await self._store.write(tenant, removal.remove_with_runs, thread_id, caller.actor)
        if self._on_removal is not None:
            await self._on_removal(tenant, gone)

    async def _note_shown(self, tenant: str, shown: Iterable[Thread]) -> None:
        unseen = [thread for thread in shown if thread.waits and not thread.shown]
        if unseen:
            await self._store.write(tenant, _mark_shown, unseen)


def _may_hide(query: Query) -> bool:
    """Whether the filter may match masked values: in the state, or under the name of a secret."""
    return bool(query.values) or Cover().holds(query.metadata)


def _contains(thread: Thread, query: Query) -> bool:
    return contained(query.values, thread.values) and contained(query.metadata, thread.metadata)


def _written(supersteps: Sequence[Sequence[Update]]) -> dict[str, Any]:
    """The content that the updates write, by value or by command."""
    values = [[update.values for update in step] for step in supersteps]
    return {"supersteps": values, "commands": [[update.command for update in step] for step in supersteps]}


def _check(query: Query) -> None:
    check_filter(query.metadata)
    check_filter(query.values)


def _create(
    tx: Tx,
    caller: Principal,
    thread_id: str,
    metadata: dict[str, Any],
    if_exists: IfExists,
    visible: Visible | None,
    *,
    lifetime: Lifetime | None,
    past: Edit | None,
    visibility: Visibility,
    labelled: bool,
    chosen: bool,
) -> tuple[Thread, bool]:
    """The thread, and whether it is new. `labelled`: the caller set metadata, which graphs read. `chosen`: the id is
    the caller's."""
    if chosen and threads.get(tx, thread_id) is None:
        chosen_ids.require_free(tx, caller, thread_id)
    if not threads.insert(tx, thread_id, metadata, owner=caller.actor, visibility=visibility):
        if if_exists == "raise" or not existing_thread(tx, thread_id).shown_to(visible):
            raise AlreadyExists(f"Thread with ID {thread_id} already exists")
        return shown_thread(tx, thread_id), False
    if labelled:
        contributors.add(tx, thread_id, caller.actor, lasting=True)
    if lifetime is not None:
        threads.set_lifetime(tx, thread_id, lifetime)
    if past is not None:
        past.store(tx)
        put_state(tx, existing_thread(tx, thread_id), past.outcome, caller.actor)
        contributors.add(tx, thread_id, caller.actor)
    return shown_thread(tx, thread_id), True


def _change(
    tx: Tx,
    thread_id: str,
    caller: Principal,
    metadata: dict[str, Any],
    lifetime: Lifetime | None,
    visibility: Visibility | None,
) -> Thread:
    thread = existing_thread(tx, thread_id, lock=True)
    _require_same_graph(thread, metadata)
    merged = {**thread.metadata, **metadata}
    if metadata:
        quotas.require_storage(tx)
        documents.require(tx, metadata=merged)
    threads.set_metadata(tx, thread_id, merged)
    if merged != thread.metadata:  # graphs read it
        contributors.add(tx, thread_id, caller.actor, lasting=True)
    if lifetime is not None:
        _require_lifetime(tx, caller, thread, lifetime)
        threads.set_lifetime(tx, thread_id, lifetime)
    if visibility is not None and visibility is not thread.visibility:
        _require_owner(caller, thread, "may change its visibility")
        threads.set_visibility(tx, thread_id, visibility)
        details = {"from": thread.visibility, "to": visibility}
        events.append(tx, caller, "thread.visibility_changed", f"thread:{thread_id}", details)
    return existing_thread(tx, thread_id)


def _require_same_graph(thread: Thread, wanted: Mapping[str, Any]) -> None:
    """Refuses to change the graph, by which the policy judges the thread's questions. Only runs change it."""
    present = thread.graph_id
    if present is not None and wanted.get("graph_id", present) != present:
        raise Invalid(
            f"metadata.graph_id: the thread belongs to the graph {present!r}, and only a run changes that",
            hint="omit graph_id, or create another thread",
        )


def _require_lifetime(tx: Tx, caller: Principal, thread: Thread, lifetime: Lifetime) -> None:
    """A time to live requires the right to delete the thread."""
    if lifetime.strategy is Thinning.DELETE:
        require_withdrawal(tx, caller, thread)
    if thread.owner is not None:
        _require_owner(caller, thread, "may change its time to live")


def _require_owner(caller: Principal, thread: Thread, right: str) -> None:
    if caller.actor != thread.owner and not caller.may(Scope.ADMIN):
        raise Forbidden(f"only the owner of a thread, or an administrator, {right}")


def _storage(tx: Tx, thread_id: str) -> dict[str, Size]:
    existing_thread(tx, thread_id)
    return thread_storage.sizes(tx, thread_id)


def _mark_shown(tx: Tx, shown: Sequence[Thread]) -> None:
    for thread in shown:
        threads.mark_shown(tx, thread.id, as_of=thread.state_updated_at)
