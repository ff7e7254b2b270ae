"""Admission of a run to its thread: the answers it gives, the breakpoint it passes, the runs it supersedes.
Refuses a run that may not join the thread. Writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from assent.errors import Invalid, NotFound, ThreadWaits
from assent.identity.model.access import Principal
from assent.kernel.store.transaction import Tx
from assent.review.model.items import Item
from assent.review.threads.answers import Answers, keyed_answers, require_alone, require_free
from assent.review.threads.breakpoints import open_breakpoint
from assent.runs.continuation import asker
from assent.runs.upstream import CHANNELS, RESUME_MAP, RESUMING
from assent.threads.model.assistants import Assistant
from assent.threads.model.identities import Identity, identity_in, identity_of, stand_in
from assent.threads.model.runs import Admission, Run, Strategy, admit
from assent.threads.model.threads import Thread
from assent.threads.rows import runs
from assent.threads.rows.state import checkpoints
from assent.threads.run_requests import RunRequest


@dataclass(frozen=True, slots=True)
class Arrival:
    """A run that may join its thread."""

    caller: Principal
    assistant: Assistant
    request: RunRequest
    strategy: Strategy
    thread: Thread
    present: Sequence[Run]
    """The active runs of the thread."""
    given: Answers | None
    bare: bool
    """Whether the request is an answer and nothing more."""
    fork: dict[str, Any] | None
    stopped_at: Item | None
    """The open breakpoint at which the thread is stopped."""
    continues: bool
    """Whether the run approves that breakpoint."""
    before: Run | None
    """The run that this bare answer or continuation continues."""
    admission: Admission
    actor: str
    identity: Identity

    @property
    def drops_questions(self) -> bool:
        return self.admission.drops_questions or _leaves(self.request, self.stopped_at, self.strategy)


def arrive(
    tx: Tx, caller: Principal, assistant: Assistant, request: RunRequest, strategy: Strategy, thread: Thread
) -> Arrival:
    """Checks the request against the thread, which the caller has locked."""
    _require_state_keys(request)
    _require_answered_now(request)
    given, fork, before = _answers(tx, caller, assistant, request, thread)
    bare = before is not None
    stopped_at = None if thread.waits else open_breakpoint(tx, thread)
    stopped = _asking(tx, thread, [stopped_at]) if stopped_at is not None else None
    continues = _continues(assistant, request, stopped_at, stopped)
    present = runs.active(tx, thread.id)
    admission = _admission(present, thread, request, strategy, answers=request.answers or continues)
    if continues or _moves(request, admission, thread, strategy):
        require_free(tx, caller, thread)
    actor, identity = _whose(caller, given, before)
    return Arrival(
        caller=caller,
        assistant=assistant,
        request=request,
        strategy=strategy,
        thread=thread,
        present=present,
        given=given,
        bare=bare,
        fork=fork,
        stopped_at=stopped_at,
        continues=continues,
        before=stopped if continues else before,
        admission=admission,
        actor=actor,
        identity=identity,
    )


def _answers(
    tx: Tx, caller: Principal, assistant: Assistant, request: RunRequest, thread: Thread
) -> tuple[Answers | None, dict[str, Any] | None, Run | None]:
    """The answers of the request, the checkpoint that it forks from, and the run that it continues: a bare answer
    continues the run that asked."""
    given = keyed_answers(tx, caller, thread, request.command) if request.answers else None
    fork = _fork(tx, thread, request)
    if given is None:
        return None, fork, None
    asking = _asking(tx, thread, given.items or [given.asked])
    before = asking if asking is not None and _is_bare(assistant, request, asking, fork) else None
    require_alone(tx, thread, given, bare=before is not None)
    return given, fork, before


def _require_state_keys(request: RunRequest) -> None:
    """Refuses an update of internal channels: it could start nodes, as `goto` does."""
    update = (request.command or {}).get("update")
    pairs = [pair[0] for pair in update if isinstance(pair, list) and pair] if isinstance(update, list) else ()
    for name in update if isinstance(update, dict) else pairs:
        if isinstance(name, str) and name.startswith(CHANNELS):
            raise Invalid(f"command.update: {name!r} is not a key of the state", hint="name a node with command.goto")


def _require_answered_now(request: RunRequest) -> None:
    """Refuses a delayed answer: it would close its question at once, and keep the thread waiting until it arrives."""
    if request.answers and request.after_seconds:
        raise Invalid("after_seconds: an answer cannot be delayed", hint="send it without after_seconds")


def resumed_from_outside(tx: Tx, thread: Thread, request: RunRequest) -> RunRequest:
    """Translates the request of a RemoteGraph that is a node of another graph, when that graph resumes.

    It sends its node's input again, and the outer graph's answers by id in the config. Answers to this thread's
    questions become its resume command; if the questions were answered meanwhile, the thread continues without input.
    """
    named = (request.config or {}).get("configurable") or {}
    if request.command or request.cron or not isinstance(named, dict) or not named.get(RESUMING):
        return request
    given = named.get(RESUME_MAP) or {}
    if not isinstance(given, dict):
        raise Invalid(f"config.configurable.{RESUME_MAP}: not an object", hint="answers by interrupt id")
    ours = {question["id"]: given[question["id"]] for question in thread.pending if question["id"] in given}
    if ours:
        return replace(request, input=None, command={"resume": ours})
    return replace(request, input=None) if not thread.waits and _is_called_again(tx, thread, request) else request


def _is_called_again(tx: Tx, thread: Thread, request: RunRequest) -> bool:
    """Whether the thread's last input came from the same task of the outer graph."""
    task = ((request.config or {}).get("metadata") or {}).get("langgraph_checkpoint_ns")
    latest = next((run for run in runs.page(tx, thread.id, status=None, limit=50, offset=0) if not run.answers), None)
    return task is not None and latest is not None and latest.metadata.get("langgraph_checkpoint_ns") == task


def _is_bare(assistant: Assistant, request: RunRequest, before: Run, fork: dict[str, Any] | None) -> bool:
    """Whether the request is only an answer, which continues the run that asked."""
    more = request.steers or request.input or fork
    return not more and _keeps(assistant, request, before)


def _keeps(assistant: Assistant, request: RunRequest, before: Run) -> bool:
    """Whether the request keeps the assistant, config and metadata of the run that asked."""
    adds = request.configures or request.adds_to(before.metadata) or request.tags_unlike(before.kwargs["config"])
    return before.assistant_id == assistant.id and not adds


def _whose(caller: Principal, given: Answers | None, before: Run | None) -> tuple[str, Identity]:
    """The run's actor and the identity that its graph sees: those of the run that asked for a bare answer, else the
    caller's."""
    if given is None or before is None or given.asked is None:
        return caller.actor, identity_of(caller)
    requester = given.asked.requester
    return requester, identity_in(before.kwargs) if before.actor == requester else stand_in(requester)


def _asking(tx: Tx, thread: Thread, asked: Sequence[Item | None]) -> Run | None:
    """The run that asked these items; the last begun run for an item without a run. None if it was deleted, or if the
    items' runs differ in more than their input."""
    askers = [_asker(tx, thread, item) for item in asked]
    present = [run for run in askers if run is not None]
    alike = len(present) == len(askers) and all(_setting(run) == _setting(present[0]) for run in present)
    return present[0] if present and alike else None


def _asker(tx: Tx, thread: Thread, item: Item | None) -> Run | None:
    if item is None or not item.run_id:
        return runs.last_begun(tx, thread.id)
    return asker(tx, thread, item.run_id)


def _setting(run: Run) -> tuple[Any, ...]:
    return run.assistant_id, run.graph_id, run.metadata, run.kwargs["config"], run.kwargs["context"]


def _continues(assistant: Assistant, request: RunRequest, stopped_at: Item | None, before: Run | None) -> bool:
    """Whether the run approves its thread's breakpoint: it only continues. A gated breakpoint requires the settings of
    the run that stopped there."""
    if stopped_at is None or not request.continues or request.after_seconds:
        return False
    if before is None and not stopped_at.gated:
        return not request.configures and stopped_at.assistant_id in (None, assistant.id)
    plain = before is not None and _keeps(assistant, request, before)
    if stopped_at.gated and not plain:
        raise ThreadWaits(
            "the thread is stopped at a breakpoint: continue with the same assistant, without context, configurable or "
            "metadata, and before the run that stopped there is deleted",
            items=[stopped_at.id],
        )
    return plain


def _admission(
    present: Sequence[Run], thread: Thread, request: RunRequest, strategy: Strategy, *, answers: bool
) -> Admission:
    """A delayed run is admitted now without effect on other runs."""
    if request.after_seconds:
        return Admission()
    awake = [run for run in present if run.wake_at is None]
    return admit(strategy, active=awake, pending=thread.pending, answers=answers)


def _moves(request: RunRequest, admission: Admission, thread: Thread, strategy: Strategy) -> bool:
    """Whether the run would bypass the thread's question or breakpoint without answering it."""
    steered = bool(request.steers or request.checkpoint)
    stopped = not thread.waits and bool(thread.next)
    leaves = stopped and not request.after_seconds and strategy is not Strategy.ENQUEUE
    return steered or admission.drops_questions or leaves


def _leaves(request: RunRequest, stopped_at: Item | None, strategy: Strategy) -> bool:
    """Whether the run abandons the thread's breakpoint now. A gated breakpoint holds enqueued runs until its decision,
    and a delayed run is checked when it wakes."""
    if stopped_at is None or request.continues or request.after_seconds:
        return False
    return not (stopped_at.gated and strategy is Strategy.ENQUEUE)


def _fork(tx: Tx, thread: Thread, request: RunRequest) -> dict[str, Any] | None:
    """The checkpoint to continue from; None if it is the newest one."""
    wanted = request.checkpoint or {}
    ns, checkpoint_id = wanted.get("checkpoint_ns") or "", wanted.get("checkpoint_id")
    head = checkpoints.latest(tx, thread.id, ns) if checkpoint_id else None
    if not checkpoint_id or (head is not None and head.checkpoint_id == checkpoint_id):
        return None
    if checkpoints.at(tx, thread.id, ns, checkpoint_id) is None:
        raise NotFound(f"Checkpoint {checkpoint_id} not found")  # LangGraph would restart the thread
    return request.checkpoint
