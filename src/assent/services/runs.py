"""Runs: created, followed, cancelled, removed. Whether a run may join its thread is decided in one transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from assent.domain.access import Principal, Scope
from assent.domain.frames import Frame, Stream, over, thread_topic
from assent.domain.ids import new_id
from assent.domain.runs import Cancel, Cancelled, Outcome, Run, RunStatus, Strategy
from assent.domain.threads import Thread, ThreadStatus
from assent.domain.visibility import Visible, shows
from assent.errors import BadRequest, Conflict, HandlerRefused, Invalid, NotFound
from assent.notify.targets import Targets
from assent.ports import Authorizer, Bus, Store, Subscription
from assent.services.assistants import Assistants
from assent.services.authorization import no_thread, on_thread
from assent.services.refusals import noted
from assent.services.starting import RunRequest, start
from assent.services.thread_access import ThreadAccess
from assent.services.thread_states import put_state
from assent.store import checkpoints, frames, runs, threads
from assent.store.transaction import Tx

Starting = Callable[[Tx], tuple[Run, Cancelled]]
ReadOutcome = Callable[[str, str, str], Awaitable[Outcome]]
"""What the checkpoints say of a tenant's graph and thread."""


class Runs:
    def __init__(
        self,
        store: Store,
        bus: Bus,
        assistants: Assistants,
        *,
        default_strategy: Strategy,
        targets: Targets | None = None,
        authorizer: Authorizer | None = None,
        read_outcome: ReadOutcome | None = None,
        is_gated: Callable[[str], bool] = lambda graph_id: False,
    ) -> None:
        self._store = store
        self._read_outcome = read_outcome
        self._may = ThreadAccess(authorizer)
        self._bus = bus
        self._assistants = assistants
        self._default_strategy = default_strategy
        self._targets = targets or Targets()
        self._is_gated = is_gated

    async def create(
        self, caller: Principal, thread_id: str | None, request: RunRequest, *, run_id: str | None = None
    ) -> Run:
        """Starts a run, or puts it in line. Without a thread it gets one of its own, gone when the run is done."""
        starting = await self._prepared(caller, thread_id, request, run_id or new_id())
        async with noted(self._store, caller):
            run, replaced = await self._store.write(caller.tenant, starting)
        await self._stop(caller.tenant, replaced)
        return run

    async def create_all(self, caller: Principal, requests: Sequence[RunRequest]) -> list[Run]:
        """Several at once, each with a thread of its own: all of them or, where one cannot be, none."""
        starting = [await self._prepared(caller, None, request, new_id()) for request in requests]
        return await self._store.write(caller.tenant, lambda tx: [one(tx)[0] for one in starting])

    async def _prepared(self, caller: Principal, thread_id: str | None, request: RunRequest, run_id: str) -> Starting:
        """What is left to do in a transaction."""
        caller.require(Scope.RUNS_WRITE)
        if thread_id is None and request.answers:
            raise BadRequest("You must provide a thread_id when resuming.")
        if request.webhook is not None:
            self._targets.check_url(request.webhook)
        assistant = await self._assistants.finder(caller, request.assistant_id)
        strategy = request.multitask_strategy or self._default_strategy
        visible, request = await self._may.create_run(caller, thread_id, run_id, request, strategy)

        def started(tx: Tx) -> tuple[Run, Cancelled]:
            """The thread first: whoever is let in first comes first, and what stands before it may wait for others."""
            if thread_id is not None:
                threads.lock(tx, thread_id, values=False)
            chosen = assistant(tx)
            asked = _durable(request) if self._is_gated(chosen.graph_id) else request
            return start(tx, caller, chosen, asked, strategy, thread_id, run_id, visible)

        return started

    async def get(self, caller: Principal, thread_id: str, run_id: str) -> Run:
        _require_reader(caller)
        visible = await self._may.read(caller, thread_id, run_id)
        return await self._store.read(caller.tenant, on_thread(visible, _get), thread_id, run_id)

    async def find(self, caller: Principal, run_id: str) -> Run:
        """A run by its id alone, for runs whose thread the caller never named."""
        _require_reader(caller)
        run = await self._store.read(caller.tenant, runs.get, run_id)
        missing = NotFound(f"Run with ID {run_id} not found")
        if run is None:
            raise missing
        try:
            return await self.get(caller, run.thread_id, run_id)
        except NotFound:  # which names the thread
            raise missing from None

    async def of_thread(
        self, caller: Principal, thread_id: str, *, status: str | None = None, limit: int = 10, offset: int = 0
    ) -> list[Run]:
        _require_reader(caller)
        runs_of = on_thread(await self._may.list_runs(caller, thread_id), _list)
        return await self._store.read(caller.tenant, runs_of, thread_id, status=status, limit=limit, offset=offset)

    async def cancel(self, caller: Principal, thread_id: str, run_id: str, how: Cancel) -> Run:
        caller.require(Scope.RUNS_WRITE)
        visible = await self._may.cancel(caller, how, thread_id, [run_id])
        run, cancelled = await self._store.write(caller.tenant, on_thread(visible, _cancel), thread_id, run_id, how)
        await self._stop(caller.tenant, cancelled)
        return run

    async def cancel_if_active(self, caller: Principal, thread_id: str, run_id: str) -> None:
        """For clients that are gone: a run that has ended meanwhile is fine, and nobody is there to be refused."""
        with suppress(NotFound, HandlerRefused):
            await self.cancel(caller, thread_id, run_id, Cancel.INTERRUPT)

    async def cancel_many(
        self,
        caller: Principal,
        how: Cancel,
        *,
        thread_id: str | None,
        run_ids: Sequence[str],
        statuses: Sequence[RunStatus],
    ) -> None:
        caller.require(Scope.RUNS_WRITE)
        visible = await self._may.cancel(caller, how, thread_id, run_ids, ",".join(statuses) or None)
        cancelled = await self._store.write(
            caller.tenant, _cancel_many, how, thread_id, tuple(run_ids), tuple(statuses), visible
        )
        await self._stop(caller.tenant, cancelled)

    async def delete(self, caller: Principal, thread_id: str, run_id: str) -> bool:
        """Removes a run with its checkpoints. One that is under way (True) is stopped for that, leaving no trace."""
        caller.require(Scope.RUNS_WRITE)
        visible = await self._may.delete(caller, thread_id, run_id)
        removed, moved = await self._store.write(caller.tenant, on_thread(visible, _delete), thread_id, run_id)
        await self._stop(caller.tenant, removed)
        if moved:
            await self._follow_checkpoints(caller.tenant, thread_id)
        return bool(removed.running)

    def follow(self, run_id: str, *, after: int | None = 0) -> Subscription:
        """Live frames numbered above `after`; None: only from now on. Follow before creating, and nothing is missed."""
        return self._bus.follow(run_id, after=after)

    async def follow_thread(self, caller: Principal, thread_id: str) -> Subscription:
        """Live frames of all runs from now on, and edits of the state."""
        _require_reader(caller)
        visible = await self._may.read(caller, thread_id)
        if await self._store.read(caller.tenant, on_thread(visible, threads.get), thread_id) is None:
            raise no_thread(thread_id)
        return self._bus.follow(thread_topic(caller.tenant, thread_id), after=None)

    async def kept_frames(self, caller: Principal, run: Run, *, after: int) -> list[Frame]:
        """What a resumable stream has sent since; another one may be in the table as well, but only for a while."""
        if not run.kwargs.get("resumable"):
            return []
        return await self._store.read(caller.tenant, frames.after, run.id, after)

    async def missed_frames(self, caller: Principal, thread_id: str, position: tuple[int, int]) -> list[Frame]:
        """What a thread's resumable runs have sent since. Follow first, and nothing is lost in between."""
        for run in await self._store.read(caller.tenant, runs.active, thread_id):
            await self._bus.flush(Stream(caller.tenant, thread_id, run.id, run.attempt, bool(run.kwargs["resumable"])))
        return await self._store.read(caller.tenant, frames.of_thread, thread_id, position)

    async def result(self, caller: Principal, thread_id: str, run_id: str) -> Any:
        """What a finished run left, as its thread's row tells it."""
        return await self._store.write(caller.tenant, _result, thread_id, run_id)

    async def _follow_checkpoints(self, tenant: str, thread_id: str) -> None:
        """Some are gone, and the thread's row still shows what they said: also questions that nobody asks any more."""
        thread = await self._store.read(tenant, threads.get, thread_id)
        if thread is not None and thread.graph_id is not None and self._read_outcome is not None:
            outcome = await self._read_outcome(tenant, thread.graph_id, thread_id)
            await self._store.write(tenant, _put_state, thread, outcome)

    async def _stop(self, tenant: str, cancelled: Cancelled) -> None:
        """What runs comes to its end by itself; who follows what never began would wait for ever."""
        for run in cancelled.over:
            await self._bus.end(*over(tenant, run))
        for run in cancelled.running:
            if self._store.queue is not None:
                await self._store.queue.cancel(tenant, run.id)


def _durable(request: RunRequest) -> RunRequest:
    """Behind the gate every step is stored before the next begins: what was approved must not be forgotten."""
    if request.durability == "exit":
        raise Invalid("this graph asks before it acts, so durability cannot be 'exit'", hint="leave it out, or 'sync'")
    return replace(request, durability="sync")


def _require_reader(caller: Principal) -> None:
    if not caller.may(Scope.ITEMS_READ):
        caller.require(Scope.RUNS_WRITE)


def _get(tx: Tx, thread_id: str, run_id: str, visible: Visible | None = None) -> Run:
    run = runs.get(tx, run_id)
    if run is None or run.thread_id != thread_id or not _is_visible(tx, run, visible):
        raise NotFound(f"Run with ID {run_id} not found")
    return run


def _list(tx: Tx, thread_id: str, *, status: str | None, limit: int, offset: int) -> list[Run]:
    if threads.get(tx, thread_id) is None:
        raise NotFound(f"Thread with ID {thread_id} not found")
    return runs.page(tx, thread_id, status=status, limit=limit, offset=offset)


def _cancel(tx: Tx, thread_id: str, run_id: str, how: Cancel) -> tuple[Run, Cancelled]:
    threads.lock(tx, thread_id)
    run = _get(tx, thread_id, run_id)
    if not run.status.active:
        raise NotFound(f"Run with ID {run_id} has ended already")
    cancelled = runs.cancel_all(tx, [run], how)
    if cancelled.over:
        _let_next(tx, thread_id)
    return run, cancelled


def _cancel_many(
    tx: Tx,
    how: Cancel,
    thread_id: str | None,
    run_ids: Sequence[str],
    statuses: Sequence[RunStatus],
    visible: Visible | None,
) -> Cancelled:
    found = [_get(tx, thread_id, run_id, visible) for run_id in run_ids] if thread_id else runs.of_status(tx, statuses)
    wanted = [run for run in found if run.status.active and _is_visible(tx, run, visible)]
    if not wanted:
        raise NotFound("No runs found to cancel.")
    each = [_cancel(tx, run.thread_id, run.id, how)[1] for run in wanted]
    return Cancelled(tuple(run for one in each for run in one.running), tuple(run for one in each for run in one.over))


def _is_visible(tx: Tx, run: Run, visible: Visible | None) -> bool:
    thread = threads.get(tx, run.thread_id) if visible is not None else None
    return visible is None or (thread is not None and shows(visible, thread.metadata))


def _delete(tx: Tx, thread_id: str, run_id: str) -> tuple[Cancelled, bool]:
    """And whether the thread's state is another one now."""
    threads.lock(tx, thread_id)
    run = _get(tx, thread_id, run_id)
    if run.status is RunStatus.RUNNING:
        return runs.cancel_all(tx, [run], Cancel.ROLLBACK), False
    before = checkpoints.latest(tx, thread_id, "")
    checkpoints.remove_of_run(tx, thread_id, run_id)
    runs.remove(tx, run_id)
    if run.status is not RunStatus.PENDING:
        return Cancelled(), checkpoints.latest(tx, thread_id, "") != before
    frames.close(tx, run)
    _let_next(tx, thread_id)
    return Cancelled(over=(run,)), False


def _put_state(tx: Tx, known: Thread, outcome: Outcome) -> None:
    """Unless something has happened since, or is about to."""
    thread = threads.lock(tx, known.id)
    running = any(run.status is RunStatus.RUNNING for run in runs.active(tx, known.id))
    if thread is None or running or thread.state_updated_at != known.state_updated_at:
        return
    put_state(tx, thread, outcome)
    _let_next(tx, thread.id)


def _let_next(tx: Tx, thread_id: str) -> None:
    """After a run left the line without having run: the next one's turn, or the status the row's state says."""
    thread = threads.get(tx, thread_id)
    if thread is None:
        return
    head = runs.promote(tx, thread_id, waits=thread.waits)
    if head is not None:
        threads.set_status(tx, thread_id, ThreadStatus.BUSY)
    elif not runs.active(tx, thread_id):
        stopped = thread.waits or bool(thread.next)
        threads.set_status(tx, thread_id, ThreadStatus.INTERRUPTED if stopped else ThreadStatus.IDLE)


def _result(tx: Tx, thread_id: str, run_id: str) -> Any:
    run = _get(tx, thread_id, run_id)
    thread = threads.get(tx, thread_id)
    if run.error and run.status in (RunStatus.ERROR, RunStatus.TIMEOUT):
        return {"__error__": run.error}
    if thread is None:
        raise Conflict("the thread is gone")
    if thread.waits and not thread.shown:
        threads.mark_shown(tx, thread_id)
    asked = {"__interrupt__": thread.pending} if thread.waits else {}
    return {**(thread.values or {}), **asked} if isinstance(thread.values, dict | None) else thread.values
