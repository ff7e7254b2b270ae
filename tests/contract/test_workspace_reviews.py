"""Workspace reviews on real databases: one item per run, whatever comes at once and in whatever order."""

from functools import partial
from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError

from assent.errors import Conflict
from assent.kernel.store.transaction import Tx
from assent.outbox import deliveries
from assent.review import thread_items
from assent.review.decisions import decide
from assent.review.model.items import Item, ItemStatus
from assent.review.model.questions import Verb
from assent.review.rows import items
from assent.review.workspace_reviews import ReviewRequest, _request
from assent.threads.model.runs import Run, Strategy
from assent.threads.rows import runs, threads
from tests.contract.asks import agent, person, proposal
from tests.contract.stores import AnyStore, all_at_once, both_databases

ACME = "acme"
ANA = person("ana", ACME)
EVENT = ReviewRequest("run", "Look", callback="https://example.com/wake")
REVIEW = {"kind": "workspace_review", "body": "Look"}


def paused(tx: Tx, *questions: Any, run_id: str = "run") -> list[Item]:
    """A run of a thread of its own has stopped at these questions."""
    threads.insert(tx, f"thread of {run_id}", {"graph_id": "g"})
    run = _run(tx, run_id)
    pending = [{"id": f"{run_id}-{number}", "value": value} for number, value in enumerate(questions)]
    thread_items.follow(tx, thread_items.Waiting(run.thread_id, pending, graph_id="g", run=run))
    return items.open_of_thread(tx, run.thread_id)


def _run(tx: Tx, run_id: str) -> Run:
    columns: dict[str, Any] = {"assistant_id": "a", "graph_id": "g", "actor": "agent:x", "answers": False}
    columns |= {"temporary": False, "multitask_strategy": Strategy.REJECT, "metadata": {}, "kwargs": {}}
    runs.insert_pending(tx, run_id, f"thread of {run_id}", wake_at=None, webhook=None, **columns)
    run = runs.get(tx, run_id)
    assert run is not None
    return run


@pytest.mark.promise("REVIEW-36")
@both_databases
async def test_concurrent_events_make_one_item_of_one_agent(store: AnyStore) -> None:
    callers = [agent(ACME, f"agent-{number % 4}") for number in range(12)]
    tries = [partial(_request, caller=caller, request=EVENT) for caller in callers]
    outcomes = await all_at_once(store, ACME, *tries)
    answered = [outcome for outcome in outcomes if isinstance(outcome, tuple)]
    assert len(answered) == 3, "the events of the first agent"
    assert len([outcome for outcome in outcomes if isinstance(outcome, Conflict)]) == 9
    assert len({item.id for item, _ in answered}) == 1
    assert [fresh for _, fresh in answered].count(True) == 1
    other, fresh = await store.write("other", _request, agent("other"), EVENT)
    assert fresh, "a run of another tenant is another run"
    assert other.id != answered[0][0].id


@pytest.mark.promise("REVIEW-36")
@both_databases
async def test_database_refuses_a_second_item_of_a_run(store: AnyStore) -> None:
    """The control: without the look for an existing item, the index stops it."""
    item, _ = await store.write(ACME, _request, agent(ACME), EVENT)

    def insert_again(tx: Tx) -> None:
        other, _ = _request(tx, agent(ACME), ReviewRequest("another", "Look"))
        items.change(tx, other, workspace_run_id=item.workspace_run_id)

    with pytest.raises(IntegrityError):
        await store.write(ACME, insert_again)


@both_databases
async def test_event_before_the_pause_does_not_stop_the_run(store: AnyStore) -> None:
    """An event with the id of a later run takes the place of its item, but the question still has one."""
    before, _ = await store.write(ACME, _request, agent(ACME), EVENT)
    [item] = await store.write(ACME, paused, REVIEW)
    assert (item.workspace_run_id, item.entity_id, item.type) == (None, "run", "workspace_review")
    assert item.id != before.id


@both_databases
async def test_two_reviews_of_one_run_at_once_are_two_items(store: AnyStore) -> None:
    both = await store.write(ACME, paused, REVIEW, {**REVIEW, "body": "And this"})
    assert sorted(str(item.workspace_run_id) for item in both) == ["None", "run"]
    assert {item.entity_id for item in both} == {"run"}


@pytest.mark.promise("REVIEW-37", "REVIEW-38", "REVIEW-40")
@both_databases
@pytest.mark.parametrize(("verb", "wakes"), [(Verb.APPROVE, 1), (Verb.REJECT, 0)])
async def test_decision_and_wake_up_are_one_transaction(store: AnyStore, verb: Verb, wakes: int) -> None:
    """Of ten deciders at once one wins; its wake-up is there or not with its decision, also for one rolled back."""
    item, _ = await store.write(ACME, _request, agent(ACME), EVENT)

    def fail(tx: Tx) -> None:
        decide.decide(tx, ANA, item.id, proposal(item, verb))
        raise ValueError("crash")

    with pytest.raises(ValueError, match="crash"):
        await store.write(ACME, fail)
    assert await _sent(store, item) == 0
    people = [person(f"p{number}", ACME) for number in range(10)]
    tries = [partial(decide.decide, caller=who, item_id=item.id, proposal=proposal(item, verb)) for who in people]
    outcomes = await all_at_once(store, ACME, *tries)
    assert len([outcome for outcome in outcomes if isinstance(outcome, Item)]) == 1
    assert await _sent(store, item) == wakes
    decided = await store.read(ACME, items.get, item.id)
    assert decided is not None
    assert decided.status is (ItemStatus.APPROVED if wakes else ItemStatus.REJECTED)


async def _sent(store: AnyStore, item: Item) -> int:
    page = await store.read(ACME, deliveries.page, status=None, subject=item.subject, limit=50, cursor=None)
    return len(page.items)
