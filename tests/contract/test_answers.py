"""Answers by runs on real databases: which revision an answer without a hash is about, and who may give one."""

from datetime import timedelta
from typing import Any

import pytest

from assent.assistant.talk.sightings import is_meant, note
from assent.errors import AnswerRefused, AssentError, Forbidden, StaleRevision
from assent.identity.model.access import Principal
from assent.kernel.store.transaction import Tx
from assent.outbox import deliveries
from assent.review.decisions import decide, undo
from assent.review.item_views import full
from assent.review.model.items import Item, ItemStatus
from assent.review.model.questions import Resolution, Verb, Verdict
from assent.review.rows import items
from assent.review.threads.answers import keyed_answers, record_answers
from assent.threads.rows import answers, threads
from tests.contract.asks import agent, confirmation, person, proposal, wait_for
from tests.contract.stores import AnyStore

ACME = "acme"
ANA, BEN = person("ana", ACME), person("ben", ACME)
YES = {"approvals": [{"call_id": "c", "approved": True}]}


def gated(amount: int) -> dict[str, Any]:
    return {**confirmation("c", "pay", {"n": amount}), "gate": "assent"}


def answer(tx: Tx, caller: Principal, resume: Any = None) -> None:
    thread = threads.get(tx, "t")
    assert thread is not None
    given = keyed_answers(tx, caller, thread, {"resume": resume or {"i": YES}})
    record_answers(tx, caller, thread, "run", given)


async def asked(store: AnyStore, amount: int = 1) -> Item:
    [item] = await store.write(ACME, wait_for, "t", i=gated(amount))
    return item


async def status(store: AnyStore, item: Item) -> ItemStatus:
    stored_item = await store.read(ACME, items.get, item.id)
    assert stored_item is not None
    return stored_item.status


async def unsent(store: AnyStore, item: Item) -> None:
    """What was said does not reach the agent."""
    [sent] = (await store.read(ACME, deliveries.page, status=None, subject=item.subject, limit=9, cursor=None)).items
    assert await store.write(ACME, deliveries.withdraw, sent.id)


@pytest.mark.promise("P5")
@pytest.mark.parametrize("resume", [{"i": YES}, YES])
async def test_answer_does_not_apply_to_a_later_question_under_the_same_id(store: AnyStore, resume: Any) -> None:
    """Somebody else has looked since, so the thread counts as shown; the one who answers saw the first revision."""
    first = await asked(store)
    second = await asked(store, 1_000_000)
    assert (second.id, second.revision) == (first.id, 2)
    await store.write(ACME, threads.mark_shown, "t")
    with pytest.raises(StaleRevision) as stale:
        await store.write(ACME, answer, ANA, resume)
    assert (stale.value.extra["revision"], stale.value.extra["hash"]) == (2, second.hash)
    assert await status(store, first) is ItemStatus.PENDING
    decided = await store.write(ACME, decide.decide, ANA, first.id, proposal(second, Verb.APPROVE))
    assert decided.status is ItemStatus.APPROVED, "who names the revision has seen it"


@pytest.mark.promise("P5")
async def test_answer_does_not_apply_to_the_successor_of_a_closed_item(store: AnyStore) -> None:
    first = await asked(store)
    no = Verdict("0", Verb.REJECT, message="no")
    await store.write(ACME, decide.decide, BEN, first.id, proposal(first, verdicts=(no,)))
    await unsent(store, first)
    second = await asked(store, 1_000_000)
    assert (second.follows, second.revision) == (first.id, 1)
    with pytest.raises(StaleRevision):
        await store.write(ACME, answer, ANA)
    third = await asked(store)
    assert (third.id, third.revision) == (second.id, 2)
    await store.write(ACME, threads.mark_shown, "t")
    with pytest.raises(StaleRevision):
        await store.write(ACME, answer, ANA)


async def test_answer_applies_to_a_question_under_its_own_id(store: AnyStore) -> None:
    """The control: the id names one question, and only one."""
    first = await asked(store)
    await store.write(ACME, lambda tx: items.change(tx, first, status=ItemStatus.REVISION_REQUESTED))
    [second] = await store.write(ACME, wait_for, "t", j=gated(2))
    assert (second.id, second.revision) == (first.id, 2)
    await store.write(ACME, threads.mark_shown, "t")
    await store.write(ACME, answer, ANA, {"j": YES})
    assert await status(store, first) is ItemStatus.APPROVED


@pytest.mark.promise("P5")
async def test_answer_applies_after_a_change_was_undone(store: AnyStore) -> None:
    item = await asked(store)
    edit = Verdict("0", Verb.EDIT, args={"n": 2})
    said = proposal(item, verdicts=(edit,), grace=timedelta(minutes=1))
    await store.write(ACME, decide.decide, BEN, item.id, said)
    await store.write(ACME, undo.undo, BEN, item.id)
    await store.write(ACME, threads.mark_shown, "t")
    await store.write(ACME, answer, ANA)
    assert await status(store, item) is ItemStatus.APPROVED


FORM = {"mode": "form", "message": "Which room?", "requestedSchema": {"type": "object", "properties": {}}}


@pytest.mark.promise("P5")
@pytest.mark.parametrize("shown", [True, False])
@pytest.mark.parametrize(
    ("before", "now", "meant"),
    [
        (gated(1), gated(1_000_000), False),
        (gated(1), confirmation("d", "pay", {"n": 2}), True),
        (FORM, FORM, False),
        (gated(1), FORM, True),
    ],
)
async def test_reused_call_id_does_not_identify_the_call(
    store: AnyStore, shown: bool, before: Any, now: Any, meant: bool
) -> None:
    """Ana was asked about the first call, by the assistant or in other words; ben has turned it down meanwhile."""
    [first] = await store.write(ACME, wait_for, "t", i=before)
    if shown:
        await store.write(ACME, note, ANA, await store.read(ACME, full, ANA, first))
    [second] = await store.write(ACME, wait_for, "t", j=now)
    asked = await store.read(ACME, full, ANA, second)
    assert await store.read(ACME, is_meant, ANA, asked) is meant
    await store.write(ACME, note, ANA, asked)
    assert await store.read(ACME, is_meant, ANA, asked), "once it was shown to her"
    assert await store.read(ACME, is_meant, BEN, asked) is meant, "which says nothing about anybody else"


@pytest.mark.promise("P6", "P7")
@pytest.mark.parametrize("on_its_way", [True, False])
@pytest.mark.parametrize(("caller", "refusal"), [(agent(ACME), Forbidden), (ANA, None)])
async def test_agent_cannot_answer_an_expired_item(
    store: AnyStore, on_its_way: bool, caller: Principal, refusal: type[AssentError] | None
) -> None:
    """The item has expired, and the thread still asks: until it hears so, or for good where that cannot be sent."""
    item = await asked(store)

    def expire(tx: Tx) -> None:
        decide.withdraw(tx, item, Resolution.EXPIRED, "too late", actor="system")

    await store.write(ACME, expire)
    if not on_its_way:
        await unsent(store, item)
    expected = AnswerRefused if on_its_way else refusal
    if expected is None:
        await store.write(ACME, answer, caller)
        return
    with pytest.raises(expected):
        await store.write(ACME, answer, caller)
    assert await store.read(ACME, answers.standing, "t", "i") is None
