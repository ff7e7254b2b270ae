"""Items on real databases: how they follow their threads, and what happens when many come at once."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy.exc import DBAPIError, IntegrityError

from assent.audit.service import Audit
from assent.errors import AlreadyDecided, Conflict, KeyReused, StaleRevision
from assent.identity.model.access import operator
from assent.kernel import events
from assent.kernel.ids import new_id
from assent.kernel.store import idempotency
from assent.kernel.store.drivers.postgres import PostgresStore
from assent.kernel.store.transaction import Tx
from assent.outbox import deliveries
from assent.review import requests, thread_items
from assent.review.decisions import decide, undo
from assent.review.model.items import HERE, Item, ItemStatus, Revision
from assent.review.model.policies import from_json
from assent.review.model.questions import Resolution, Verb, Verdict
from assent.review.model.search.filters import parse
from assent.review.requests import Request
from assent.review.rows import decisions, item_search, items, policies
from assent.threads.model.runs import Strategy
from assent.threads.rows import runs
from tests.contract.asks import agent, confirmation, person, proposal, wait_for
from tests.contract.stores import AnyStore, all_at_once

ACME = "acme"
ANA, BEN = person("ana", ACME), person("ben", ACME)
PAY = confirmation("c", "pay", {"n": 1})


async def one(store: AnyStore, question: Any = PAY, thread: str = "t", *, tenant: str = ACME) -> Item:
    [item] = await store.write(tenant, wait_for, thread, i=question)
    return item


async def statuses(store: AnyStore, thread: str = "t") -> list[tuple[str, str | None]]:
    def read(tx: Tx) -> list[tuple[str, str | None]]:
        page = item_search.page(tx, parse(f"thread:{thread}"), "nobody", None, sort="created_at", limit=50, cursor=None)
        return [(item.status, item.resolution) for item in page.items]

    return await store.read(ACME, read)


async def test_items_are_found_by_id_prefix(store: AnyStore) -> None:
    first, second = await one(store), await one(store, thread="another")

    async def found(ids: str) -> list[str]:
        page = await store.read(ACME, item_search.page, parse(ids), "x", None, sort="created_at", limit=9, cursor=None)
        return [item.id for item in page.items]

    for length in (8, 9, 13, 14, 20, 36):
        beginning = first.id[:length]
        assert await found(f"id:{beginning}") == [item.id for item in (first, second) if item.id.startswith(beginning)]
    assert await found(f"id:{first.id},{second.id}") == [first.id, second.id]
    assert await found(f"is:pending id:{second.id.upper()}") == [second.id]
    for nothing in ("id:", "id:00000000", "id:nonsense", f"is:resolved id:{first.id}"):
        assert await found(nothing) == []


# Following


async def test_the_same_question_is_the_same_item(store: AnyStore) -> None:
    first = await one(store)
    assert await one(store) == first
    assert [event.kind for event, _ in await store.read(ACME, events.of_subject, first.subject)] == ["item.created"]


@pytest.mark.promise("P5")
async def test_another_question_under_the_same_id_is_the_next_revision(store: AnyStore) -> None:
    first = await one(store)
    second = await one(store, confirmation("c", "pay", {"n": 2}))
    assert (second.id, second.revision, second.status) == (first.id, 2, ItemStatus.PENDING)
    assert second.hash != first.hash
    with pytest.raises(StaleRevision) as stale:
        await store.write(ACME, decide.decide, ANA, first.id, proposal(first, Verb.APPROVE))
    assert stale.value.extra == {"revision": 2, "hash": second.hash}
    kept = await store.read(ACME, items.revisions, first.id)
    assert [revision.asked for revision in kept] == [PAY, confirmation("c", "pay", {"n": 2})]
    assert [revision.hash for revision in kept] == [first.hash, second.hash]


async def test_edit_of_a_reviewer_is_kept_when_the_thread_asks_again(store: AnyStore) -> None:
    item = await one(store)
    edit = Verdict("0", Verb.EDIT, args={"n": 5})
    said = proposal(item, verdicts=(edit,), grace=timedelta(seconds=60))
    decided = await store.write(ACME, decide.decide, ANA, item.id, said)
    assert (decided.revision, decided.status) == (2, ItemStatus.APPROVED)
    await store.write(ACME, wait_for, "t", i=PAY)
    assert await statuses(store) == [("APPROVED", "edited")], "it is on its way: nobody is asked again"


@pytest.mark.parametrize(
    "question", [None, 0, "", [], {}, False, "x" * 9000, {"kind": "confirmation"}, [{"a": 1}] * 50]
)
async def test_any_question_is_stored_unchanged(store: AnyStore, question: Any) -> None:
    item = await one(store, question)
    kept = await store.read(ACME, items.revision, item.id, 1)
    assert (kept.asked, kept.hash) == (question, item.hash)
    assert await one(store, question) == item


async def test_item_whose_question_is_gone_is_closed(store: AnyStore) -> None:
    await store.write(ACME, wait_for, "t", a=PAY, b="Why?")
    left = await store.write(ACME, wait_for, "t", b="Why?")
    assert [item.interrupt_id for item in left] == ["b"]
    assert sorted(await statuses(store)) == [("CANCELLED", "superseded"), ("PENDING", None)]
    assert await store.write(ACME, wait_for, "t") == []
    assert sorted(await statuses(store)) == [("CANCELLED", "superseded"), ("CANCELLED", "thread_ended")]


async def test_end_of_a_thread_closes_open_and_undelivered_items(store: AnyStore) -> None:
    decided = await one(store)
    await store.write(ACME, decide.decide, ANA, decided.id, proposal(decided, Verb.REJECT, message="no"))
    await store.write(ACME, wait_for, "t", i=PAY, j="Why?")
    await store.write(ACME, thread_items.end, "t", Resolution.THREAD_ENDED, "reviewer:ana")
    assert sorted(await statuses(store)) == [("CANCELLED", "thread_ended"), ("REJECTED", "thread_ended")]


async def test_undelivered_revision_request_is_not_treated_as_answered(store: AnyStore) -> None:
    """Another question of the thread was answered meanwhile: this one was not asked anew."""
    [item, _] = await store.write(ACME, wait_for, "t", i=PAY, j="Why?")
    sent_back = await store.write(
        ACME,
        decide.ask_for_revision,
        ANA,
        item.id,
        item.revision,
        item.hash,
        "cheaper",
        grace=timedelta(seconds=60),
        via="rest",
    )
    [still] = await store.write(ACME, wait_for, "t", i=PAY)
    assert (still.status, still.revision) == (ItemStatus.REVISION_REQUESTED, 1)
    assert still.updated_at == sent_back.updated_at


# Only one


async def test_no_question_has_two_open_items(store: AnyStore) -> None:
    item = await one(store)

    def another(tx: Tx) -> None:
        columns = {name: getattr(item, name) for name in ("type", "dialect", "title", "gated", "policy", "requester")}
        same = {"deployment": HERE, "thread_id": "t", "interrupt_id": "i"}
        items.insert(tx, new_id(), Revision(1, PAY), **columns, **same)

    with pytest.raises(IntegrityError):
        await store.write(ACME, another)


@pytest.mark.promise("P4")
async def test_concurrent_decisions_have_one_winner(store: AnyStore) -> None:
    item = await one(store)
    people = [person(f"p{number}", ACME) for number in range(12)]
    verbs = [Verb.APPROVE, Verb.REJECT]
    tries = [
        partial(
            decide.decide,
            caller=who,
            item_id=item.id,
            proposal=proposal(item, verbs[n % 2], message="no" if n % 2 else None),
        )
        for n, who in enumerate(people)
    ]
    outcomes = await all_at_once(store, ACME, *tries)
    won = [outcome for outcome in outcomes if isinstance(outcome, Item)]
    assert len(won) == 1
    closing = await store.read(ACME, decisions.closing, item.id)
    assert closing is not None
    for lost in outcomes:
        if lost is not won[0]:
            assert isinstance(lost, AlreadyDecided)
            assert lost.extra["decision"]["id"] == closing.id
    told = [event.kind for event, _ in await store.read(ACME, events.of_subject, item.subject)]
    assert len(told) == 2
    assert (await Audit(store).verify(operator(ACME))).breaks == []


@pytest.mark.promise("P4")
async def test_two_concurrent_approvals_are_both_counted(store: AnyStore) -> None:
    two = from_json({"default": {"name": "two", "then": "ask", "approvals": 2}})
    await store.write(ACME, policies.put, two, source="test", actor="system")
    item = await one(store)
    tries = [
        partial(decide.decide, caller=who, item_id=item.id, proposal=proposal(item, Verb.APPROVE))
        for who in (ANA, ANA, BEN, ANA)
    ]
    outcomes = await all_at_once(store, ACME, *tries)
    assert len([outcome for outcome in outcomes if isinstance(outcome, Item)]) == 2
    assert len([outcome for outcome in outcomes if isinstance(outcome, Conflict)]) == 2
    kept = await store.read(ACME, decisions.of_item, item.id)
    assert sorted(memory_item.actor for memory_item in kept) == ["reviewer:ana", "reviewer:ben"]
    assert [memory_item.closes for memory_item in kept].count(True) == 1


async def test_concurrent_requests_with_one_dedupe_key_make_one_item(store: AnyStore) -> None:
    asked = Request("t", "title", payload={"n": 1}, dedupe_key="d")
    outcomes = await all_at_once(
        store, ACME, *(partial(requests.create, caller=agent(ACME), request=asked) for _ in range(8))
    )
    assert all(isinstance(outcome, tuple) for outcome in outcomes), outcomes
    assert len({item.id for item, _ in outcomes}) == 1
    assert [fresh for _, fresh in outcomes].count(True) == 1


@pytest.mark.promise("P3")
async def test_concurrent_requests_with_one_idempotency_key_act_once(store: AnyStore) -> None:
    def act(tx: Tx) -> dict[str, str]:
        items.add_comment(tx, "item", comment := new_id(), "ana", "text")
        return {"comment": comment}

    tries = [partial(idempotency.once, actor="ana", key="k", request={"a": 1}, act=act) for _ in range(8)]
    outcomes = await all_at_once(store, ACME, *tries)
    assert len({str(outcome) for outcome in outcomes}) == 1, outcomes
    assert len(await store.read(ACME, items.comments_of, "item")) == 1
    with pytest.raises(KeyReused):
        await store.write(ACME, idempotency.once, "ana", "k", {"a": 2}, act)
    for other in ({"actor": "ben"}, {"key": "other"}):
        given: dict[str, Any] = {"actor": "ana", "key": "k", "request": {"a": 2}, "act": act, **other}
        await store.write(ACME, idempotency.once, **given)
    await store.write("other", idempotency.once, "ana", "k", {"a": 3}, act)
    assert len(await store.read(ACME, items.comments_of, "item")) == 3


@pytest.mark.promise("P3")
async def test_failure_is_not_stored_under_the_idempotency_key(store: AnyStore) -> None:
    def fail(tx: Tx) -> None:
        raise Conflict("no")

    with pytest.raises(Conflict):
        await store.write(ACME, idempotency.once, "ana", "k", {}, fail)
    assert await store.write(ACME, idempotency.once, "ana", "k", {}, lambda tx: {"fine": True}) == {"fine": True}


@pytest.mark.promise("P10")
async def test_tenants_with_the_same_ids_stay_separate(store: AnyStore) -> None:
    mine, theirs = await one(store), await one(store, tenant="other")
    assert await store.read("other", items.get, mine.id) is None
    await store.write(ACME, thread_items.end, "t")
    still = await store.read("other", items.get, theirs.id)
    assert still is not None
    assert still.status is ItemStatus.PENDING
    page = await store.read("other", item_search.page, parse(""), "x", None, sort="created_at", limit=9, cursor=None)
    assert [item.id for item in page.items] == [theirs.id]


async def test_an_undone_decision_is_not_sent(store: AnyStore) -> None:
    item = await one(store)
    said = proposal(item, Verb.APPROVE, grace=timedelta(seconds=60))
    await store.write(ACME, decide.decide, ANA, item.id, said)
    undone = await store.write(ACME, undo.undo, ANA, item.id)
    assert (undone.status, undone.hash, undone.due) == (ItemStatus.PENDING, item.hash, item.due)
    assert not await store.read(ACME, thread_items.is_answered, undone)
    assert await one(store) == undone


async def test_undo_on_a_deleted_thread_is_refused(store: AnyStore) -> None:
    item = await one(store)
    said = proposal(item, Verb.APPROVE, grace=timedelta(seconds=60))
    await store.write(ACME, decide.decide, ANA, item.id, said)
    await store.write(ACME, thread_items.remove_thread, "t")
    with pytest.raises(Conflict):
        await store.write(ACME, undo.undo, ANA, item.id)


async def test_question_is_asked_again_when_its_delivered_answer_failed(store: AnyStore) -> None:
    """Its run is over before the outbox has written down that it was delivered."""
    item = await one(store)
    await store.write(ACME, decide.decide, ANA, item.id, proposal(item, Verb.APPROVE))
    assert await store.write(ACME, wait_for, "t", i=PAY) == [], "still on its way"
    page = await store.read(ACME, deliveries.page, status=None, subject=item.subject, limit=9, cursor=None)
    [delivery] = page.items

    def carry(tx: Tx) -> None:
        facts = {"assistant_id": "a", "graph_id": "g", "actor": "agent:a", "answers": True, "wake_at": None}
        more = {
            "temporary": False,
            "multitask_strategy": Strategy.ENQUEUE,
            "metadata": {},
            "kwargs": {},
            "webhook": None,
        }
        runs.insert_pending(tx, delivery.id, "t", **facts, **more)

    await store.write(ACME, carry)
    [again] = await store.write(ACME, wait_for, "t", i=PAY)
    assert (again.follows, again.revision) == (item.id, 1)


async def test_reading_open_items_takes_no_lock(store: AnyStore) -> None:
    item = await one(store)
    stored_item = await store.read(ACME, items.open_of_thread, "t", lock=False)
    assert stored_item == await store.write(ACME, items.open_of_thread, "t") == [item]
    if isinstance(store, PostgresStore):  # the control: a transaction that only reads cannot take one
        with pytest.raises(DBAPIError, match="read-only"):
            await store.read(ACME, items.open_of_thread, "t")
