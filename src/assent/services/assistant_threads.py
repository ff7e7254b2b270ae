"""Where a talk with the assistant stands, read from its thread: what it waits for, and what was said to that."""

from __future__ import annotations

from collections.abc import Sequence

from assent import dialects
from assent.domain import canonical, questions
from assent.domain.access import Principal
from assent.domain.deliveries import DeliveryStatus
from assent.domain.items import Item
from assent.domain.questions import Verdict
from assent.domain.runs import Run
from assent.domain.threads import ThreadStatus
from assent.errors import AnswerRefused, Conflict, InvalidAnswer
from assent.services.assistant_answers import Answer, verdicts_of
from assent.services.assistant_views import NO_ACTION
from assent.services.carrying import case_of
from assent.services.decision_views import decision_view
from assent.services.item_views import View, full
from assent.store import answers, decisions, deliveries, items, runs, threads
from assent.store.transaction import Tx


def asked(tx: Tx, caller: Principal, thread_id: str, answer: Answer) -> View | None:
    """The open item that an answer is meant for: of several that wait, the one that it fits best."""
    found = [full(tx, caller, item) for item in _waiting(tx, thread_id)]
    return max(found, key=answer.fits, default=None)


def stopped_for(tx: Tx, caller: Principal, thread_id: str, interrupts: Sequence[str]) -> View | None:
    """The item that the run stopped for; empty where it asks what has no item of its own."""
    for interrupt_id in interrupts:
        if (item := items.latest_of_interrupt(tx, thread_id, interrupt_id)) is not None:
            return full(tx, caller, item)
    found = _waiting(tx, thread_id)  # one that stopped before a node, and asks nothing
    return full(tx, caller, found[0]) if found else {} if interrupts else None


def standing(tx: Tx, caller: Principal, thread_id: str) -> tuple[View | None, View | None]:
    """What the thread waits for; where that is nothing, the last decision."""
    found = _waiting(tx, thread_id)
    return (full(tx, caller, found[0]), None) if found else (None, _last_decision(tx, thread_id))


def nothing_waits(tx: Tx, thread_id: str) -> AnswerRefused:
    decision = _last_decision(tx, thread_id)
    if decision is None:
        return AnswerRefused("the assistant waits for no answer", pending_action=NO_ACTION)
    return AnswerRefused("it was answered already", pending_action=NO_ACTION, decision=decision)


def failed_after(tx: Tx, caller: Principal, thread_id: str, answer: Answer) -> Run | None:
    """The run that this answer, which won, was to be the end of, where it failed and nothing has happened since."""
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
        given = dialects.encode(question, verdicts_of(full(tx, caller, item), answer))
    except (InvalidAnswer, Conflict, questions.InvalidDecision):
        return False
    return canonical.same(given, dialects.encode(question, won))


def run_of(tx: Tx, run_id: str) -> tuple[Run | None, bool]:
    """The run, and whether it will never be: what should have begun it has failed for good, or is gone."""
    run = runs.get(tx, run_id)
    if run is not None:
        return run, False
    delivery = deliveries.get(tx, run_id)
    return None, delivery is None or delivery.status in (DeliveryStatus.FAILED, DeliveryStatus.DELIVERED)


def _waiting(tx: Tx, thread_id: str) -> list[Item]:
    """What the thread waits for, looked at without a lock: whoever decides takes that."""
    return items.open_of_thread(tx, thread_id, lock=False) or items.in_doubt_of_thread(tx, thread_id)


def _answered_last(tx: Tx, thread_id: str) -> Item | None:
    given = answers.latest(tx, thread_id)
    return items.latest_of_interrupt(tx, thread_id, given.interrupt_id) if given else None


def _last_decision(tx: Tx, thread_id: str) -> View | None:
    """Of what the thread still asks, or else of what it asked last."""
    thread, given = threads.get(tx, thread_id), answers.latest(tx, thread_id)
    ids = [str(one["id"]) for one in (thread.pending if thread else [])] + ([given.interrupt_id] if given else [])
    for interrupt_id in ids:
        item = items.latest_of_interrupt(tx, thread_id, interrupt_id)
        if item is not None and (decision := decisions.closing(tx, item.id)) is not None:
            return decision_view(tx, decision)
    return None
