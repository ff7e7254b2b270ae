"""The outbox on every store: written with what it tells, claimed by one, settled once, never lost with a process."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest

from assent.domain.deliveries import DELAYS, JITTER, WEBHOOK, Delivery, DeliveryStatus, Failure
from assent.domain.runs import Outcome, RunStatus, Strategy
from assent.domain.threads import ThreadStatus
from assent.errors import Conflict
from assent.store import deliveries, runs, threads, webhooks
from assent.store.transaction import Tx
from tests.contract.stores import AnyStore, both_databases, opened, outside

LEASE = timedelta(seconds=30)
OOPS = Failure("the receiver answered 500")
QUESTION = {"id": "a" * 32, "value": "May I?"}


async def add(store: AnyStore, target: str = "https://one.example", *, tenant: str = "acme", **more: Any) -> str:
    return await store.write(tenant, deliveries.add, WEBHOOK, subject="run:1", target=target, body="{}", **more)


async def claim(store: AnyStore, *, limit: int = 10, busy: tuple[str, ...] = ()) -> list[Delivery]:
    claimed, _ = await store.write(None, deliveries.claim, leases={WEBHOOK: LEASE}, busy=busy, limit=limit)
    return claimed


async def settle(store: AnyStore, claimed: Delivery, failure: Failure | None = None) -> bool:
    return await store.write(claimed.tenant, deliveries.settle, claimed, failure, dice=0.5)


async def row(store: AnyStore, delivery_id: str, *, tenant: str = "acme") -> Delivery:
    found = await store.read(tenant, deliveries.get, delivery_id)
    assert found is not None
    return found


async def test_what_is_added_is_claimed_once(store: AnyStore) -> None:
    delivery_id = await add(store)
    (claimed,) = await claim(store)
    assert (claimed.id, claimed.tenant, claimed.attempts) == (delivery_id, "acme", 1)
    assert claimed == await row(store, delivery_id)
    assert claimed.status is DeliveryStatus.SENDING
    assert await claim(store) == []


async def test_of_many_senders_at_once_each_delivery_has_one(store: AnyStore) -> None:
    ids = {await add(store) for _ in range(20)}
    claims = await asyncio.gather(*(claim(store, limit=5) for _ in range(8)))
    found = [one.id for claimed in claims for one in claimed]
    assert len(found) == len(set(found))
    assert {one.id for one in await claim(store, limit=20)} | set(found) == ids


async def test_it_is_not_there_when_the_transaction_fails(store: AnyStore) -> None:
    rung: list[str] = []
    store.bells[deliveries.BELL] = lambda: rung.append("now")

    def fails(tx: Tx) -> None:
        deliveries.add(tx, WEBHOOK, subject="run:1", target="https://one.example", body="{}")
        raise Conflict

    with pytest.raises(Conflict):
        await store.write("acme", fails)
    assert await claim(store) == []
    assert rung == []
    await add(store)
    assert rung == ["now"], "control: the bell rings by the time the caller knows"


async def test_what_arrived_is_settled_and_its_body_is_not_kept(store: AnyStore) -> None:
    delivery_id = await add(store)
    (claimed,) = await claim(store)
    assert await settle(store, claimed)
    found = await row(store, delivery_id)
    assert (found.status, found.due_at, found.failure, found.body) == (DeliveryStatus.DELIVERED, None, None, "")
    assert found.delivered_at is not None
    store.clock_offset = timedelta(days=400)
    assert await claim(store) == []


async def test_what_failed_comes_back_by_the_schedule_until_it_has_failed_for_good(store: AnyStore) -> None:
    delivery_id = await add(store)
    for attempt, delay in enumerate(DELAYS, start=1):
        (claimed,) = await claim(store)
        assert claimed.attempts == attempt
        await settle(store, claimed, OOPS)
        assert await claim(store) == [], "not before its time"
        store.clock_offset += delay * (1 + JITTER)
    (last,) = await claim(store)
    await settle(store, last, OOPS)
    found = await row(store, delivery_id)
    assert (found.status, found.due_at, found.failure, found.body) == (DeliveryStatus.FAILED, None, OOPS.reason, "{}")
    store.clock_offset += timedelta(days=400)
    assert await claim(store) == []


async def test_what_cannot_help_fails_at_once(store: AnyStore) -> None:
    delivery_id = await add(store)
    (claimed,) = await claim(store)
    await settle(store, claimed, Failure("gone", final=True))
    assert (await row(store, delivery_id)).status is DeliveryStatus.FAILED


async def test_a_claim_ends_with_its_lease_and_its_owner_has_nothing_to_say_then(store: AnyStore) -> None:
    delivery_id = await add(store)
    (first,) = await claim(store)
    store.clock_offset = LEASE - timedelta(seconds=5)
    assert await claim(store) == []
    store.clock_offset = LEASE
    (second,) = await claim(store)
    assert second.attempts == 2
    assert not await settle(store, first), "it was taken over"
    await store.write("acme", deliveries.hand_back, first)
    assert (await row(store, delivery_id)).status is DeliveryStatus.SENDING
    assert await settle(store, second)
    assert not await settle(store, second, OOPS), "settled is settled"
    assert (await row(store, delivery_id)).status is DeliveryStatus.DELIVERED


async def test_a_claim_that_was_made_before_a_retry_by_hand_does_not_settle_the_one_after_it(store: AnyStore) -> None:
    delivery_id = await add(store)
    (stalled,) = await claim(store)
    store.clock_offset = LEASE
    (other,) = await claim(store)
    await settle(store, other, Failure("gone", final=True))
    assert await store.write("acme", deliveries.retry, delivery_id)
    (again,) = await claim(store)
    assert again.attempts == stalled.attempts == 1
    assert not await settle(store, stalled)
    assert await settle(store, again)


async def test_handed_back_is_due_at_once(store: AnyStore) -> None:
    await add(store)
    (claimed,) = await claim(store)
    await store.write("acme", deliveries.hand_back, claimed)
    assert [one.attempts for one in await claim(store)] == [2]


@both_databases
async def test_the_only_process_takes_up_what_its_predecessor_left(database: str, store: AnyStore) -> None:
    sent, waiting = await add(store), await add(store, "https://two.example")
    (one,) = [one for one in await claim(store) if one.id == waiting]
    await settle(store, one, OOPS)
    await store.close()
    async with opened(database) as after:
        assert await claim(after) == []
        assert await after.write(None, deliveries.release_all) == 1
        assert [one.id for one in await claim(after)] == [sent], "and nothing else: the other's pause is not over"


async def test_a_wait_is_kept(store: AnyStore) -> None:
    await add(store, wait=timedelta(minutes=5))
    claimed, wait = await store.write(None, deliveries.claim, leases={WEBHOOK: LEASE}, busy=(), limit=9)
    assert claimed == []
    assert wait is not None
    assert timedelta(minutes=4) < wait <= timedelta(minutes=5)
    store.clock_offset = timedelta(minutes=5)
    assert len(await claim(store)) == 1


async def test_nothing_to_wait_for(store: AnyStore) -> None:
    claimed, wait = await store.write(None, deliveries.claim, leases={WEBHOOK: LEASE}, busy=(), limit=9)
    assert (claimed, wait) == ([], None)


async def test_targets_that_have_their_share_are_passed_over(store: AnyStore) -> None:
    for target in ("https://slow.example", "https://slow.example", "https://one.example"):
        await add(store, target)
    assert [one.target for one in await claim(store, busy=("https://slow.example",))] == ["https://one.example"]
    _, wait = await store.write(None, deliveries.claim, leases={WEBHOOK: LEASE}, busy=["https://slow.example"], limit=9)
    assert wait is not None
    assert wait > timedelta(), "what is passed over does not keep the sender awake"


async def test_only_kinds_that_can_be_carried_are_claimed(store: AnyStore) -> None:
    await store.write("acme", deliveries.add, "pigeon", subject="x", target="roof", body="{}")
    assert await claim(store) == []


@pytest.mark.promise("P10")
async def test_tenants_see_their_own(store: AnyStore) -> None:
    delivery_id = await add(store)
    assert await store.read("other", deliveries.get, delivery_id) is None
    (claimed,) = await claim(store)
    await settle(store, claimed, Failure("gone", final=True))
    assert not await store.write("other", deliveries.retry, delivery_id)
    page = await store.read("other", deliveries.page, status=None, subject=None, limit=10, cursor=None)
    assert page.items == []
    assert (await row(store, delivery_id)).status is DeliveryStatus.FAILED


async def test_a_list_is_narrowed_and_paged(store: AnyStore) -> None:
    ids = [await add(store) for _ in range(5)]
    (first, *_) = await claim(store, limit=1)
    await settle(store, first)
    seen, cursor = [], None
    while True:
        page = await store.read("acme", deliveries.page, status=None, subject=None, limit=2, cursor=cursor)
        seen += [one.id for one in page.items]
        cursor = page.next
        if cursor is None:
            break
    assert seen == ids[::-1]
    arrived = await store.read(
        "acme", deliveries.page, status=DeliveryStatus.DELIVERED, subject="run:1", limit=9, cursor=None
    )
    assert [one.id for one in arrived.items] == [first.id]
    none = await store.read("acme", deliveries.page, status=None, subject="run:2", limit=9, cursor=None)
    assert none.items == []


async def test_what_is_settled_goes_after_a_while_and_nothing_else(store: AnyStore) -> None:
    arrived, failed, waiting = [await add(store) for _ in range(3)]
    claimed = {one.id: one for one in await claim(store)}
    await settle(store, claimed[arrived])
    await settle(store, claimed[failed], Failure("gone", final=True))
    await settle(store, claimed[waiting], OOPS)
    attempted = claimed[arrived].attempted_at
    assert attempted is not None
    assert await store.write(None, deliveries.prune, attempted) == 0
    assert await store.write(None, deliveries.prune, attempted + timedelta(seconds=1)) == 2
    page = await store.read("acme", deliveries.page, status=None, subject=None, limit=9, cursor=None)
    assert [one.id for one in page.items] == [waiting]


class TestAnnouncing:
    """A run's end, as the engine records it."""

    async def test_a_run_without_a_webhook_leaves_nothing(self, store: AnyStore) -> None:
        await store.write("acme", finished, None, Outcome(RunStatus.SUCCESS))
        assert await claim(store) == []

    async def test_the_body_is_the_row_as_it_ended(self, store: AnyStore) -> None:
        big = 12345678901234567890123
        outcome = Outcome(RunStatus.SUCCESS, values={"n": big, "text": "\u0000 é"}, interrupts={"t": [QUESTION]})
        await store.write("acme", finished, "https://one.example/hook", outcome)
        (claimed,) = await claim(store)
        body = json.loads(claimed.body)
        assert (claimed.kind, claimed.subject, claimed.target) == (WEBHOOK, "run:r1", "https://one.example/hook")
        assert (body["run_id"], body["thread_id"], body["status"]) == ("r1", "t1", "success")
        assert body["values"] == {"n": big, "text": "\u0000 é"}
        assert (body["waiting"], body["interrupts"]) == (True, [QUESTION])
        assert body["run_started_at"] <= body["run_ended_at"] == body["updated_at"]

    async def test_after_a_rollback_it_tells_what_the_thread_waits_on(self, store: AnyStore) -> None:
        outcome = Outcome(RunStatus.INTERRUPTED, rolled_back=True)
        await store.write("acme", finished, "https://one.example/hook", outcome, waits=True)
        (claimed,) = await claim(store)
        body = json.loads(claimed.body)
        assert (body["status"], body["waiting"], body["interrupts"]) == ("rollback", True, [QUESTION])


@both_databases
async def test_bytes_of_what_arrived_are_gone_from_the_row(database: str, store: AnyStore) -> None:
    body = json.dumps({"secret": "s3cr3t"})
    await store.write("acme", deliveries.add, WEBHOOK, subject="run:1", target="https://one.example", body=body)
    (claimed,) = await claim(store)
    await settle(store, claimed)
    with outside(database).connect() as connection:
        (found,) = connection.exec_driver_sql("SELECT body FROM deliveries").all()
    assert found[0] == ""


def finished(tx: Tx, webhook: str | None, outcome: Outcome, *, waits: bool = False) -> None:
    """A run that began and ended in this way, with its announcement; `waits`: on a thread that asked before."""
    threads.insert(tx, "t1", {})
    if waits:
        stand(tx, Outcome(RunStatus.SUCCESS, interrupts={"t": [QUESTION]}))
    runs.insert_pending(
        tx,
        "r1",
        "t1",
        assistant_id="a",
        graph_id="g",
        answers=waits,
        temporary=False,
        multitask_strategy=Strategy.REJECT,
        metadata={},
        kwargs={},
        webhook=webhook,
    )
    run = runs.begin(tx, "r1")
    assert run is not None
    if not outcome.rolled_back:
        stand(tx, outcome)
    webhooks.announce(tx, run, outcome)


def stand(tx: Tx, outcome: Outcome) -> None:
    """The thread's row after such an outcome."""
    threads.set_state(
        tx,
        "t1",
        status=ThreadStatus.INTERRUPTED,
        values=outcome.values,
        interrupts=outcome.interrupts,
        error=outcome.error,
        next=list(outcome.next),
    )
