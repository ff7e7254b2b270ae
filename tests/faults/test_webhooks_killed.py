"""`kill -9` while a webhook is under way: it comes again under the same id, and nothing else does."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from assent.identity.model.access import operator
from assent.outbox.addresses import LOOPBACK, Allowed
from assent.outbox.client import Outbound
from assent.outbox.model import WEBHOOK
from assent.outbox.sender import LEASE, Sender
from assent.outbox.targets import Targets
from assent.outbox.webhooks import WebhookCarrier
from assent.review.deliveries import Deliveries
from tests.contract.stores import opened
from tests.receiver import Receiver, receiving
from tests.servers import ServerProcess, dev_server, running


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as webhook_receiver:
        yield webhook_receiver


async def start_run(server: ServerProcess, receiver: Receiver) -> Any:
    async with httpx.AsyncClient(base_url=server.url, trust_env=False) as client:
        body = {"assistant_id": "echo", "input": {"text": "x"}, "webhook": receiver.url}
        return (await client.post("/runs", json=body)).json()


@pytest.mark.promise("P12")
async def test_webhook_is_sent_again_at_once_after_a_restart_on_sqlite(folder: Path, receiver: Receiver) -> None:
    receiver.hold.clear()
    with running(dev_server(f"sqlite:///{folder}/assent.db")) as server:
        run = await start_run(server, receiver)
        (first,) = await receiver.has(1)
        server.kill()
    receiver.hold.set()
    with running(dev_server(f"sqlite:///{folder}/assent.db")) as server:
        _, second = await receiver.has(2)
        await asyncio.to_thread(server.stop)  # which lets the receiver's answer come in
    assert first.id == second.id
    assert first.json["run_id"] == second.json["run_id"] == run["run_id"]
    with running(dev_server(f"sqlite:///{folder}/assent.db")) as server:
        async with opened(f"sqlite:///{folder}/assent.db") as store:
            arrived = (await Deliveries(store, secret=lambda: b"").list(operator())).items
    assert [(row.id, row.status, row.attempts) for row in arrived] == [(first.id, "delivered", 2)]
    assert len(receiver.calls) == 2, "what has arrived does not come again"


@pytest.mark.promise("P12")
async def test_webhook_is_sent_again_by_another_process_after_the_lease_on_postgres(
    postgres_url: str, receiver: Receiver
) -> None:
    receiver.hold.clear()
    with running(dev_server(postgres_url)) as server:
        await start_run(server, receiver)
        (first,) = await receiver.has(1)
        server.kill()
    receiver.hold.set()
    outbound = Outbound(Targets(Allowed.named(LOOPBACK)), trust=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    async with opened(postgres_url) as store:
        store.clock_offset = LEASE
        sender = Sender(store, {WEBHOOK: WebhookCarrier(outbound, lambda: b"s" * 32)}, alone=False)
        await sender.open()
        _, second = await receiver.has(2)
        await sender.close()
        await outbound.close()
    assert first.id == second.id
