"""The sender on every store, with real receivers: at once, signed, again where it failed, never lost, never starved."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from assent.domain import webhooks
from assent.domain.addresses import LOOPBACK, Allowed
from assent.domain.deliveries import DELAYS, JITTER, WEBHOOK, Delivery, DeliveryStatus, Failure
from assent.errors import Unavailable
from assent.notify import sender as module
from assent.notify.outbound import Outbound
from assent.notify.sender import LOOK_EVERY, Carry, Sender
from assent.notify.targets import Targets
from assent.notify.webhooks import WebhookCarrier
from assent.store import deliveries
from tests.contract.stores import AnyStore, both_databases, only_postgres, opened
from tests.receiver import PATIENCE, Receiver, receiving, verified

SECRET = b"s" * 32
TENANT = "acme"
SHOWN = webhooks.shown_key(webhooks.signing_key(SECRET, TENANT))


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as found:
        yield found


@asynccontextmanager
async def sending(
    store: AnyStore, *allowed: str, carry: Carry | None = None, alone: bool = True, timeout: float = PATIENCE
) -> AsyncIterator[Sender]:
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    outbound = Outbound(Targets(Allowed.named(allowed or LOOPBACK)), trust=trust)
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


async def row(store: AnyStore, delivery_id: str) -> Delivery:
    found = await store.read(TENANT, deliveries.get, delivery_id)
    assert found is not None
    return found


async def becomes(store: AnyStore, delivery_id: str, fits: Callable[[Delivery], bool]) -> Delivery:
    """The delivery as soon as it is so."""
    async with asyncio.timeout(PATIENCE):
        while not fits(found := await row(store, delivery_id)):  # noqa: ASYNC110 - another task writes it
            await asyncio.sleep(0)
    return found


def failed(attempt: int) -> Callable[[Delivery], bool]:
    """Whether this attempt has been made, and in vain."""
    return lambda found: found.attempts == attempt and found.status is not DeliveryStatus.SENDING


def arrived(found: Delivery) -> bool:
    return found.status is DeliveryStatus.DELIVERED


async def test_it_arrives_at_once_complete_and_signed(store: AnyStore, receiver: Receiver) -> None:
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


async def test_what_was_left_before_the_start_is_sent_too(store: AnyStore, receiver: Receiver) -> None:
    delivery_id = await add(store, receiver.url)
    async with sending(store):
        await becomes(store, delivery_id, arrived)


async def test_after_a_failure_it_comes_again_under_the_same_id(store: AnyStore, receiver: Receiver) -> None:
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


async def test_after_the_whole_schedule_it_has_failed_and_a_person_can_send_it_again(
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
        ("", DeliveryStatus.PENDING, "the connection to the receiver broke off, or its answer was not HTTP"),
    ],
)
async def test_what_an_answer_means(
    store: AnyStore, receiver: Receiver, answer: str, status: DeliveryStatus, reason: str | None
) -> None:
    receiver.answers.append(answer)
    async with sending(store):
        delivery_id = await add(store, receiver.url)
        found = await becomes(store, delivery_id, failed(1))
    assert (found.status, found.failure) == (status, reason)


async def test_a_receiver_may_ask_for_more_time(store: AnyStore, receiver: Receiver) -> None:
    receiver.answers.append("429 Slowly\r\nretry-after: 600")
    async with sending(store):
        found = await becomes(store, await add(store, receiver.url), failed(1))
    assert found.due_at is not None
    assert found.attempted_at is not None
    assert found.due_at - found.attempted_at >= timedelta(seconds=600)


async def test_a_receiver_that_keeps_silent_is_given_up_and_tried_again(store: AnyStore, receiver: Receiver) -> None:
    receiver.hold.clear()
    async with sending(store, timeout=0.05):
        found = await becomes(store, await add(store, receiver.url), failed(1))
    assert (found.status, found.failure) == (DeliveryStatus.PENDING, "the receiver did not answer in time")


async def test_a_receiver_that_is_not_there_is_tried_again(store: AnyStore, receiver: Receiver) -> None:
    async with sending(store):
        found = await becomes(store, await add(store, f"http://127.0.0.2:{receiver.port}"), failed(1))
    assert found.status is DeliveryStatus.PENDING
    assert str(found.failure).startswith("the receiver cannot be reached")


async def test_what_may_not_be_called_fails_at_once_and_says_so(store: AnyStore, receiver: Receiver) -> None:
    async with sending(store, "10.0.0.0/8"):
        found = await becomes(store, await add(store, receiver.url), failed(1))
    assert found.status is DeliveryStatus.FAILED
    assert found.failure == "127.0.0.1 is not at a public address"
    assert receiver.calls == []


async def test_a_receiver_that_sends_its_caller_inside_gets_nothing_more(store: AnyStore, receiver: Receiver) -> None:
    receiver.answers.append("307 Over there\r\nlocation: http://169.254.169.254/latest")
    async with sending(store):
        found = await becomes(store, await add(store, receiver.url), failed(1))
    assert (found.status, found.failure) == (DeliveryStatus.FAILED, "169.254.169.254 is not at a public address")


async def test_a_slow_receiver_does_not_keep_the_others_waiting(store: AnyStore, receiver: Receiver) -> None:
    receiver.hold.clear()
    async with receiving() as fast, sending(store):
        slow = [await add(store, receiver.url) for _ in range(30)]
        for one in [await add(store, fast.url) for _ in range(10)]:
            await becomes(store, one, arrived)
        assert len(receiver.calls) < 16
        receiver.hold.set()
        for one in slow:
            await becomes(store, one, arrived)
    assert len(receiver.calls) == 30


async def test_no_more_than_so_many_at_once(store: AnyStore, receiver: Receiver) -> None:
    receiver.hold.clear()
    async with sending(store) as sender:
        ids = [await add(store, f"{receiver.url}/{number}") for number in range(40)]
        await receiver.has(module._CONCURRENCY)
        sender.wake()
        statuses = [(await row(store, one)).status for one in ids]
        assert statuses.count(DeliveryStatus.SENDING) == module._CONCURRENCY
        receiver.hold.set()
        for one in ids:
            await becomes(store, one, arrived)
    assert sorted(call.id for call in receiver.calls) == sorted(ids)


async def test_closing_lets_what_is_under_way_arrive(store: AnyStore, receiver: Receiver) -> None:
    receiver.hold.clear()
    async with sending(store):
        delivery_id = await add(store, receiver.url)
        await receiver.has(1)
        asyncio.get_running_loop().call_later(0.05, receiver.hold.set)
    assert arrived(await row(store, delivery_id))


async def test_closing_hands_back_what_does_not_arrive_in_time(store: AnyStore, receiver: Receiver) -> None:
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
async def test_it_outlives_a_store_that_fails(store: AnyStore, receiver: Receiver, monkeypatch: Any) -> None:
    write, broken = store.write, [Unavailable("no room"), Unavailable("no room"), RuntimeError("a bug")]

    async def flaky(tenant: str | None, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        if function is deliveries.claim and broken:
            raise broken.pop()
        return await write(tenant, function, *args, **kwargs)

    monkeypatch.setattr(store, "write", flaky)
    monkeypatch.setattr(module, "_AFTER_TROUBLE", 0)
    async with sending(store):
        await becomes(store, await add(store, receiver.url), arrived)
    assert broken == []


@both_databases
async def test_a_carrier_that_breaks_is_a_failed_attempt(store: AnyStore) -> None:
    async def breaks(delivery: Delivery) -> Failure | None:
        raise ZeroDivisionError

    async with sending(store, carry=breaks):
        found = await becomes(store, await add(store, "https://one.example"), failed(1))
    assert (found.status, found.failure) == (DeliveryStatus.PENDING, "something went wrong here; the log has it")


@only_postgres
async def test_several_processes_share_the_work(database: str, store: AnyStore, receiver: Receiver) -> None:
    async with opened(database) as other, sending(store, alone=False), sending(other, alone=False):
        ids = [await add(one, f"{receiver.url}/{number}") for number in range(20) for one in (store, other)]
        for one in ids:
            await becomes(store, one, arrived)
    assert sorted(call.id for call in receiver.calls) == sorted(ids), "each exactly once"


@only_postgres
async def test_what_a_stalled_process_holds_is_sent_by_another_after_its_lease(
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
