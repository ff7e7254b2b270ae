"""Time on real databases: reminders, escalation, expiry, always by the database's clock, never an approval."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from assent.errors import Forbidden, InvalidTransition
from assent.kernel import events, jsontext
from assent.outbox import deliveries
from assent.review import deadlines
from assent.review.deadlines import Deadlines
from assent.review.decisions import decide, undo
from assent.review.model.items import Due, Item, ItemStatus
from assent.review.model.policies import from_json
from assent.review.model.questions import Resolution, Verb, Verdict
from assent.review.rows import decisions, items, policies
from tests.contract.asks import confirmation, person, proposal, wait_for
from tests.contract.stores import AnyStore

ACME = "acme"
ANA, BOSS = person("ana", ACME), person("boss", ACME)
PAY = confirmation("c", "pay", {"n": 1})
PATIENCE = 60.0

pytestmark = [pytest.mark.promise("P7"), pytest.mark.promise("P8")]


async def asked(store: AnyStore, question: Any = PAY, **rule: Any) -> Item:
    policy = from_json({"default": {"name": "default", "then": "ask", **rule}})
    await store.write(ACME, policies.put, policy, source="test", actor="system")
    [item] = await store.write(ACME, wait_for, "t", i=question)
    return item


async def now(store: AnyStore, item: Item) -> Item:
    stored_item = await store.read(ACME, items.get, item.id)
    assert stored_item is not None
    return stored_item


async def kinds(store: AnyStore, item: Item) -> list[str]:
    return [event.kind for event, _ in await store.read(ACME, events.of_subject, item.subject)]


async def told(store: AnyStore, item: Item) -> list[Any]:
    page = await store.read(ACME, deliveries.page, status=None, subject=item.subject, limit=9, cursor=None)
    return [jsontext.load(item.body)["value"] for item in page.items]


@pytest.mark.promise("REVIEW-52")
async def test_gated_item_expires_after_a_week_and_the_agent_gets_the_reason(store: AnyStore) -> None:
    item = await asked(store)
    assert item.expires_at is not None
    assert item.expires_at - item.created_at == timedelta(days=7)
    look = Deadlines(store).look
    await look()
    assert (await now(store, item)).status is ItemStatus.PENDING
    store.clock_offset += timedelta(days=7)
    with pytest.raises(InvalidTransition) as late:
        await store.write(ACME, decide.decide, ANA, item.id, proposal(item, Verb.APPROVE))
    assert late.value.extra["from"] == "EXPIRED"
    await look()
    ended = await now(store, item)
    assert (ended.status, ended.resolution) == (ItemStatus.EXPIRED, Resolution.EXPIRED)
    assert await store.read(ACME, decisions.of_item, item.id) == [], "silence is no decision"
    [value] = await told(store, item)
    assert value["approvals"][0]["approved"] is False
    assert "expired" in value["approvals"][0]["feedback"]
    await look()
    assert await kinds(store, item) == ["item.created", "item.expired"]


async def test_an_edit_that_falls_under_another_rule_has_its_deadline_from_then_on(store: AnyStore) -> None:
    much = {
        "name": "much",
        "when": "args.n > 100",
        "then": "ask",
        "approvals": 2,
        "deadline": "1h",
        "remind_after": "10m",
    }
    policy = from_json({"default": {"name": "default", "then": "advise"}, "rules": [much]})
    await store.write(ACME, policies.put, policy, source="test", actor="system")
    [item] = await store.write(ACME, wait_for, "t", i=PAY)
    assert (item.gated, item.expires_at) == (False, None)
    store.clock_offset += timedelta(days=30)
    edit = Verdict("0", Verb.EDIT, args={"n": 500})
    edited = await store.write(ACME, decide.decide, ANA, item.id, proposal(item, verdicts=(edit,)))
    assert (edited.gated, edited.status) == (True, ItemStatus.PENDING)
    assert edited.expires_at is not None
    left = edited.expires_at - item.created_at - timedelta(days=30)
    assert timedelta(minutes=59) < left < timedelta(minutes=61)
    assert (edited.due_at, edited.due) == (edited.expires_at - timedelta(minutes=50), Due.REMIND)
    store.clock_offset += timedelta(minutes=20)
    await Deadlines(store).look()
    reminded = await now(store, item)
    assert (reminded.status, reminded.due_at, reminded.due) == (ItemStatus.PENDING, edited.expires_at, Due.EXPIRE)
    approval = proposal(reminded, Verb.APPROVE, grace=timedelta(minutes=1))
    approved = await store.write(ACME, decide.decide, BOSS, item.id, approval)
    assert approved.status is ItemStatus.APPROVED, "with who has edited it, two have agreed"
    undone = await store.write(ACME, undo.undo, BOSS, item.id)
    assert (undone.status, undone.due_at) == (ItemStatus.PENDING, edited.expires_at)
    store.clock_offset += timedelta(hours=2)
    await Deadlines(store).look()
    assert (await now(store, item)).status is ItemStatus.EXPIRED


async def test_expired_question_without_a_negative_answer_ends_the_thread(store: AnyStore) -> None:
    item = await asked(store, {"question": "Why?"})
    store.clock_offset += timedelta(days=8)
    await Deadlines(store).look()
    assert (await now(store, item)).status is ItemStatus.EXPIRED
    assert await told(store, item) == [None]


async def test_advisory_item_does_not_expire(store: AnyStore) -> None:
    item = await asked(store, then="advise")
    assert (item.gated, item.expires_at, item.due_at) == (False, None, None)
    store.clock_offset += timedelta(days=400)
    await Deadlines(store).look()
    await store.write(ACME, decide.decide, ANA, item.id, proposal(item, Verb.APPROVE))


async def test_reminder_is_followed_by_expiry(store: AnyStore) -> None:
    item = await asked(store, deadline="2h", remind_after="1h")
    assert item.due is Due.REMIND
    store.clock_offset += timedelta(hours=1)
    await Deadlines(store).look()
    reminded = await now(store, item)
    assert (reminded.status, reminded.due) == (ItemStatus.PENDING, Due.EXPIRE)
    store.clock_offset += timedelta(hours=1)
    await Deadlines(store).look()
    assert await kinds(store, item) == ["item.created", "item.reminded", "item.expired"]


async def test_an_escalation_lets_others_decide_as_well(store: AnyStore) -> None:
    rule = {"deadline": "1h", "after_deadline": "escalate", "escalate_to": {"people": ["boss"]}}
    item = await asked(store, by={"people": ["ana"]}, **rule)
    with pytest.raises(Forbidden):
        await store.write(ACME, decide.decide, BOSS, item.id, proposal(item, Verb.APPROVE))
    store.clock_offset += timedelta(hours=1)
    await Deadlines(store).look()
    escalated = await now(store, item)
    assert (escalated.status, escalated.recipient, escalated.due) == (ItemStatus.PENDING, "boss", Due.EXPIRE)
    assert escalated.hash == item.hash
    decided = await store.write(ACME, decide.decide, BOSS, item.id, proposal(item, Verb.APPROVE))
    assert decided.status is ItemStatus.APPROVED


async def test_escalated_item_without_a_decision_expires(store: AnyStore) -> None:
    rule = {"deadline": "1h", "after_deadline": "escalate", "escalate_to": {"people": ["boss"]}}
    item = await asked(store, **rule)
    for _ in range(2):
        store.clock_offset += timedelta(hours=1)
        await Deadlines(store).look()
    assert await kinds(store, item) == ["item.created", "item.escalated", "item.expired"]


async def test_overdue_steps_are_done_in_order_after_a_pause(store: AnyStore) -> None:
    """After a year without a check everything that is due happens in order."""
    item = await asked(store, deadline="2h", remind_after="1h")
    store.clock_offset += timedelta(days=365)
    look = Deadlines(store).look
    for _ in range(3):
        await look()
    assert await kinds(store, item) == ["item.created", "item.reminded", "item.expired"]


async def test_decided_item_does_not_expire(store: AnyStore) -> None:
    item = await asked(store)
    await store.write(ACME, decide.decide, ANA, item.id, proposal(item, Verb.APPROVE))
    store.clock_offset += timedelta(days=30)
    await Deadlines(store).look()
    assert (await now(store, item)).status is ItemStatus.APPROVED
    await store.write(ACME, deadlines.act, item.id)
    assert await kinds(store, item) == ["item.created", "item.approved"]


async def test_decision_undone_after_the_deadline_expires(store: AnyStore) -> None:
    item = await asked(store, deadline="1h")
    store.clock_offset += timedelta(minutes=59)
    said = proposal(item, Verb.APPROVE, grace=timedelta(minutes=5))
    await store.write(ACME, decide.decide, ANA, item.id, said)
    store.clock_offset += timedelta(minutes=2)
    await store.write(ACME, undo.undo, ANA, item.id)
    await Deadlines(store).look()
    assert (await now(store, item)).status is ItemStatus.EXPIRED


async def test_due_items_are_shared_by_several_processes(store: AnyStore) -> None:
    await asked(store)
    for number in range(30):
        await store.write(ACME, wait_for, f"t{number}", i=PAY)
    store.clock_offset += timedelta(days=8)
    await asyncio.gather(*(Deadlines(store).look() for _ in range(3)))
    head = await store.read(ACME, events.head)
    assert head is not None
    assert head.seq == 62, "each created once and expired once"


async def test_deadlines_are_handled_by_the_background_task(store: AnyStore) -> None:
    watch = Deadlines(store)
    await watch.open()
    try:
        item = await asked(store, deadline="1s")
        async with asyncio.timeout(PATIENCE):
            while (await now(store, item)).status is ItemStatus.PENDING:  # noqa: ASYNC110 - another task ends it
                await asyncio.sleep(0.02)
        assert (await now(store, item)).status is ItemStatus.EXPIRED
    finally:
        await watch.close()


async def test_failing_item_does_not_delay_others(store: AnyStore) -> None:
    """Also not in the next rounds: it is put off."""
    policy = from_json({"default": {"name": "default", "then": "ask"}})
    await store.write(ACME, policies.put, policy, source="test", actor="system")
    [broken] = await store.write(ACME, wait_for, "t1", i=PAY)
    [sound] = await store.write(ACME, wait_for, "t2", i=PAY)
    await store.write(ACME, lambda tx: items.change(tx, broken, due=Due.ESCALATE, policy={"escalate_to": 5}))
    store.clock_offset += timedelta(days=7)
    pause = await Deadlines(store).look()
    assert (await now(store, sound)).status is ItemStatus.EXPIRED
    later = await now(store, broken)
    assert later.due_at is not None
    assert later.due_at > await store.read(None, lambda tx: tx.now())
    assert pause > timedelta(0)


async def test_control_without_isolation_the_first_failure_ends_the_round(
    store: AnyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def one_after_the_other(name: str, entries: Any, act: Any, **_: Any) -> None:
        for entry in entries:
            await act(entry)

    monkeypatch.setattr(deadlines, "each", one_after_the_other)
    with pytest.raises(KeyError):
        await test_failing_item_does_not_delay_others(store)
