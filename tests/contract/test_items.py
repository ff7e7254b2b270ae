"""Items on real databases: how they follow their threads, and what happens when many come at once."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy.exc import DBAPIError, IntegrityError

from assent.domain.access import operator
from assent.domain.filters import parse
from assent.domain.ids import new_id
from assent.domain.items import HERE, Item, ItemStatus, Revision
from assent.domain.policies import from_json
from assent.domain.questions import Resolution, Verb, Verdict
from assent.domain.runs import Strategy
from assent.errors import AlreadyDecided, Conflict, KeyReused, StaleRevision
from assent.services import deciding, requesting, undoing
from assent.services.audit import Audit
from assent.services.requesting import Request
from assent.store import asking, decisions, deliveries, events, item_search, items, policies, requests, runs, threads
from assent.store.postgres import PostgresStore
from assent.store.transaction import Tx
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
        await store.write(ACME, deciding.decide, ANA, first.id, proposal(first, Verb.APPROVE))
    assert stale.value.extra == {"revision": 2, "hash": second.hash}
    kept = await store.read(ACME, items.revisions, first.id)
    assert [revision.asked for revision in kept] == [PAY, confirmation("c", "pay", {"n": 2})]
    assert [revision.hash for revision in kept] == [first.hash, second.hash]


async def test_an_edit_of_a_reviewer_survives_that_the_thread_asks_once_more(store: AnyStore) -> None:
    item = await one(store)
    edit = Verdict("0", Verb.EDIT, args={"n": 5})
    said = proposal(item, verdicts=(edit,), grace=timedelta(seconds=60))
    decided = await store.write(ACME, deciding.decide, ANA, item.id, said)
    assert (decided.revision, decided.status) == (2, ItemStatus.APPROVED)
    await store.write(ACME, wait_for, "t", i=PAY)
    assert await statuses(store) == [("APPROVED", "edited")], "it is on its way: nobody is asked again"


@pytest.mark.parametrize(
    "question", [None, 0, "", [], {}, False, "x" * 9000, {"kind": "confirmation"}, [{"a": 1}] * 50]
)
async def test_whatever_is_asked_is_kept(store: AnyStore, question: Any) -> None:
    item = await one(store, question)
    kept = await store.read(ACME, items.revision, item.id, 1)
    assert (kept.asked, kept.hash) == (question, item.hash)
    assert await one(store, question) == item


async def test_what_is_not_asked_any_more_is_closed(store: AnyStore) -> None:
    await store.write(ACME, wait_for, "t", a=PAY, b="Why?")
    left = await store.write(ACME, wait_for, "t", b="Why?")
    assert [item.interrupt_id for item in left] == ["b"]
    assert sorted(await statuses(store)) == [("CANCELLED", "superseded"), ("PENDING", None)]
    assert await store.write(ACME, wait_for, "t") == []
    assert sorted(await statuses(store)) == [("CANCELLED", "superseded"), ("CANCELLED", "thread_ended")]


async def test_the_end_of_a_thread_closes_what_is_open_and_overtakes_what_was_not_heard_yet(store: AnyStore) -> None:
    decided = await one(store)
    await store.write(ACME, deciding.decide, ANA, decided.id, proposal(decided, Verb.REJECT, message="no"))
    await store.write(ACME, wait_for, "t", i=PAY, j="Why?")
    await store.write(ACME, asking.end, "t", Resolution.THREAD_ENDED, "reviewer:ana")
    assert sorted(await statuses(store)) == [("CANCELLED", "thread_ended"), ("REJECTED", "thread_ended")]


async def test_notes_that_are_still_on_their_way_are_waited_for(store: AnyStore) -> None:
    """Another question of the thread was answered meanwhile: this one was not asked anew."""
    [item, _] = await store.write(ACME, wait_for, "t", i=PAY, j="Why?")
    sent_back = await store.write(
        ACME,
        deciding.ask_for_revision,
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
async def test_of_all_who_decide_at_once_one_wins(store: AnyStore) -> None:
    item = await one(store)
    people = [person(f"p{number}", ACME) for number in range(12)]
    verbs = [Verb.APPROVE, Verb.REJECT]
    tries = [
        partial(
            deciding.decide,
            caller=who,
            item_id=item.id,
            proposal=proposal(item, verbs[n % 2], message="no" if n % 2 else None),
        )
        for n, who in enumerate(people)
    ]
    outcomes = await all_at_once(store, ACME, *tries)
    won = [one for one in outcomes if isinstance(one, Item)]
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
async def test_two_who_agree_at_once_are_two(store: AnyStore) -> None:
    two = from_json({"default": {"name": "two", "then": "ask", "approvals": 2}})
    await store.write(ACME, policies.put, two, source="test", actor="system")
    item = await one(store)
    tries = [
        partial(deciding.decide, caller=who, item_id=item.id, proposal=proposal(item, Verb.APPROVE))
        for who in (ANA, ANA, BEN, ANA)
    ]
    outcomes = await all_at_once(store, ACME, *tries)
    assert len([one for one in outcomes if isinstance(one, Item)]) == 2
    assert len([one for one in outcomes if isinstance(one, Conflict)]) == 2
    kept = await store.read(ACME, decisions.of_item, item.id)
    assert sorted(one.actor for one in kept) == ["reviewer:ana", "reviewer:ben"]
    assert [one.closes for one in kept].count(True) == 1


@pytest.mark.promise("REVIEW-36")
async def test_the_same_dedupe_key_at_once_makes_one_item(store: AnyStore) -> None:
    asked = Request("t", "title", payload={"n": 1}, dedupe_key="d")
    outcomes = await all_at_once(
        store, ACME, *(partial(requesting.create, caller=agent(ACME), request=asked) for _ in range(8))
    )
    assert all(isinstance(one, tuple) for one in outcomes), outcomes
    assert len({item.id for item, _ in outcomes}) == 1
    assert [fresh for _, fresh in outcomes].count(True) == 1


@pytest.mark.promise("P3")
async def test_the_same_key_at_once_acts_once(store: AnyStore) -> None:
    def act(tx: Tx) -> dict[str, str]:
        items.add_comment(tx, "item", comment := new_id(), "ana", "text")
        return {"comment": comment}

    tries = [partial(requests.once, actor="ana", key="k", request={"a": 1}, act=act) for _ in range(8)]
    outcomes = await all_at_once(store, ACME, *tries)
    assert len({str(one) for one in outcomes}) == 1, outcomes
    assert len(await store.read(ACME, items.comments_of, "item")) == 1
    with pytest.raises(KeyReused):
        await store.write(ACME, requests.once, "ana", "k", {"a": 2}, act)
    for other in ({"actor": "ben"}, {"key": "other"}):
        given: dict[str, Any] = {"actor": "ana", "key": "k", "request": {"a": 2}, "act": act, **other}
        await store.write(ACME, requests.once, **given)
    await store.write("other", requests.once, "ana", "k", {"a": 3}, act)
    assert len(await store.read(ACME, items.comments_of, "item")) == 3


@pytest.mark.promise("P3")
async def test_a_failure_is_not_remembered(store: AnyStore) -> None:
    def fail(tx: Tx) -> None:
        raise Conflict("no")

    with pytest.raises(Conflict):
        await store.write(ACME, requests.once, "ana", "k", {}, fail)
    assert await store.write(ACME, requests.once, "ana", "k", {}, lambda tx: {"fine": True}) == {"fine": True}


@pytest.mark.promise("P10")
async def test_tenants_have_the_same_ids_and_never_meet(store: AnyStore) -> None:
    mine, theirs = await one(store), await one(store, tenant="other")
    assert await store.read("other", items.get, mine.id) is None
    await store.write(ACME, asking.end, "t")
    still = await store.read("other", items.get, theirs.id)
    assert still is not None
    assert still.status is ItemStatus.PENDING
    page = await store.read("other", item_search.page, parse(""), "x", None, sort="created_at", limit=9, cursor=None)
    assert [item.id for item in page.items] == [theirs.id]


async def test_an_undone_decision_is_not_sent(store: AnyStore) -> None:
    item = await one(store)
    said = proposal(item, Verb.APPROVE, grace=timedelta(seconds=60))
    await store.write(ACME, deciding.decide, ANA, item.id, said)
    undone = await store.write(ACME, undoing.undo, ANA, item.id)
    assert (undone.status, undone.hash, undone.due) == (ItemStatus.PENDING, item.hash, item.due)
    assert not await store.read(ACME, asking.is_answered, undone)
    assert await one(store) == undone


async def test_a_thread_that_is_gone_cannot_be_asked_again_by_undoing(store: AnyStore) -> None:
    item = await one(store)
    said = proposal(item, Verb.APPROVE, grace=timedelta(seconds=60))
    await store.write(ACME, deciding.decide, ANA, item.id, said)
    await store.write(ACME, threads.remove, "t")
    with pytest.raises(Conflict):
        await store.write(ACME, undoing.undo, ANA, item.id)


async def test_an_answer_that_has_arrived_and_failed_is_asked_again(store: AnyStore) -> None:
    """Its run is over before the outbox has written down that it was delivered."""
    item = await one(store)
    await store.write(ACME, deciding.decide, ANA, item.id, proposal(item, Verb.APPROVE))
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


async def test_who_only_looks_needs_no_lock(store: AnyStore) -> None:
    item = await one(store)
    found = await store.read(ACME, items.open_of_thread, "t", lock=False)
    assert found == await store.write(ACME, items.open_of_thread, "t") == [item]
    if isinstance(store, PostgresStore):  # the control: a transaction that only reads cannot take one
        with pytest.raises(DBAPIError, match="read-only"):
            await store.read(ACME, items.open_of_thread, "t")
