"""Creates, follows, cancels and deletes runs. Admission to the thread is decided in one transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from assent.audit.refusals import noted
from assent.errors import AssentError, BadRequest, Conflict, Forbidden, HandlerRefused, Invalid, NotFound, ThreadWaits
from assent.identity.authorization import Authorizer
from assent.identity.model.access import Principal, Scope
from assent.identity.model.visibility import Visible
from assent.kernel.ids import new_id
from assent.kernel.quotas import documents
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.outbox.targets import Targets
from assent.review.threads import withdrawal
from assent.review.threads.answers import require_withdrawal
from assent.review.threads.open_items import open_items
from assent.review.threads.secrets import Secrets, View, masking_by_id, require_all_unmasked
from assent.review.threads.withdrawal import promote_next
from assent.runs import cancellation as cancelling
from assent.runs.assistants.assistants import Assistants
from assent.runs.headers import with_headers
from assent.runs.start import start
from assent.runs.storable import require_storable
from assent.runs.threads.read_access import ReadAccess
from assent.runs.threads.states import put_state
from assent.threads.access import ThreadAccess
from assent.threads.bus import Bus, Subscription
from assent.threads.model.frames import Frame, Stream, Topic, over
from assent.threads.model.runs import Cancel, Cancelled, Outcome, Run, RunStatus, Strategy
from assent.threads.model.threads import Lifetime, Thread, Visibility
from assent.threads.rows import frames, runs, threads
from assent.threads.rows.state import checkpoints
from assent.threads.run_requests import Place, RunRequest
from assent.threads.visible_threads import no_thread, on_thread

T = TypeVar("T")

Starting = Callable[[Tx], tuple[Run, Cancelled]]
ReadOutcome = Callable[[str, str, str], Awaitable[Outcome]]
"""Reads the outcome of a thread from its checkpoints, by tenant, graph and thread."""


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
        visibility: Visibility = Visibility.SHARED,
        lifetime: Lifetime | None = None,
        sends_webhooks: bool = True,
    ) -> None:
        """`visibility`, `lifetime`: of threads that are created for a run. Without `sends_webhooks`, the webhooks of
        runs are dropped."""
        self._lifetime = lifetime
        self._sends_webhooks = sends_webhooks
        self._store = store
        self._read_outcome = read_outcome
        self._may = ThreadAccess(authorizer)
        self._bus = bus
        self._assistants = assistants
        self._default_strategy = default_strategy
        self._targets = targets or Targets()
        self._is_gated = is_gated
        self._visibility = visibility
        self._secrets = Secrets(store)
        self._access = ReadAccess(store, self._may)

    async def create(
        self, caller: Principal, thread_id: str | None, request: RunRequest, *, run_id: str | None = None
    ) -> Run:
        """Starts or enqueues a run. Without a thread, it gets a temporary one that is deleted when the run ends."""
        run, _ = await self._created(caller, thread_id, request, run_id or new_id(), lambda tx: None)
        return run

    async def _created(
        self, caller: Principal, thread_id: str | None, request: RunRequest, run_id: str, also: Callable[[Tx], T]
    ) -> tuple[Run, T]:
        """The new run, and what `also` reads in its transaction."""
        starting = await self._prepared(caller, thread_id, request, run_id)
        async with self._secrets.refusals(caller, thread_id), noted(self._store, caller):
            (run, replaced), read = await self._store.write(caller.tenant, lambda tx: (starting(tx), also(tx)))
        await self._stop(caller.tenant, replaced)
        return run, read

    async def begin(
        self, caller: Principal, thread_id: str | None, request: RunRequest, *, only_end: bool = False
    ) -> tuple[Run, Subscription]:
        """Creates a run, subscribed before its first frame, or only to its end. Only its caller sees the thread of a
        stateless run."""
        run_id = new_id()
        subscription = self._bus.follow(Topic(caller.tenant, run_id), only_end=only_end)
        try:
            if thread_id is None:
                run = await self.create(caller, thread_id, request, run_id=run_id)
                return run, self.guarded(subscription, caller, run.thread_id)
            masking = partial(masking_by_id, caller=caller, thread_id=thread_id)
            run, masked = await self._created(caller, thread_id, request, run_id, masking)
            view = self._secrets.view_with(caller, masked)
            return run, view.following(self.guarded(subscription, caller, thread_id))
        except BaseException:
            subscription.close()
            raise

    async def create_if(
        self, caller: Principal, thread_id: str | None, request: RunRequest, claim: Callable[[Tx, str], bool]
    ) -> Run | None:
        """As `create`, in the transaction of a `claim` with the run's id, and only if that succeeds."""
        run_id = new_id()
        starting = await self._prepared(caller, thread_id, request, run_id)
        async with noted(self._store, caller):
            started = await self._store.write(caller.tenant, lambda tx: starting(tx) if claim(tx, run_id) else None)
        if started is None:
            return None
        await self._stop(caller.tenant, started[1])
        return started[0]

    async def check(self, request: RunRequest) -> None:
        """Refuses a request for its content, whoever sends it."""
        await require_all_unmasked(input=request.input, command=request.command, context=request.context)
        if request.webhook is not None:
            self._targets.check_url(request.webhook)
        texts = {name: getattr(request, name) for name in ("metadata", "config", "context")}
        await documents.require_given(self._store.limits, **texts)
        await require_storable(input=request.input, command=request.command)

    async def create_all(self, caller: Principal, requests: Sequence[RunRequest]) -> list[Run]:
        """Creates several runs in one transaction, each with its own thread."""
        starting = [await self._prepared(caller, None, request, new_id()) for request in requests]
        return await self._store.write(caller.tenant, lambda tx: [start_run(tx)[0] for start_run in starting])

    async def _prepared(self, caller: Principal, thread_id: str | None, request: RunRequest, run_id: str) -> Starting:
        """Checks the request and returns the function to run in the transaction."""
        caller.require(Scope.RUNS_WRITE)
        request = with_headers(request if self._sends_webhooks else replace(request, webhook=None))
        if thread_id is None and request.answers:
            raise BadRequest("You must provide a thread_id when resuming.")
        await self.check(request)
        assistant = await self._assistants.finder(caller, request.assistant_id)
        strategy = request.multitask_strategy or self._default_strategy
        visible, request = await self._may.create_run(caller, thread_id, run_id, request, strategy)
        place = Place(thread_id, visible, self._visibility, self._lifetime)

        def started(tx: Tx) -> tuple[Run, Cancelled]:
            """Locks the thread first, so that runs are ordered by this lock before other waits."""
            locked = threads.lock(tx, thread_id, values=False) if thread_id is not None else None
            chosen = assistant(tx)
            effective = _durable(request) if self._is_gated(chosen.graph_id) else request
            return start(tx, caller, chosen, effective, strategy, place, run_id, locked)

        return started

    async def get(self, caller: Principal, thread_id: str, run_id: str) -> Run:
        _require_reader(caller)
        visible = await self._may.read(caller, thread_id, run_id)
        return await self._store.read(caller.tenant, on_thread(visible, _get), thread_id, run_id)

    async def view(self, caller: Principal, thread_id: str) -> View:
        """The caller's view of the inputs and outputs of the thread's runs, with secrets masked."""
        return await self._secrets.view_of(caller, thread_id)

    async def find(self, caller: Principal, run_id: str) -> Run:
        """A run by its id alone, for runs whose thread the caller never named."""
        _require_reader(caller)
        run = await self._store.read(caller.tenant, runs.get, run_id)
        missing = NotFound(f"Run with ID {run_id} not found")
        if run is None:
            raise missing
        try:
            return await self.get(caller, run.thread_id, run_id)
        except NotFound:  # its message names the thread
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
        async with noted(self._store, caller):
            cancelling = on_thread(visible, _cancel)
            run, cancelled = await self._store.write(caller.tenant, cancelling, thread_id, run_id, how, caller)
        await self._stop(caller.tenant, cancelled)
        return run

    async def cancel_if_active(self, caller: Principal, thread_id: str, run_id: str) -> None:
        """Cancels the run of a disconnected client. Ignores runs that have ended or may not be cancelled, such as those
        that deliver a person's decision."""
        with suppress(NotFound, HandlerRefused, Forbidden, Conflict):
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
        async with noted(self._store, caller):
            cancelled = await self._store.write(
                caller.tenant, _cancel_many, how, thread_id, tuple(run_ids), tuple(statuses), visible, caller
            )
        await self._stop(caller.tenant, cancelled)

    async def delete(self, caller: Principal, thread_id: str, run_id: str) -> bool:
        """Deletes a run with its checkpoints. A run in progress is rolled back instead (True)."""
        caller.require(Scope.RUNS_WRITE)
        visible = await self._may.delete(caller, thread_id, run_id)
        async with noted(self._store, caller):
            deleting = on_thread(visible, _delete)
            removed, moved = await self._store.write(caller.tenant, deleting, thread_id, run_id, caller)
        await self._stop(caller.tenant, removed)
        if moved:
            await self._follow_checkpoints(caller, thread_id)
        return bool(removed.running)

    def follow(self, caller: Principal, run_id: str, *, after: int = 0) -> Subscription:
        """Live frames numbered above `after`. Follow before creating, and nothing is missed."""
        return self._bus.follow(Topic(caller.tenant, run_id), after=after)

    async def follow_now(self, caller: Principal, run_id: str) -> Subscription:
        """Live frames from now on."""
        return await self._bus.follow_now(Topic(caller.tenant, run_id))

    async def follow_thread(self, caller: Principal, thread_id: str) -> Subscription:
        """New live frames of all runs, and edits of the state."""
        _require_reader(caller)
        visible = await self._may.read(caller, thread_id)
        if await self._store.read(caller.tenant, on_thread(visible, threads.get), thread_id) is None:
            raise no_thread(thread_id)
        topic = Topic(caller.tenant, thread_id, of_thread=True)
        return await self.shown(await self._bus.follow_now(topic), caller, thread_id)

    async def assistant_of(self, caller: Principal, thread_id: str) -> str | None:
        """The assistant of the thread's last run. Does not count as a look at the thread's questions."""
        _require_reader(caller)
        visible = await self._may.read(caller, thread_id)
        thread = await self._store.read(caller.tenant, on_thread(visible, threads.get), thread_id)
        if thread is None:
            raise no_thread(thread_id)
        named = thread.metadata.get("assistant_id")
        return named if isinstance(named, str) else None

    async def shown(self, subscription: Subscription, caller: Principal, thread_id: str) -> Subscription:
        """The frames as the caller may see them, for as long as the caller may read the thread."""
        view = await self.view(caller, thread_id)
        return view.following(self.guarded(subscription, caller, thread_id))

    def guarded(self, subscription: Subscription, caller: Principal, thread_id: str) -> Subscription:
        """The same for a thread whose secrets the caller sees, because it is the caller's own."""
        return self._access.guard(subscription, caller, thread_id)

    async def kept_frames(self, caller: Principal, run: Run, *, after: int) -> list[Frame]:
        """The stored frames of a resumable stream after this number. Others are stored only temporarily."""
        if not run.kwargs.get("resumable"):
            return []
        stored = await self._store.read(caller.tenant, frames.after, run.id, after)
        return await (await self.view(caller, run.thread_id)).frames(stored)

    async def missed_frames(self, caller: Principal, thread_id: str, position: tuple[int, int]) -> list[Frame]:
        """The frames of a thread's resumable runs after this position. Follow first to lose none in between."""
        for run in await self._store.read(caller.tenant, runs.active, thread_id):
            await self._bus.flush(Stream(caller.tenant, thread_id, run.id, run.attempt, bool(run.kwargs["resumable"])))
        missed = await self._store.read(caller.tenant, frames.of_thread, thread_id, position)
        return await (await self.view(caller, thread_id)).frames(missed)

    async def result(self, caller: Principal, thread_id: str, run_id: str) -> Any:
        """The result of a finished run, from its thread's row."""
        left = await self._store.write(caller.tenant, _result, thread_id, run_id)
        return await (await self.view(caller, thread_id)).of(left)

    async def _follow_checkpoints(self, caller: Principal, thread_id: str) -> None:
        """Updates the thread's row and its questions after checkpoints were deleted."""
        thread = await self._store.read(caller.tenant, threads.get, thread_id)
        if thread is not None and thread.graph_id is not None and self._read_outcome is not None:
            outcome = await self._read_outcome(caller.tenant, thread.graph_id, thread_id)
            await self._store.write(caller.tenant, _put_state, thread, outcome, caller.actor)

    async def _stop(self, tenant: str, cancelled: Cancelled) -> None:
        """Cancels running runs, and ends the streams of runs that never began, whose followers would wait for ever."""
        for run in cancelled.over:
            await self._bus.end(*over(tenant, run))
        for run in cancelled.running:
            if self._store.queue is not None:
                await self._store.queue.cancel(tenant, run.id)


def _durable(request: RunRequest) -> RunRequest:
    """A gated graph stores every step before the next one begins, so that approvals survive a crash."""
    if request.durability == "exit":
        raise Invalid("this graph is gated, so durability cannot be 'exit'", hint="omit it, or use 'sync'")
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
    if threads.get(tx, thread_id, values=False) is None:
        raise NotFound(f"Thread with ID {thread_id} not found")
    runs.require_page(tx, thread_id, status=status, limit=limit, offset=offset)
    return runs.page(tx, thread_id, status=status, limit=limit, offset=offset)


def _cancel(tx: Tx, thread_id: str, run_id: str, how: Cancel, caller: Principal) -> tuple[Run, Cancelled]:
    threads.lock(tx, thread_id)
    run = _get(tx, thread_id, run_id)
    if not run.status.active:
        raise NotFound(f"Run with ID {run_id} has ended already")
    withdrawal.stop(tx, caller, run)
    cancelled = cancelling.cancel_all(tx, [run], how)
    if cancelled.over:
        promote_next(tx, thread_id)
    return run, cancelled


def _cancel_many(
    tx: Tx,
    how: Cancel,
    thread_id: str | None,
    run_ids: Sequence[str],
    statuses: Sequence[RunStatus],
    visible: Visible | None,
    caller: Principal,
) -> Cancelled:
    """Cancels all named runs that are active, or none; by status, only the runs that the caller may stop."""
    named = _of_thread(tx, thread_id, run_ids) if thread_id else runs.of_status(tx, statuses)
    wanted = [run for run in named if run.status.active and _is_visible(tx, run, visible)]
    if not wanted:
        raise NotFound("No runs found to cancel.")
    if not thread_id:
        wanted = _stoppable(tx, caller, wanted)
    results = [_cancel(tx, run.thread_id, run.id, how, caller)[1] for run in wanted]
    return Cancelled(
        tuple(run for result in results for run in result.running),
        tuple(run for result in results for run in result.over),
    )


def _of_thread(tx: Tx, thread_id: str, run_ids: Sequence[str]) -> list[Run]:
    """Without ids that are unknown: such a run may just have been deleted."""
    return [run for run_id in run_ids if (run := runs.get(tx, run_id)) is not None and run.thread_id == thread_id]


def _stoppable(tx: Tx, caller: Principal, wanted: Sequence[Run]) -> list[Run]:
    """The runs whose decisions the caller may stop. Raises the first refusal if there are none."""
    refused, rest = list[AssentError](), list[Run]()
    for run in sorted(wanted, key=lambda run: run.thread_id):
        threads.lock(tx, run.thread_id, values=False)
        try:
            withdrawal.require_stoppable(tx, caller, run)
        except (Forbidden, Conflict) as error:
            refused.append(error)
        else:
            rest.append(run)
    if refused and not rest:
        raise refused[0]
    return rest


def _is_visible(tx: Tx, run: Run, visible: Visible | None) -> bool:
    thread = threads.get(tx, run.thread_id, values=False) if visible is not None else None
    return visible is None or (thread is not None and thread.shown_to(visible))


def _delete(tx: Tx, thread_id: str, run_id: str, caller: Principal) -> tuple[Cancelled, bool]:
    """The cancelled runs, and whether the thread's state has changed."""
    thread = threads.lock(tx, thread_id, values=False)
    run = _get(tx, thread_id, run_id)
    assert thread is not None
    require_withdrawal(tx, caller, thread, run_id=run.id)
    withdrawal.stop(tx, caller, run)
    if run.status.active and run.attempt > 0:  # if no worker executes it, its next attempt rolls it back
        return cancelling.cancel_all(tx, [run], Cancel.ROLLBACK), False
    before = checkpoints.latest(tx, thread_id, "")
    checkpoints.remove_of_run(tx, thread_id, run_id)
    runs.remove(tx, run_id)
    if run.status is not RunStatus.PENDING:
        moved = checkpoints.latest(tx, thread_id, "") != before
        if not moved:
            _require_asker(tx, thread)
        return Cancelled(), moved
    frames.close(tx, run)
    promote_next(tx, thread_id)
    return Cancelled(over=(run,)), False


def _require_asker(tx: Tx, thread: Thread) -> None:
    """Refuses to delete the last run of a thread that still asks. The checkpoints of a copied or imported thread belong
    to no run, so its questions remain."""
    asked = open_items(tx, thread.id)
    if asked and runs.last_begun(tx, thread.id) is None:
        raise ThreadWaits(
            "the thread needs this run to continue after its open question is decided",
            hint="decide the question first, or delete the thread",
            pending=thread.pending,
            items=[item.id for item in asked],
        )


def _put_state(tx: Tx, read: Thread, outcome: Outcome, actor: str) -> None:
    """Writes the state unless it has changed since it was read, or a run is in progress."""
    thread = threads.lock(tx, read.id)
    running = any(run.status is RunStatus.RUNNING for run in runs.active(tx, read.id))
    if thread is None or running or thread.state_updated_at != read.state_updated_at:
        return
    put_state(tx, thread, outcome, actor)
    promote_next(tx, thread.id)


def _result(tx: Tx, thread_id: str, run_id: str) -> Any:
    run = _get(tx, thread_id, run_id)
    thread = threads.get(tx, thread_id)
    if run.error and run.status in (RunStatus.ERROR, RunStatus.TIMEOUT):
        return {"__error__": run.error}
    if thread is None:
        raise Conflict("the thread was deleted")
    if thread.waits and not thread.shown:
        threads.mark_shown(tx, thread_id)
    asked = {"__interrupt__": thread.pending} if thread.waits else {}
    return {**(thread.values or {}), **asked} if isinstance(thread.values, dict | None) else thread.values
