"""The outbox on every store: written with what it tells, claimed by one, settled once, never lost with a process."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest

from assent.errors import Conflict
from assent.kernel.store.transaction import Tx
from assent.outbox import deliveries
from assent.outbox.model import DELAYS, JITTER, WEBHOOK, Delivery, DeliveryStatus, Failure
from assent.runs import webhooks
from assent.threads.model.runs import Outcome, RunStatus, Strategy
from assent.threads.model.threads import ThreadStatus
from assent.threads.rows import runs, threads
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
    delivery_row = await store.read(tenant, deliveries.get, delivery_id)
    assert delivery_row is not None
    return delivery_row


async def test_added_delivery_is_claimed_once(store: AnyStore) -> None:
    delivery_id = await add(store)
    (claimed,) = await claim(store)
    assert (claimed.id, claimed.tenant, claimed.attempts) == (delivery_id, "acme", 1)
    assert claimed == await row(store, delivery_id)
    assert claimed.status is DeliveryStatus.SENDING
    assert await claim(store) == []


async def test_concurrent_senders_claim_each_delivery_once(store: AnyStore) -> None:
    ids = {await add(store) for _ in range(20)}
    claims = await asyncio.gather(*(claim(store, limit=5) for _ in range(8)))
    claimed_ids = [delivery.id for claimed in claims for delivery in claimed]
    assert len(claimed_ids) == len(set(claimed_ids))
    assert {delivery.id for delivery in await claim(store, limit=20)} | set(claimed_ids) == ids


async def test_delivery_of_a_failed_transaction_is_not_stored(store: AnyStore) -> None:
    rung: list[str] = []
    store.bells[deliveries.BELL] = lambda *due: rung.extend(delivery.id for delivery in due)

    def fails(tx: Tx) -> None:
        deliveries.add(tx, WEBHOOK, subject="run:1", target="https://one.example", body="{}")
        raise Conflict

    with pytest.raises(Conflict):
        await store.write("acme", fails)
    assert await claim(store) == []
    assert rung == []
    delivery_id = await add(store)
    assert rung == [delivery_id], "control: the bell rings by the time the caller knows"


async def test_delivered_row_is_settled_without_its_body(store: AnyStore) -> None:
    delivery_id = await add(store)
    (claimed,) = await claim(store)
    assert await settle(store, claimed)
    delivery_row = await row(store, delivery_id)
    assert (delivery_row.status, delivery_row.due_at, delivery_row.failure, delivery_row.body) == (
        DeliveryStatus.DELIVERED,
        None,
        None,
        "",
    )
    assert delivery_row.delivered_at is not None
    store.clock_offset = timedelta(days=400)
    assert await claim(store) == []


async def test_failed_delivery_is_retried_until_the_schedule_ends(store: AnyStore) -> None:
    delivery_id = await add(store)
    for attempt, delay in enumerate(DELAYS, start=1):
        (claimed,) = await claim(store)
        assert claimed.attempts == attempt
        await settle(store, claimed, OOPS)
        assert await claim(store) == [], "not before its time"
        store.clock_offset += delay * (1 + JITTER)
    (last,) = await claim(store)
    await settle(store, last, OOPS)
    delivery_row = await row(store, delivery_id)
    assert (delivery_row.status, delivery_row.due_at, delivery_row.failure, delivery_row.body) == (
        DeliveryStatus.FAILED,
        None,
        OOPS.reason,
        "{}",
    )
    store.clock_offset += timedelta(days=400)
    assert await claim(store) == []


async def test_permanent_failure_is_not_retried(store: AnyStore) -> None:
    delivery_id = await add(store)
    (claimed,) = await claim(store)
    await settle(store, claimed, Failure("gone", final=True))
    assert (await row(store, delivery_id)).status is DeliveryStatus.FAILED


async def test_owner_of_an_expired_lease_cannot_settle_the_delivery(store: AnyStore) -> None:
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


async def test_claim_from_before_a_manual_retry_cannot_settle_the_retry(store: AnyStore) -> None:
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


async def test_delivery_that_is_handed_back_is_due_at_once(store: AnyStore) -> None:
    await add(store)
    (claimed,) = await claim(store)
    await store.write("acme", deliveries.hand_back, claimed)
    assert [delivery.attempts for delivery in await claim(store)] == [2]


@both_databases
async def test_single_process_takes_over_claims_of_its_predecessor(database: str, store: AnyStore) -> None:
    sent, waiting = await add(store), await add(store, "https://two.example")
    (one,) = [delivery for delivery in await claim(store) if delivery.id == waiting]
    await settle(store, one, OOPS)
    await store.close()
    async with opened(database) as after:
        assert await claim(after) == []
        assert await after.write(None, deliveries.release_all) == 1
        assert [delivery.id for delivery in await claim(after)] == [sent], (
            "and nothing else: the other's pause is not over"
        )


async def test_delayed_delivery_is_claimed_after_its_delay(store: AnyStore) -> None:
    await add(store, wait=timedelta(minutes=5))
    claimed, wait = await store.write(None, deliveries.claim, leases={WEBHOOK: LEASE}, busy=(), limit=9)
    assert claimed == []
    assert wait is not None
    assert timedelta(minutes=4) < wait <= timedelta(minutes=5)
    store.clock_offset = timedelta(minutes=5)
    assert len(await claim(store)) == 1


async def test_empty_outbox_has_no_next_due_time(store: AnyStore) -> None:
    claimed, wait = await store.write(None, deliveries.claim, leases={WEBHOOK: LEASE}, busy=(), limit=9)
    assert (claimed, wait) == ([], None)


async def test_targets_at_their_limit_are_skipped(store: AnyStore) -> None:
    for target in ("https://slow.example", "https://slow.example", "https://one.example"):
        await add(store, target)
    assert [delivery.target for delivery in await claim(store, busy=("https://slow.example",))] == [
        "https://one.example"
    ]
    _, wait = await store.write(None, deliveries.claim, leases={WEBHOOK: LEASE}, busy=["https://slow.example"], limit=9)
    assert wait is not None
    assert wait > timedelta(), "what is passed over does not keep the sender awake"


async def test_only_kinds_with_a_carrier_are_claimed(store: AnyStore) -> None:
    await store.write("acme", deliveries.add, "pigeon", subject="x", target="roof", body="{}")
    assert await claim(store) == []


@pytest.mark.promise("P10")
async def test_tenant_sees_only_its_own_deliveries(store: AnyStore) -> None:
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
        seen += [item.id for item in page.items]
        cursor = page.next
        if cursor is None:
            break
    assert seen == ids[::-1]
    arrived = await store.read(
        "acme", deliveries.page, status=DeliveryStatus.DELIVERED, subject="run:1", limit=9, cursor=None
    )
    assert [item.id for item in arrived.items] == [first.id]
    none = await store.read("acme", deliveries.page, status=None, subject="run:2", limit=9, cursor=None)
    assert none.items == []


async def test_only_settled_deliveries_are_pruned_after_retention(store: AnyStore) -> None:
    arrived, failed, waiting = [await add(store) for _ in range(3)]
    claimed = {delivery.id: delivery for delivery in await claim(store)}
    await settle(store, claimed[arrived])
    await settle(store, claimed[failed], Failure("gone", final=True))
    await settle(store, claimed[waiting], OOPS)
    attempted = claimed[arrived].attempted_at
    assert attempted is not None
    assert await store.write(None, deliveries.prune, attempted) == 0
    assert await store.write(None, deliveries.prune, attempted + timedelta(seconds=1)) == 2
    page = await store.read("acme", deliveries.page, status=None, subject=None, limit=9, cursor=None)
    assert [item.id for item in page.items] == [waiting]


class TestAnnouncing:
    """A run's end, as the engine records it."""

    async def test_run_without_a_webhook_adds_no_delivery(self, store: AnyStore) -> None:
        await store.write("acme", finished, None, Outcome(RunStatus.SUCCESS))
        assert await claim(store) == []

    async def test_webhook_body_is_the_final_row_of_the_run(self, store: AnyStore) -> None:
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

    async def test_webhook_after_a_rollback_has_the_pending_interrupts(self, store: AnyStore) -> None:
        outcome = Outcome(RunStatus.INTERRUPTED, rolled_back=True)
        await store.write("acme", finished, "https://one.example/hook", outcome, waits=True)
        (claimed,) = await claim(store)
        body = json.loads(claimed.body)
        assert (body["status"], body["waiting"], body["interrupts"]) == ("rollback", True, [QUESTION])


@both_databases
async def test_body_of_a_delivered_row_is_erased(database: str, store: AnyStore) -> None:
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
