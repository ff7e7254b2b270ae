"""Starts a run in one transaction: cancels the runs it replaces, inserts its row and enqueues it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from assent.errors import NotFound
from assent.identity.model.access import Principal
from assent.kernel.ids import new_id
from assent.kernel.quotas import quotas
from assent.kernel.store.transaction import Tx
from assent.review import thread_items
from assent.review.model.items import Item
from assent.review.threads import chosen_ids, withdrawal
from assent.review.threads.answers import record_answers
from assent.review.threads.breakpoints import pass_breakpoint
from assent.runs import cancellation
from assent.runs.admission import Arrival, arrive, resumed_from_outside
from assent.runs.continuation import note_configuration
from assent.threads.model.assistants import Assistant
from assent.threads.model.configs import DECISION, LIMITS, clean_configurable, clean_metadata, clean_run_metadata, merge
from assent.threads.model.identities import Identity, stand_in
from assent.threads.model.runs import Cancel, Cancelled, Run, Strategy, durable, either
from assent.threads.model.threads import Thread, ThreadStatus
from assent.threads.rows import contributors, runs, threads
from assent.threads.run_requests import Place, RunRequest

NO_THREAD = "Thread or assistant not found."


def start(
    tx: Tx,
    caller: Principal,
    assistant: Assistant,
    request: RunRequest,
    strategy: Strategy,
    place: Place,
    run_id: str,
    locked: Thread | None,
) -> tuple[Run, Cancelled]:
    """The new run, and the runs that it replaces. `locked`: the thread, if there is one. Answers are exempt from the
    quota, since they end a wait."""
    thread = _thread_for(tx, caller, assistant, request, place, locked)
    request = resumed_from_outside(tx, thread, request)
    if not request.answers:
        quotas.require_run(tx)
    stopped = _stop_answers(tx, caller, request, strategy, thread)
    arrival = arrive(tx, caller, assistant, request, strategy, thread)
    replaced = _replace(tx, arrival, stopped)
    if arrival.drops_questions:
        thread_items.supersede_questions(tx, thread.id, caller.actor)
    run = _insert(tx, arrival, run_id, _kwargs(arrival, temporary=place.thread_id is None))
    _record_contributions(tx, arrival, run_id)
    waits = not arrival.drops_questions and runs.is_held(tx, thread)
    _enqueue(tx, run, waits=waits, present=None if arrival.admission.by else [*arrival.present, run])
    return run, replaced


def start_continuation(
    tx: Tx,
    run_id: str,
    thread: Thread,
    before: Run,
    asked: Item | None,
    command: dict[str, Any] | None,
    said: Sequence[Mapping[str, Any]] = (),
) -> Run:
    """Starts the run that delivers a decision to its thread: with the settings of the run before it, and the answer as
    its input. Its metadata has the comments (`said`) on the question. Its actor is the requester of the item."""
    kwargs = {**before.kwargs, "input": None, "command": command, "checkpoint": None}
    kwargs = durable(kwargs) if asked is not None and asked.gated else kwargs
    actor = asked.requester if asked is not None and asked.requester != "system" else before.actor
    if actor != before.actor:
        kwargs["config"] = _as(kwargs["config"], stand_in(actor))
    runs.insert_pending(
        tx,
        run_id,
        thread.id,
        assistant_id=before.assistant_id,
        graph_id=before.graph_id,
        actor=actor,
        answers=True,
        passes=thread_items.heads_of(tx, asked, thread) if asked is not None and command is None else None,
        wake_at=None,
        temporary=before.temporary,
        multitask_strategy=Strategy.ENQUEUE,
        metadata=_with_comments(before.metadata, asked, said),
        kwargs=kwargs,
        webhook=before.webhook,
    )
    run = _inserted(tx, run_id)
    _enqueue(tx, run, waits=runs.is_held(tx, thread), present=None)
    return run


def _with_comments(
    metadata: Mapping[str, Any], asked: Item | None, said: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Without the comments of an earlier decision."""
    kept = {name: value for name, value in metadata.items() if name != DECISION}
    return {**kept, DECISION: {"item_id": asked.id, "comments": list(said)}} if asked and said else kept


def _thread_for(
    tx: Tx, caller: Principal, assistant: Assistant, request: RunRequest, place: Place, locked: Thread | None
) -> Thread:
    """The locked thread, or a new one if the request allows. A thread without a graph gets the graph of its first run
    now; other threads get it when the run begins."""
    stamp = {"graph_id": assistant.graph_id, "assistant_id": assistant.id}
    thread_id, visible = place.thread_id, place.visible
    if thread_id is None or (request.create_thread and locked is None):
        if thread_id is not None:
            chosen_ids.require_free(tx, caller, thread_id)
        thread_id, visible = thread_id or new_id(), None  # a caller sees the threads that they make
        metadata = {**clean_metadata(request.metadata), **stamp}
        threads.insert(tx, thread_id, metadata, owner=caller.actor, visibility=place.visibility)
        if lifetime := request.lifetime or place.lifetime:
            threads.set_lifetime(tx, thread_id, lifetime)
    thread = locked or threads.lock(tx, thread_id, values=False)
    if thread is None or not thread.shown_to(visible):
        raise NotFound(NO_THREAD)
    if thread.graph_id is None:
        threads.set_metadata(tx, thread_id, {**thread.metadata, **stamp})
    return thread


def _stop_answers(
    tx: Tx, caller: Principal, request: RunRequest, strategy: Strategy, thread: Thread
) -> tuple[Run, ...]:
    """Withdraws, as the caller, the answers of superseded runs that have not begun. Admission of the new run then sees
    the reopened questions."""
    if request.answers or request.after_seconds or strategy not in (Strategy.INTERRUPT, Strategy.ROLLBACK):
        return ()
    present = runs.active(tx, thread.id)
    for run in present:
        withdrawal.stop(tx, caller, run)
    unbegun = [run for run in present if withdrawal.is_unbegun(run)]
    return cancellation.cancel_all(tx, unbegun, Cancel(strategy.value)).over


def _replace(tx: Tx, arrival: Arrival, stopped: tuple[Run, ...]) -> Cancelled:
    """Cancels the superseded runs; those with an answer were `stopped` before."""
    admission = arrival.admission
    replaced = cancellation.cancel_all(tx, admission.supersedes, admission.by) if admission.by else Cancelled()
    return replace(replaced, over=(*stopped, *replaced.over))


def _insert(tx: Tx, arrival: Arrival, run_id: str, kwargs: dict[str, Any]) -> Run:
    request, assistant = arrival.request, arrival.assistant
    wake_at = tx.now() + timedelta(seconds=request.after_seconds) if request.after_seconds else None
    runs.insert_pending(
        tx,
        run_id,
        arrival.thread.id,
        assistant_id=assistant.id,
        graph_id=arrival.before.graph_id if arrival.before else assistant.graph_id,
        actor=arrival.actor,
        answers=request.answers or arrival.continues,
        passes=_passes(tx, arrival),
        wake_at=wake_at,
        temporary=kwargs["temporary"] and not request.keep_thread,
        multitask_strategy=arrival.strategy,
        metadata=arrival.before.metadata if arrival.before else _metadata(assistant, arrival.thread, request),
        kwargs=kwargs,
        webhook=request.webhook,
        **({"created_at": wake_at} if wake_at else {}),
    )
    return _inserted(tx, run_id)


def _passes(tx: Tx, arrival: Arrival) -> str | None:
    if not arrival.continues or arrival.stopped_at is None:
        return None
    return pass_breakpoint(tx, arrival.caller, arrival.thread, arrival.stopped_at)


def _inserted(tx: Tx, run_id: str) -> Run:
    run = runs.get(tx, run_id)
    assert run is not None
    return run


def _record_contributions(tx: Tx, arrival: Arrival, run_id: str) -> None:
    """Records the run's answers, and its caller as a contributor unless the run only answers or continues."""
    if arrival.given is not None:
        record_answers(tx, arrival.caller, arrival.thread, run_id, arrival.given)
    if not arrival.continues and not arrival.bare:
        contributors.add(tx, arrival.thread.id, arrival.caller.actor)
    if arrival.before is None:
        note_configuration(tx, arrival.assistant, arrival.thread.id)
    if arrival.fork is not None:
        contributors.recall(tx, arrival.thread.id)


def _enqueue(tx: Tx, run: Run, *, waits: bool, present: Sequence[Run] | None) -> None:
    if run.wake_at is not None:
        return tx.hand_over(run.id, run.wake_at)
    head = runs.promote(tx, run.thread_id, waits=waits, present=present)
    if head is not None or not waits:
        threads.set_status(tx, run.thread_id, ThreadStatus.BUSY)


def _metadata(assistant: Assistant, thread: Thread, request: RunRequest) -> dict[str, Any]:
    asked = (request.config or {}).get("metadata") or {}
    merged = {**assistant.metadata, **thread.metadata, **asked, **request.metadata}
    return {**clean_run_metadata(merged), **request.cron, "graph_id": assistant.graph_id, "assistant_id": assistant.id}


def _as(config: dict[str, Any], identity: Identity) -> dict[str, Any]:
    return {**config, "configurable": {**config["configurable"], **identity}}


def _kwargs(arrival: Arrival, *, temporary: bool) -> dict[str, Any]:
    request = arrival.request
    config, context = _setting(arrival)
    cron = {name: id for name, id in request.cron.items() if name == "cron_id"}
    asked = kwargs_of(request, _as(config, {**arrival.identity, **cron}), context)
    given = {
        "input": None if request.answers and not request.input else request.input,
        "command": arrival.given.command if arrival.given else request.command,
        "checkpoint": arrival.fork,
        "temporary": temporary,
        **_stops(arrival),
    }
    return durable(asked | given) if _is_durable(arrival) else asked | given


def kwargs_of(request: RunRequest, config: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """The stored arguments of a run, without its input, command and checkpoint."""
    return {
        "input": None,
        "command": None,
        "checkpoint": None,
        "config": config,
        "context": context,
        "stream_mode": list(request.stream_mode),
        "interrupt_before": request.interrupt_before,
        "interrupt_after": request.interrupt_after,
        "webhook": request.webhook,
        "feedback_keys": None,
        "temporary": False,
        "subgraphs": request.stream_subgraphs,
        "resumable": request.stream_resumable,
        "checkpoint_during": request.durability != "exit",
        "durability": request.durability,
    }


def _setting(arrival: Arrival) -> tuple[dict[str, Any], dict[str, Any]]:
    """The config and the context. A continuation keeps those of the earlier run, even if the assistant has changed;
    only its limits may differ."""
    request, assistant, before = arrival.request, arrival.assistant, arrival.before
    if before is not None:
        limits = {name: value for name, value in (request.config or {}).items() if name in LIMITS}
        return {**before.kwargs["config"], **limits}, before.kwargs["context"]
    config, context = merge(request.config, request.context, {"config": assistant.config, "context": assistant.context})
    headers = clean_configurable(request.headers)
    return {**config, "configurable": {**config["configurable"], **headers}}, context


def _stops(arrival: Arrival) -> dict[str, Any]:
    """The breakpoints of the request and of the run that it continues."""
    before = arrival.before.kwargs if arrival.before else {}
    asked = {name: getattr(arrival.request, name) for name in ("interrupt_before", "interrupt_after")}
    return {name: either(before.get(name), named) for name, named in asked.items()}


def _is_durable(arrival: Arrival) -> bool:
    """Whether the continued run is durable. The assistant may name another graph now."""
    return arrival.before is not None and arrival.before.kwargs.get("durability") == "sync"
