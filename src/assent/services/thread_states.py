"""A thread's state, now and before: read, edited, repaired.

An edit is made beside the thread first and stored together with the thread's row, in one transaction. That one looks
again whether something runs and whether the thread still stands where it stood; if it has moved on, the edit is made
again on the new state.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from assent.domain.access import Principal, Scope, system
from assent.domain.questions import Resolution
from assent.domain.runs import Outcome, Run, RunStatus, next_in_line
from assent.domain.threads import Thread, ThreadStatus, resting
from assent.engine import outcomes, states
from assent.engine.histories import Address, Edit, Histories, Update
from assent.errors import BadRequest, Conflict, NotFound, ThreadBusy
from assent.ports import Store
from assent.services.answering import require_free
from assent.services.authorization import on_thread
from assent.services.refusals import noted
from assent.services.thread_access import ThreadAccess
from assent.store import asking, checkpoints, runs, threads
from assent.store.containment import check_filter
from assent.store.transaction import Tx

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

    async def read(
        self,
        caller: Principal,
        thread_id: str,
        *,
        at: Address | None = None,
        subgraphs: bool = False,
        select: Collection[str] | None = None,
    ) -> Json:
        """The latest state or the one at a checkpoint. A thread that never ran, or not there, has an empty one."""
        caller.require_any(*_READ)
        pick = states.selection(select)
        visible = await self._may.read(caller, thread_id)
        thread = await self._store.read(caller.tenant, on_thread(visible, found), thread_id)
        if thread.graph_id is None:
            return pick(states.EMPTY)
        snapshot = await self._histories.state(caller.tenant, thread.graph_id, thread_id, at=at, subgraphs=subgraphs)
        await self._note_shown(caller.tenant, thread, [snapshot], select)
        return pick(states.state_of(snapshot))

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
        """The states there were, newest first."""
        caller.require_any(*_READ)
        check_filter(metadata or {})
        pick = states.selection(select)
        visible = await self._may.read(caller, thread_id)
        thread = await self._store.read(caller.tenant, on_thread(visible, found), thread_id)
        if thread.graph_id is None:
            return []
        past = await self._histories.past(
            caller.tenant, thread.graph_id, thread_id, of=of, before=before, metadata=metadata, limit=limit
        )
        await self._note_shown(caller.tenant, thread, past, select)
        return [pick(states.state_of(snapshot)) for snapshot in past]

    async def update(self, caller: Principal, thread_id: str, update: Update, *, at: Address | None = None) -> Json:
        """Changes the state as if a node had; `values=None, as_node="__end__"` ends the thread. Returns the new
        checkpoint's address. Refused while something runs."""
        caller.require(Scope.RUNS_WRITE)
        async with noted(self._store, caller):
            edit = await self._edit(caller, thread_id, update, at)
        return edit.checkpoint

    async def repair(self, caller: Principal, thread_id: str) -> Json:
        """Sets a thread back to before its last answers, where wrong ones were stored with it that fail for ever.

        The state stays, the answers of its last step are gone. A run without input then asks the question again,
        under a new id. Returns the new checkpoint's address.
        """
        caller.require(Scope.RUNS_WRITE)
        async with noted(self._store, caller):
            edit = await self._edit(caller, thread_id, Update(as_node=_COPY), None, unfinished=True)
        return edit.checkpoint

    async def end(self, tenant: str, thread_id: str) -> None:
        """Ends a thread where it stands, because a person decided so or nobody did in time."""
        await self._edit(system(tenant), thread_id, Update(as_node=END), None)

    async def outcome(self, tenant: str, graph_id: str, thread_id: str) -> Outcome:
        """What the checkpoints say, where the row does not know yet."""
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
                raise Conflict("The thread has come to its end: there is nothing to repair.")
            if await self._store.write(tenant, on_thread(visible, _store_edit), thread_id, caller, edit):
                await self._tell(tenant, thread_id, edit)
                return edit
        raise Conflict("The thread's state keeps changing. Try again.")

    async def _tell(self, tenant: str, thread_id: str, edit: Edit) -> None:
        if self._on_state is not None:
            await self._on_state(tenant, thread_id, edit.state)

    async def _note_shown(
        self, tenant: str, thread: Thread, shown: Sequence[StateSnapshot], select: Collection[str] | None
    ) -> None:
        """Only where all that the thread waits for is among what is shown."""
        if thread.shown or not thread.waits or (select and not {"interrupts", "tasks"} & set(select)):
            return
        seen = {question.id for snapshot in shown for question in snapshot.interrupts}
        if seen.issuperset(question["id"] for question in thread.pending):
            await self._store.write(tenant, threads.mark_shown, thread.id, as_of=thread.state_updated_at)


def found(tx: Tx, thread_id: str, *, lock: bool = False) -> Thread:
    thread = threads.lock(tx, thread_id) if lock else threads.get(tx, thread_id)
    if thread is None:
        raise NotFound(f"Thread with ID {thread_id} not found")
    return thread


def put_state(tx: Tx, thread: Thread, outcome: Outcome) -> None:
    """The row follows the checkpoints, and the items follow the row. What failed before is over."""
    threads.set_state(
        tx,
        thread.id,
        status=resting(waits=bool(outcome.pending), next=outcome.next),
        values=outcome.values,
        interrupts=outcome.interrupts,
        error=None,
        next=list(outcome.next),
    )
    asking.follow(tx, waiting(thread, outcome.pending, outcome.values))
    still = {str(question["id"]) for question in outcome.pending}
    asking.overtake(tx, thread.id, still, Resolution.SUPERSEDED)


def waiting(thread: Thread, pending: Sequence[Json], values: Any, run: Run | None = None) -> asking.Waiting:
    """What the thread waits for, where no run of its own has just said so."""
    assistant = thread.metadata.get("assistant_id")
    return asking.Waiting(thread.id, pending, graph_id=thread.graph_id, assistant_id=assistant, values=values, run=run)


def refresh(tx: Tx, thread_id: str, outcome: Outcome) -> Thread:
    put_state(tx, found(tx, thread_id), outcome)
    if outcome.pending:
        threads.mark_shown(tx, thread_id)
    return found(tx, thread_id)


def _graph(thread: Thread) -> str:
    if thread.graph_id is None:
        raise BadRequest(
            f"Thread '{thread.id}' has no assigned graph ID: no run was made on it",
            hint="make a run first, or name the graph as metadata.graph_id",
        )
    return thread.graph_id


def _stamp(thread: Thread) -> Json:
    return {name: thread.metadata[name] for name in ("graph_id", "assistant_id") if name in thread.metadata}


def _editable(tx: Tx, thread_id: str, caller: Principal) -> Thread:
    thread = found(tx, thread_id)
    _require_rest(tx, thread)
    require_free(tx, caller, thread)
    return thread


def _require_rest(tx: Tx, thread: Thread) -> None:
    """Nothing runs and nothing is about to. Runs that wait behind an open question, or for their time, may be there."""
    active = runs.active(tx, thread.id)
    pending = [run for run in active if run.status is RunStatus.PENDING]
    if len(active) > len(pending) or next_in_line(pending, waits=thread.waits, now=tx.now()):
        raise ThreadBusy(f"Thread {thread.id} has in-flight runs: {', '.join(run.id for run in active)}")


def _store_edit(tx: Tx, thread_id: str, caller: Principal, edit: Edit) -> bool:
    """False where the thread has moved on since the edit was made."""
    thread = found(tx, thread_id, lock=True)
    _require_rest(tx, thread)
    require_free(tx, caller, thread)
    head = checkpoints.latest(tx, thread_id, "")
    if (head.checkpoint_id if head else None) != edit.head:
        return False
    edit.store(tx)
    put_state(tx, thread, edit.outcome)
    waits = bool(edit.outcome.pending)
    if runs.promote(tx, thread_id, waits=waits) is not None and not waits:
        threads.set_status(tx, thread_id, ThreadStatus.BUSY)
    return True
