"""Reads the state of a conversation from its thread: pending items and decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assent.assistant.talk.answers import Answer, verdicts_of
from assent.assistant.talk.views import NO_ACTION, pending_action
from assent.errors import AnswerRefused, Conflict, InvalidAnswer, InvalidDecision
from assent.identity.model.access import Principal
from assent.kernel import canonical
from assent.kernel.store.transaction import Tx
from assent.outbox import deliveries
from assent.outbox.model import DeliveryStatus
from assent.review import dialects
from assent.review.decisions.consequences import case_of
from assent.review.decisions.views import decision_view
from assent.review.item_views import View, full
from assent.review.model.items import Item
from assent.review.model.questions import Verdict
from assent.review.rows import decisions, items
from assent.threads.model.runs import Run, RunStatus
from assent.threads.model.threads import ThreadStatus
from assent.threads.rows import answers, runs, threads


def asked(tx: Tx, caller: Principal, thread_id: str, answer: Answer) -> View | None:
    """The open item that an answer is for: of several, the one that it fits best."""
    views = [full(tx, caller, item) for item in _waiting(tx, thread_id)]
    return max(views, key=answer.fits, default=None)


def stopped_for(tx: Tx, caller: Principal, thread_id: str, interrupts: Sequence[str]) -> View | None:
    """The item that the run stopped for; empty if its question has no item."""
    for interrupt_id in interrupts:
        if (item := items.latest_of_interrupt(tx, thread_id, interrupt_id)) is not None:
            return full(tx, caller, item)
    waiting = _waiting(tx, thread_id)  # a run that stopped before a node, without a question
    return full(tx, caller, waiting[0]) if waiting else {} if interrupts else None


def in_doubt(tx: Tx, caller: Principal, thread_id: str) -> View | None:
    """The item whose call was lost while it ran."""
    doubts = items.left_in_doubt(tx, thread_id)
    return full(tx, caller, doubts[0]) if doubts else None


@dataclass(frozen=True, slots=True)
class Standing:
    """The activity of a conversation."""

    waiting: Sequence[Item]
    """The pending items, oldest first, then those whose call was lost while it ran."""

    active: Sequence[Run]
    run_id: str | None
    """The run at work, or the one that an answer is about to start."""

    failed: Run | None
    """The last run, if it failed."""


def standing(tx: Tx, thread_id: str) -> Standing:
    waiting = [*items.open_of_thread(tx, thread_id, lock=False), *items.left_in_doubt(tx, thread_id)]
    active = runs.active(tx, thread_id)
    run_id = active[0].id if active else deliveries.resuming(tx, thread_id)
    last = next(iter(runs.page(tx, thread_id, status=None, limit=1, offset=0)), None)
    failed = last if last and last.status in (RunStatus.ERROR, RunStatus.TIMEOUT) else None
    return Standing(tuple({item.id: item for item in waiting}.values()), active, run_id, failed)


def pending_or_decided(tx: Tx, caller: Principal, thread_id: str) -> tuple[View | None, View | None]:
    """The pending item; without one, the last decision."""
    waiting = _waiting(tx, thread_id)
    return (full(tx, caller, waiting[0]), None) if waiting else (None, _last_decision(tx, thread_id))


def nothing_waits(tx: Tx, caller: Principal, thread_id: str) -> AnswerRefused:
    if (doubt := in_doubt(tx, caller, thread_id)) is not None:
        action = pending_action(doubt)
        return AnswerRefused(f"it was answered already, and {action['message']}", pending_action=action)
    decision = _last_decision(tx, thread_id)
    if decision is None:
        return AnswerRefused("the assistant is not waiting for an answer", pending_action=NO_ACTION)
    return AnswerRefused("it was answered already", pending_action=NO_ACTION, decision=decision)


def failed_after(tx: Tx, caller: Principal, thread_id: str, answer: Answer) -> Run | None:
    """The failed run after this answer, if the answer was the decision and nothing has happened since."""
    thread, item = threads.get(tx, thread_id), _answered_last(tx, thread_id)
    last = next(iter(runs.page(tx, thread_id, status=None, limit=1, offset=0)), None)
    if thread is None or thread.status is not ThreadStatus.ERROR or last is None or last.kwargs.get("input"):
        return None
    decision = decisions.closing(tx, item.id) if item else None
    if item is None or decision is None or not _says_the_same(tx, caller, item, answer, decision.verdicts):
        return None
    return last


def _says_the_same(tx: Tx, caller: Principal, item: Item, answer: Answer, won: Sequence[Verdict]) -> bool:
    question = case_of(tx, item).question
    try:
        encoded = dialects.encode(question, verdicts_of(full(tx, caller, item), answer))
    except (InvalidAnswer, Conflict, InvalidDecision):
        return False
    return canonical.same(encoded, dialects.encode(question, won))


def run_of(tx: Tx, run_id: str) -> tuple[Run | None, bool]:
    """The run, and whether it will never start: its delivery has failed permanently or is gone."""
    run = runs.get(tx, run_id)
    if run is not None:
        return run, False
    delivery = deliveries.get(tx, run_id)
    return None, delivery is None or delivery.status in (DeliveryStatus.FAILED, DeliveryStatus.DELIVERED)


def _waiting(tx: Tx, thread_id: str) -> list[Item]:
    """The thread's pending items, read without a lock: the decision takes it."""
    return items.open_of_thread(tx, thread_id, lock=False) or items.in_doubt_of_thread(tx, thread_id)


def _answered_last(tx: Tx, thread_id: str) -> Item | None:
    latest = answers.latest(tx, thread_id)
    return items.latest_of_interrupt(tx, thread_id, latest.interrupt_id) if latest else None


def _last_decision(tx: Tx, thread_id: str) -> View | None:
    """The decision on a pending question of the thread, else on its last one."""
    thread, latest = threads.get(tx, thread_id), answers.latest(tx, thread_id)
    ids = [str(pending["id"]) for pending in (thread.pending if thread else [])]
    for interrupt_id in [*ids, *([latest.interrupt_id] if latest else [])]:
        item = items.latest_of_interrupt(tx, thread_id, interrupt_id)
        if item is not None and (decision := decisions.closing(tx, item.id)) is not None:
            return decision_view(tx, decision)
    return None
