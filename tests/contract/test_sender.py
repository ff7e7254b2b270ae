"""The sender on every store, with real receivers: at once, signed, again where it failed, never lost, never starved."""

import asyncio
import logging
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpcore
import pytest

from assent.errors import StoreBusy, Unavailable
from assent.kernel.store.transaction import Tx
from assent.outbox import deliveries, webhook_signatures
from assent.outbox import sender as module
from assent.outbox.addresses import LOOPBACK, Allowed
from assent.outbox.client import Outbound
from assent.outbox.model import DELAYS, JITTER, RESUME, WEBHOOK, Delivery, DeliveryStatus, Failure
from assent.outbox.network import Resolve
from assent.outbox.sender import LOOK_EVERY, Carry, Sender
from assent.outbox.targets import Targets
from assent.outbox.webhooks import NOT_REACHED, WebhookCarrier
from tests.contract.stores import AnyStore, both_databases, only_postgres, opened
from tests.receiver import PATIENCE, Receiver, receiving, verified

SECRET = b"s" * 32
TENANT = "acme"
SHOWN = webhook_signatures.shown_key(webhook_signatures.signing_key(SECRET, TENANT))


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as webhook_receiver:
        yield webhook_receiver


@asynccontextmanager
async def sending(
    store: AnyStore,
    *allowed: str,
    carry: Carry | None = None,
    alone: bool = True,
    timeout: float = PATIENCE,
    resolve: Resolve | None = None,
) -> AsyncIterator[Sender]:
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    outbound = Outbound(Targets(Allowed.named(allowed or LOOPBACK)), trust=trust, resolve=resolve)
    carrier = carry or WebhookCarrier(outbound, lambda: SECRET, timeout=timeout)
    sender = Sender(store, {WEBHOOK: carrier}, alone=alone)
    await sender.open()
    try:
        yield sender
    finally:
        await sender.close(patience=PATIENCE)
        await outbound.close()


async def add(store: AnyStore, target: str, body: str = '{"run_id":"r1"}') -> str:
    return await store.write(TENANT, deliveries.add, WEBHOOK, subject="run:r1", target=target, body=body)


async def resume(store: AnyStore, wait: timedelta = timedelta()) -> str:
    return await store.write(
        TENANT, deliveries.add, RESUME, subject="item:i1", target="thread:t1", body="{}", wait=wait
    )


async def row(store: AnyStore, delivery_id: str) -> Delivery:
    delivery_row = await store.read(TENANT, deliveries.get, delivery_id)
    assert delivery_row is not None
    return delivery_row


async def becomes(store: AnyStore, delivery_id: str, fits: Callable[[Delivery], bool]) -> Delivery:
    """The delivery as soon as it is so."""
    async with asyncio.timeout(PATIENCE):
        while not fits(delivery_row := await row(store, delivery_id)):  # noqa: ASYNC110 - another task writes it
            await asyncio.sleep(0)
    return delivery_row


def failed(attempt: int) -> Callable[[Delivery], bool]:
    """Whether this attempt has been made, and in vain."""
    return lambda found: found.attempts == attempt and found.status is not DeliveryStatus.SENDING


def arrived(delivery_row: Delivery) -> bool:
    return delivery_row.status is DeliveryStatus.DELIVERED


async def test_delivery_arrives_at_once_complete_and_signed(store: AnyStore, receiver: Receiver) -> None:
    async with sending(store):
        started = time.monotonic()
        delivery_id = await add(store, f"{receiver.url}/hook?a=b")
        (call,) = await receiver.has(1)
        assert time.monotonic() - started < LOOK_EVERY / 2, "woken, not found by looking"
        settled = await becomes(store, delivery_id, arrived)
    assert (call.method, call.path, call.headers["content-type"]) == ("POST", "/hook?a=b", "application/json")
    assert call.id == delivery_id
    assert verified(call, SHOWN)
    assert settled.attempted_at is not None
    assert call.json == {"run_id": "r1", "webhook_sent_at": settled.attempted_at.isoformat()}
    sent_at = datetime.fromtimestamp(int(call.headers["webhook-timestamp"]), UTC)
    assert timedelta() <= settled.attempted_at - sent_at < timedelta(seconds=1)


async def test_deliveries_from_before_the_start_are_sent(store: AnyStore, receiver: Receiver) -> None:
    delivery_id = await add(store, receiver.url)
    async with sending(store):
        await becomes(store, delivery_id, arrived)


async def test_failed_delivery_is_retried_under_the_same_id(store: AnyStore, receiver: Receiver) -> None:
    receiver.answers.append("500 Oops")
    async with sending(store) as sender:
        delivery_id = await add(store, receiver.url)
        waiting = await becomes(store, delivery_id, failed(1))
        assert (waiting.status, waiting.failure) == (DeliveryStatus.PENDING, "the receiver answered 500")
        store.clock_offset = timedelta(minutes=1)
        sender.wake()
        settled = await becomes(store, delivery_id, arrived)
    first, second = receiver.calls
    assert settled.attempts == 2
    assert first.id == second.id
    assert first.headers["webhook-timestamp"] != second.headers["webhook-timestamp"]
    assert verified(first, SHOWN)
    assert verified(second, SHOWN)


async def test_delivery_fails_after_the_schedule_and_can_be_retried_manually(
    store: AnyStore, receiver: Receiver
) -> None:
    receiver.answers.extend(["503 Not now"] * (len(DELAYS) + 1))
    async with sending(store) as sender:
        delivery_id = await add(store, receiver.url)
        for attempt, delay in enumerate(DELAYS, start=1):
            await becomes(store, delivery_id, failed(attempt))
            store.clock_offset += delay * (1 + JITTER)
            sender.wake()
        given_up = await becomes(store, delivery_id, failed(len(DELAYS) + 1))
        assert (given_up.status, given_up.due_at) == (DeliveryStatus.FAILED, None)
        await store.write(TENANT, deliveries.retry, delivery_id)
        settled = await becomes(store, delivery_id, arrived)
    assert settled.attempts == 1
    assert len({call.id for call in receiver.calls}) == 1
    assert len(receiver.calls) == len(DELAYS) + 2


@pytest.mark.parametrize(
    ("answer", "status", "reason"),
    [
        ("204 No Content", DeliveryStatus.DELIVERED, None),
        ("302 Found\r\nlocation: /x", DeliveryStatus.PENDING, "the receiver answered 302"),
        ("404 Not Found", DeliveryStatus.PENDING, "the receiver answered 404"),
        ("410 Gone", DeliveryStatus.FAILED, "the receiver answered 410"),
        ("", DeliveryStatus.PENDING, "the connection to the receiver failed, or its answer was not HTTP"),
    ],
)
async def test_answer_of_the_receiver_gives_status_and_reason(
    store: AnyStore, receiver: Receiver, answer: str, status: DeliveryStatus, reason: str | None
) -> None:
    receiver.answers.append(answer)
    async with sending(store):
        delivery_id = await add(store, receiver.url)
        delivery_row = await becomes(store, delivery_id, failed(1))
    assert (delivery_row.status, delivery_row.failure) == (status, reason)


async def test_retry_after_of_the_receiver_is_honoured(store: AnyStore, receiver: Receiver) -> None:
    receiver.answers.append("429 Slowly\r\nretry-after: 600")
    async with sending(store):
        delivery_row = await becomes(store, await add(store, receiver.url), failed(1))
    assert delivery_row.due_at is not None
    assert delivery_row.attempted_at is not None
    assert delivery_row.due_at - delivery_row.attempted_at >= timedelta(seconds=600)


async def test_receiver_that_does_not_answer_times_out_and_is_retried(store: AnyStore, receiver: Receiver) -> None:
    receiver.hold.clear()
    async with sending(store, timeout=0.05):
        delivery_row = await becomes(store, await add(store, receiver.url), failed(1))
    assert (delivery_row.status, delivery_row.failure) == (DeliveryStatus.PENDING, NOT_REACHED)


async def test_unreachable_receiver_is_retried(store: AnyStore, receiver: Receiver) -> None:
    async with sending(store):
        delivery_row = await becomes(store, await add(store, f"http://127.0.0.2:{receiver.port}"), failed(1))
    assert (delivery_row.status, delivery_row.failure) == (DeliveryStatus.PENDING, NOT_REACHED)


@pytest.mark.parametrize("answer", [[], ["10.0.0.5"], ["127.0.0.1"], ["93.184.216.34", "10.0.0.5"], None])
async def test_failure_text_does_not_reveal_whether_an_internal_name_exists(
    store: AnyStore, answer: list[str] | None, caplog: pytest.LogCaptureFixture
) -> None:
    """The name leads inside, to nothing, or is not known: one text, one way to go on. The log tells the operator."""

    async def resolve(host: str, port: int) -> list[str]:
        if answer is None:
            raise httpcore.ConnectError(f"{host} is not known")
        return answer

    with caplog.at_level(logging.INFO):
        async with sending(store, "192.0.2.0/24", resolve=resolve):
            delivery_row = await becomes(store, await add(store, "http://vault.internal/hook"), failed(1))
    assert (delivery_row.status, delivery_row.failure) == (DeliveryStatus.PENDING, NOT_REACHED)
    assert delivery_row.due_at is not None
    (told,) = [record for record in caplog.records if record.message == "deliver webhook failed: receiver not reached"]
    assert "vault.internal" in told.__dict__["reason"]


async def test_control_an_address_in_the_url_is_named_in_the_failure(store: AnyStore) -> None:
    async with sending(store, "192.0.2.0/24"):
        delivery_row = await becomes(store, await add(store, "http://10.0.0.5/hook"), failed(1))
    assert (delivery_row.status, delivery_row.failure) == (DeliveryStatus.FAILED, "10.0.0.5 is not at a public address")


async def test_forbidden_target_fails_at_once_with_the_reason(store: AnyStore, receiver: Receiver) -> None:
    async with sending(store, "10.0.0.0/8"):
        delivery_row = await becomes(store, await add(store, receiver.url), failed(1))
    assert delivery_row.status is DeliveryStatus.FAILED
    assert delivery_row.failure == "127.0.0.1 is not at a public address"
    assert receiver.calls == []


async def test_redirect_to_an_internal_address_is_not_followed(store: AnyStore, receiver: Receiver) -> None:
    receiver.answers.append("307 Over there\r\nlocation: http://169.254.169.254/latest")
    async with sending(store):
        delivery_row = await becomes(store, await add(store, receiver.url), failed(1))
    assert (delivery_row.status, delivery_row.failure) == (
        DeliveryStatus.FAILED,
        "169.254.169.254 is not at a public address",
    )


async def test_slow_receiver_does_not_delay_others(store: AnyStore, receiver: Receiver) -> None:
    receiver.hold.clear()
    async with receiving() as fast, sending(store):
        slow = [await add(store, receiver.url) for _ in range(30)]
        for number in [await add(store, fast.url) for _ in range(10)]:
            await becomes(store, number, arrived)
        assert len(receiver.calls) < 16
        receiver.hold.set()
        for number in slow:
            await becomes(store, number, arrived)
    assert len(receiver.calls) == 30


async def test_concurrent_deliveries_are_limited(store: AnyStore, receiver: Receiver) -> None:
    receiver.hold.clear()
    async with sending(store) as sender:
        ids = [await add(store, f"{receiver.url}/{number}") for number in range(40)]
        await receiver.has(module._CONCURRENCY)
        sender.wake()
        statuses = [(await row(store, number)).status for number in ids]
        assert statuses.count(DeliveryStatus.SENDING) == module._CONCURRENCY
        receiver.hold.set()
        for item_id in ids:
            await becomes(store, item_id, arrived)
    assert sorted(call.id for call in receiver.calls) == sorted(ids)


async def test_closing_waits_for_deliveries_in_progress(store: AnyStore, receiver: Receiver) -> None:
    receiver.hold.clear()
    async with sending(store):
        delivery_id = await add(store, receiver.url)
        await receiver.has(1)
        asyncio.get_running_loop().call_later(0.05, receiver.hold.set)
    assert arrived(await row(store, delivery_id))


async def test_closing_hands_back_unfinished_deliveries(store: AnyStore, receiver: Receiver) -> None:
    receiver.hold.clear()
    async with sending(store) as sender:
        delivery_id = await add(store, receiver.url)
        await receiver.has(1)
        await sender.close(patience=0)
        assert (await row(store, delivery_id)).status is DeliveryStatus.PENDING
    receiver.hold.set()
    async with sending(store, alone=False):
        await becomes(store, delivery_id, arrived)
    assert {call.id for call in receiver.calls} == {delivery_id}


@both_databases
async def test_sender_continues_after_store_errors(store: AnyStore, receiver: Receiver, monkeypatch: Any) -> None:
    write, broken = store.write, [Unavailable("no room"), Unavailable("no room"), RuntimeError("a bug")]

    async def flaky(tenant: str | None, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        if function is module._claim and broken:
            raise broken.pop()
        return await write(tenant, function, *args, **kwargs)

    monkeypatch.setattr(store, "write", flaky)
    monkeypatch.setattr(module, "_AFTER_TROUBLE", 0)
    async with sending(store):
        await becomes(store, await add(store, receiver.url), arrived)
    assert broken == []


@both_databases
async def test_error_of_a_carrier_is_a_failed_attempt(store: AnyStore) -> None:
    async def breaks(delivery: Delivery) -> Failure | None:
        raise ZeroDivisionError

    async with sending(store, carry=breaks):
        delivery_row = await becomes(store, await add(store, "https://one.example"), failed(1))
    assert (delivery_row.status, delivery_row.failure) == (DeliveryStatus.PENDING, "internal error; see the log")


@both_databases
async def test_unanswered_webhooks_do_not_delay_decisions(store: AnyStore) -> None:
    carried = asyncio.Event()

    async def never(delivery: Delivery) -> Failure | None:
        await asyncio.Event().wait()
        return None

    async def arrives(delivery: Delivery) -> Failure | None:
        carried.set()
        return None

    for number in range(40):
        await add(store, f"https://one.example/{number}")
    sender = Sender(store, {WEBHOOK: never, RESUME: arrives}, alone=True)
    await sender.open()
    await resume(store)
    await asyncio.wait_for(carried.wait(), PATIENCE)
    await sender.close(patience=0)


@both_databases
@pytest.mark.parametrize("outcome", [True, False, ZeroDivisionError])
async def test_delivery_at_once_arrives_in_one_transaction_or_is_claimed(store: AnyStore, outcome: Any) -> None:
    claimed: list[str] = []

    def arrives(tx: Tx, delivery: Delivery) -> bool:
        deliveries.add(tx, "effect", subject="run:r1", target="none", body="{}", delivery_id="effect")
        if outcome is ZeroDivisionError:
            raise outcome
        return bool(outcome)

    async def carries(delivery: Delivery) -> Failure | None:
        claimed.append(delivery.id)
        return None

    earlier = await add(store, "https://one.example")
    sender = Sender(store, {WEBHOOK: carries, RESUME: carries}, alone=True, at_once={RESUME: arrives})
    await sender.open()
    await becomes(store, earlier, arrived)  # the first round is over
    delivery_id = await resume(store)
    settled = await becomes(store, delivery_id, arrived)
    await sender.close(patience=PATIENCE)
    assert (settled.attempts, settled.failure, settled.body) == (1, None, "")
    assert settled.attempted_at is not None
    assert claimed == ([earlier] if outcome is True else [earlier, delivery_id])
    effect = await store.read(TENANT, deliveries.get, "effect")
    assert (effect is not None) == (outcome is True), "a transaction that did not deliver leaves nothing"


@both_databases
async def test_delayed_delivery_is_not_made_at_once(store: AnyStore) -> None:
    tried: list[str] = []

    def arrives(tx: Tx, delivery: Delivery) -> bool:
        tried.append(delivery.id)
        return True

    delayed = await resume(store, wait=timedelta(hours=1))
    with pytest.raises(AssertionError):
        await store.write(TENANT, _arrived, delayed, arrives)
    assert tried == []
    due = await resume(store)
    await store.write(TENANT, _arrived, due, arrives)
    with pytest.raises(AssertionError):
        await store.write(TENANT, _arrived, due, arrives)
    assert tried == [due], "control: a new one that is due is delivered, and only once"


def _arrived(tx: Tx, delivery_id: str, arrives: Callable[[Tx, Delivery], bool]) -> None:
    assert deliveries.arrive(tx, delivery_id, arrives) is not None


@both_databases
async def test_cancellation_that_a_carrier_turns_into_an_error_hands_the_delivery_back(store: AnyStore) -> None:
    begun = asyncio.Event()

    async def swallows(delivery: Delivery) -> Failure | None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ConnectionError("the connection was closed") from None
        return None

    sender = Sender(store, {WEBHOOK: swallows}, alone=True)
    await sender.open()
    delivery = await add(store, "https://one.example")
    await asyncio.wait_for(begun.wait(), PATIENCE)
    await sender.close(patience=0)
    delivery_row = await row(store, delivery)
    assert (delivery_row.status, delivery_row.failure) == (DeliveryStatus.PENDING, None)


@both_databases
async def test_database_outage_is_not_a_failed_attempt(store: AnyStore, monkeypatch: Any) -> None:
    """A decision would otherwise wait for hours after a few tries. A carrier that breaks is the control, above."""
    tries: list[str] = []

    async def finds_no_connection(delivery: Delivery) -> Failure | None:
        tries.append(delivery.id)
        if len(tries) <= len(DELAYS):
            raise StoreBusy
        return None

    monkeypatch.setattr(module, "_AFTER_TROUBLE", 0)
    async with sending(store, carry=finds_no_connection):
        delivery_row = await becomes(store, await add(store, "https://one.example"), arrived)
    assert (len(tries), delivery_row.failure) == (len(DELAYS) + 1, None)


@only_postgres
async def test_several_processes_share_the_deliveries(database: str, store: AnyStore, receiver: Receiver) -> None:
    async with opened(database) as other, sending(store, alone=False), sending(other, alone=False):
        ids = [
            await add(each_store, f"{receiver.url}/{number}") for number in range(20) for each_store in (store, other)
        ]
        for item_id in ids:
            await becomes(store, item_id, arrived)
    assert sorted(call.id for call in receiver.calls) == sorted(ids), "each exactly once"


@only_postgres
async def test_delivery_of_a_stalled_process_is_sent_by_another_after_its_lease(
    database: str, store: AnyStore, receiver: Receiver
) -> None:
    delivery_id = await add(store, receiver.url)
    claimed, _ = await store.write(None, deliveries.claim, leases={WEBHOOK: module.LEASE}, busy=(), limit=1)
    async with opened(database) as other, sending(other, alone=False) as sender:
        assert (await row(store, delivery_id)).status is DeliveryStatus.SENDING
        other.clock_offset = module.LEASE
        sender.wake()
        await becomes(store, delivery_id, arrived)
    assert not await store.write(TENANT, deliveries.settle, claimed[0], Failure("late"), dice=0)
    assert len(receiver.calls) == 1
