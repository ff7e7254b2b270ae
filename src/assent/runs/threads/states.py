"""Reads, edits and repairs the states of threads.

An edit is computed first and then stored with the thread's row in one transaction. The transaction checks that no run
is active and that the state is unchanged; if it has changed, the edit is repeated on the new state.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from assent.audit.refusals import noted
from assent.errors import BadRequest, Conflict, NotFound, ThreadBusy
from assent.identity.model.access import Principal, Scope, system
from assent.kernel import jsonable
from assent.kernel.quotas import quotas
from assent.kernel.store.containment import check_filter
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.review import thread_items
from assent.review.model.questions import Resolution
from assent.review.threads.answers import require_free
from assent.review.threads.breakpoints import open_breakpoint
from assent.review.threads.secrets import Secrets, View, require_all_unmasked
from assent.runs.engine import outcomes, states
from assent.runs.engine.histories import Address, Edit, Histories, Update
from assent.runs.storable import require_storable
from assent.threads.access import ThreadAccess
from assent.threads.model.runs import Outcome, Run, RunStatus, next_in_line
from assent.threads.model.threads import Thread, ThreadStatus, contained, resting
from assent.threads.rows import contributors, runs, threads
from assent.threads.rows.state import checkpoints
from assent.threads.visible_threads import on_thread

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

Json = dict[str, Any]
OnState = Callable[[str, str, Json], Awaitable[None]]
"""Called with the tenant, the thread's id and the new state."""

_READ = (Scope.RUNS_WRITE, Scope.ITEMS_READ)
_TRIES = 5
_COPY = "__copy__"
END = "__end__"


class ThreadStates:
    def __init__(
        self, store: Store, histories: Histories, on_state: OnState | None = None, may: ThreadAccess | None = None
    ) -> None:
        self._store = store
        self._histories = histories
        self._on_state = on_state
        self._may = may or ThreadAccess()
        self._secrets = Secrets(store)

    async def read(
        self,
        caller: Principal,
        thread_id: str,
        *,
        at: Address | None = None,
        subgraphs: bool = False,
        select: Collection[str] | None = None,
    ) -> Json:
        """The latest state, or the one at a checkpoint. It is empty for a thread that never ran."""
        caller.require_any(*_READ)
        pick = states.selection(select)
        visible = await self._may.read(caller, thread_id)
        thread = await self._store.read(caller.tenant, on_thread(visible, existing_thread), thread_id)
        if thread.graph_id is None:
            return pick(states.EMPTY)
        snapshot = await self._histories.state(caller.tenant, thread.graph_id, thread_id, at=at, subgraphs=subgraphs)
        await self._note_shown(caller.tenant, thread, [snapshot], select)
        view = await self._secrets.view(caller, thread)
        await view.learn([thread.values, thread.interrupts])
        return dict(await view.of(states.state_of(snapshot, self._histories.failures), pick=pick))

    async def history(
        self,
        caller: Principal,
        thread_id: str,
        *,
        limit: int = 1,
        before: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        of: Address | None = None,
        select: Collection[str] | None = None,
    ) -> list[Json]:
        """The past states, newest first."""
        caller.require_any(*_READ)
        check_filter(metadata or {})
        pick = states.selection(select)
        visible = await self._may.read(caller, thread_id)
        thread = await self._store.read(caller.tenant, on_thread(visible, existing_thread), thread_id)
        if thread.graph_id is None:
            return []
        past = await self._histories.past(
            caller.tenant, thread.graph_id, thread_id, of=of, before=before, metadata=metadata, limit=limit
        )
        view = await self._secrets.view(caller, thread)
        await view.learn([thread.values, thread.interrupts])
        if metadata and view.masked:
            past = [snapshot for snapshot in past if await _is_seen(view, metadata, snapshot)]
        await self._note_shown(caller.tenant, thread, past, select)
        failures = self._histories.failures
        return await view.each([states.state_of(snapshot, failures) for snapshot in past], pick=pick)

    async def update(self, caller: Principal, thread_id: str, update: Update, *, at: Address | None = None) -> Json:
        """Updates the state as a node would; `values=None, as_node="__end__"` ends the thread. Returns the address of
        the new checkpoint. Refused while a run is active."""
        caller.require(Scope.RUNS_WRITE)
        await require_all_unmasked(values=update.values)
        await require_storable(values=update.values)
        if update.values is not None:
            await self._store.read(caller.tenant, quotas.require_storage)
        async with self._secrets.refusals(caller, thread_id), noted(self._store, caller):
            edit = await self._edit(caller, thread_id, update, at)
        return edit.checkpoint

    async def repair(self, caller: Principal, thread_id: str) -> Json:
        """Discards the answers of the thread's last step, if they make every run fail.

        The state stays. A run without input then asks the question again under a new id. Returns the address of the new
        checkpoint.
        """
        caller.require(Scope.RUNS_WRITE)
        async with self._secrets.refusals(caller, thread_id), noted(self._store, caller):
            edit = await self._edit(caller, thread_id, Update(as_node=_COPY), None, unfinished=True)
        return edit.checkpoint

    async def end(self, tenant: str, thread_id: str) -> None:
        """Ends a thread at its current state, because of a decision or an expired item."""
        await self._edit(system(tenant), thread_id, Update(as_node=END), None)

    async def outcome(self, tenant: str, graph_id: str, thread_id: str) -> Outcome:
        """The outcome according to the checkpoints, if the row lags behind."""
        snapshot = await self._histories.state(tenant, graph_id, thread_id)
        return outcomes.of_state(snapshot, RunStatus.SUCCESS)

    async def _edit(
        self, caller: Principal, thread_id: str, update: Update, at: Address | None, *, unfinished: bool = False
    ) -> Edit:
        tenant, (visible, _) = caller.tenant, await self._may.update(caller, thread_id)
        for _ in range(_TRIES):
            thread = await self._store.read(tenant, on_thread(visible, _editable), thread_id, caller)
            edit = await self._histories.edit(
                tenant, _graph(thread), thread_id, [[update]], at=at, metadata=_stamp(thread)
            )
            if unfinished and not edit.outcome.next:
                raise Conflict("The thread has ended: there is nothing to repair.")
            if await self._store.write(tenant, on_thread(visible, _store_edit), thread_id, caller, edit, at or {}):
                await self._publish(tenant, thread_id, edit)
                return edit
        raise Conflict("The thread's state keeps changing. Try again.")

    async def _publish(self, tenant: str, thread_id: str, edit: Edit) -> None:
        if self._on_state is not None:
            await self._on_state(tenant, thread_id, edit.state)

    async def _note_shown(
        self, tenant: str, thread: Thread, shown: Sequence[StateSnapshot], select: Collection[str] | None
    ) -> None:
        """Marks the thread's questions as shown if all of them were returned."""
        if thread.shown or not thread.waits or (select and not {"interrupts", "tasks"} & set(select)):
            return
        seen = {question.id for snapshot in shown for question in snapshot.interrupts}
        if seen.issuperset(question["id"] for question in thread.pending):
            await self._store.write(tenant, threads.mark_shown, thread.id, as_of=thread.state_updated_at)


async def _is_seen(view: View, wanted: Mapping[str, Any], snapshot: StateSnapshot) -> bool:
    """Whether the masked metadata matches as well: a filter must not reveal masked values."""
    stored = jsonable.plain(snapshot.metadata)
    shown = await view.of(stored)
    return bool(shown == stored or contained(dict(wanted), shown))


def existing_thread(tx: Tx, thread_id: str, *, lock: bool = False, values: bool = True) -> Thread:
    thread = (threads.lock if lock else threads.get)(tx, thread_id, values=values)
    if thread is None:
        raise NotFound(f"Thread with ID {thread_id} not found")
    return thread


def shown_thread(tx: Tx, thread_id: str) -> Thread:
    """Marks the thread's questions as shown."""
    thread = existing_thread(tx, thread_id)
    if thread.waits and not thread.shown:
        threads.mark_shown(tx, thread.id)
    return thread


def put_state(
    tx: Tx, thread: Thread, outcome: Outcome, actor: str, *, run: Run | None = None, gated: bool = False
) -> None:
    """Updates the row from the checkpoints, and the items from the row, as the actor who changed the thread or the
    `run` that asks. Clears the error. A thread at a breakpoint stays there while it has nodes to run."""
    stopped_at = open_breakpoint(tx, thread)
    threads.set_state(
        tx,
        thread.id,
        status=resting(waits=bool(outcome.pending), next=outcome.next),
        values=outcome.values,
        interrupts=outcome.interrupts,
        error=None,
        next=list(outcome.next),
    )
    upcoming = outcome.next if stopped_at is not None and not outcome.pending else ()
    facts: Json = {"upcoming": upcoming, "by": actor, "run": run, "gated": gated}
    thread_items.follow(tx, thread_items.Waiting.of(thread, outcome.pending, outcome.values, **facts))
    still = {str(question["id"]) for question in outcome.pending}
    thread_items.overtake(tx, thread.id, still, Resolution.SUPERSEDED, actor)


def refresh(tx: Tx, thread_id: str, outcome: Outcome, actor: str, *, run: Run | None, gated: bool) -> Thread:
    put_state(tx, existing_thread(tx, thread_id), outcome, actor, run=run, gated=gated)
    if outcome.pending:
        threads.mark_shown(tx, thread_id)
    return existing_thread(tx, thread_id)


def _graph(thread: Thread) -> str:
    if thread.graph_id is None:
        raise BadRequest(
            f"Thread '{thread.id}' has no assigned graph ID: it has no runs",
            hint="start a run first, or set metadata.graph_id",
        )
    return thread.graph_id


def _stamp(thread: Thread) -> Json:
    return {name: thread.metadata[name] for name in ("graph_id", "assistant_id") if name in thread.metadata}


def _editable(tx: Tx, thread_id: str, caller: Principal) -> Thread:
    thread = existing_thread(tx, thread_id)
    _require_rest(tx, thread)
    require_free(tx, caller, thread)
    return thread


def _require_rest(tx: Tx, thread: Thread) -> None:
    """Requires that no run is active or due. Runs held by an open question or delayed are allowed."""
    active = runs.active(tx, thread.id)
    pending = [run for run in active if run.status is RunStatus.PENDING]
    if len(active) > len(pending) or next_in_line(pending, waits=runs.is_held(tx, thread), now=tx.now()):
        raise ThreadBusy(f"Thread {thread.id} has in-flight runs: {', '.join(run.id for run in active)}")


def _store_edit(tx: Tx, thread_id: str, caller: Principal, edit: Edit, at: Address) -> bool:
    """Stores the edit; False if the thread has changed since it was computed."""
    thread = existing_thread(tx, thread_id, lock=True)
    _require_rest(tx, thread)
    require_free(tx, caller, thread)
    head = checkpoints.latest(tx, thread_id, "")
    if (head.checkpoint_id if head else None) != edit.head:
        return False
    edit.store(tx)
    put_state(tx, thread, edit.outcome, caller.actor)
    contributors.add(tx, thread_id, caller.actor)
    if at.get("checkpoint_id") not in (None, edit.head):
        contributors.recall(tx, thread_id)
    waits = runs.is_held(tx, existing_thread(tx, thread_id))
    if runs.promote(tx, thread_id, waits=waits) is not None and not waits:
        threads.set_status(tx, thread_id, ThreadStatus.BUSY)
    return True
