"""`kill -9` while a webhook is under way: it comes again under the same id, and nothing else does."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from assent.domain.addresses import LOOPBACK, Allowed
from assent.domain.deliveries import WEBHOOK
from assent.notify.outbound import Outbound
from assent.notify.sender import LEASE, Sender
from assent.notify.targets import Targets
from assent.notify.webhooks import WebhookCarrier
from tests.contract.stores import opened
from tests.receiver import Receiver, receiving
from tests.servers import ServerProcess, dev_server, running


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as found:
        yield found


async def start_run(server: ServerProcess, receiver: Receiver) -> Any:
    async with httpx.AsyncClient(base_url=server.url, trust_env=False) as client:
        body = {"assistant_id": "echo", "input": {"text": "x"}, "webhook": receiver.url}
        return (await client.post("/runs", json=body)).json()


@pytest.mark.promise("P12")
async def test_after_a_restart_on_the_same_file_at_once(folder: Path, receiver: Receiver) -> None:
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
        async with httpx.AsyncClient(base_url=server.url, trust_env=False) as client:
            arrived = (await client.get("/api/deliveries")).json()["items"]
    assert [(one["id"], one["status"], one["attempts"]) for one in arrived] == [(first.id, "delivered", 2)]
    assert len(receiver.calls) == 2, "what has arrived does not come again"


@pytest.mark.promise("P12")
async def test_by_another_process_on_the_same_postgres_after_the_lease(postgres_url: str, receiver: Receiver) -> None:
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
