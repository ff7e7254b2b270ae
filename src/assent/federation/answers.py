"""Delivers decisions to other deployments.

Right before sending, the deployment is asked whether exactly the decided question is still pending. The run that
continues the thread carries the id of the delivery. A retry looks for that run first, so that an answer whose response
was lost is not sent again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from assent.errors import ConfigError, DeploymentFailed
from assent.federation.connection import Connection
from assent.federation.deployments import RemoteDeployments
from assent.federation.following import DELIVERY
from assent.kernel import canonical, jsontext
from assent.kernel.canonical import Json
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.outbox.model import Delivery, Failure
from assent.review.model.items import Item
from assent.review.model.questions import Resolution
from assent.review.threads import decided, elsewhere
from assent.threads.model.deployments import Deployment
from assent.threads.rows import deployments, remote_threads
from assent.threads.rows.remote_threads import RemoteThread

_PATIENCE_SECONDS = 20.0  # below the lease of a delivery: two senders must not send at once
_AFTER_LOSS, _AFTER_TIMEOUT = timedelta(seconds=2), timedelta(seconds=10)
_WHILE_PAUSED = timedelta(minutes=1)
_REFUSED = (400, 404, 422)
_BUSY = 409


@dataclass(frozen=True, slots=True)
class _Errand:
    deployment: Deployment
    thread: RemoteThread
    item: Item
    interrupt_id: str
    value: Json


class AnswerCarrier:
    def __init__(self, store: Store, remote: RemoteDeployments) -> None:
        self._store = store
        self._remote = remote

    async def __call__(self, delivery: Delivery) -> Failure | None:
        errand = await self._store.read(delivery.tenant, _errand, delivery)
        if isinstance(errand, Failure):
            return errand
        try:
            connection = self._remote.connection(delivery.tenant, errand.deployment)
            async with asyncio.timeout(_PATIENCE_SECONDS):
                failure = await self._carry(connection, delivery, errand)
        except DeploymentFailed as failed:
            return await self._failed(delivery, errand, failed)
        except TimeoutError:
            return Failure(f"{errand.deployment.name} did not answer in time", wait=_AFTER_TIMEOUT)
        except ConfigError as error:
            return Failure(error.message)
        if failure is None:
            await self._store.write(delivery.tenant, remote_threads.unsettle, errand.thread.key)
        return failure

    async def _carry(self, connection: Connection, delivery: Delivery, errand: _Errand) -> Failure | None:
        thread_id = errand.thread.thread_id
        if delivery.attempts > 1 and await _was_received(connection, thread_id, delivery):
            return None
        pending = await connection.pending(thread_id)
        if not await self._store.read(delivery.tenant, elsewhere.still_asks, errand.item, pending):
            return await self._overtaken(connection, delivery, errand)
        if errand.value is None:
            await connection.end(thread_id)
            return None
        await connection.start(thread_id, await _run(connection, delivery, errand, pending))
        return None

    async def _overtaken(self, connection: Connection, delivery: Delivery, errand: _Errand) -> Failure | None:
        thread_id = errand.thread.thread_id
        if await _was_received(connection, thread_id, delivery):
            return None
        exists = await connection.thread(thread_id) is not None
        resolution = Resolution.ANSWERED_ELSEWHERE if exists else Resolution.THREAD_ENDED
        reason = "the thread no longer asks this question" if exists else "the thread was deleted"
        return await self._store.write(
            delivery.tenant, elsewhere.overtaken, delivery, errand.item.id, resolution, reason
        )

    async def _failed(self, delivery: Delivery, errand: _Errand, failed: DeploymentFailed) -> Failure:
        if failed.answered in _REFUSED:
            reason = f"the deployment refused the answer: {failed.message}"
            return await self._store.write(delivery.tenant, _refused, delivery, errand.item.id, reason)
        wait = _AFTER_LOSS if failed.unsure else timedelta()
        return Failure(f"{failed.message}; {failed.hint}", wait=wait)


async def _run(
    connection: Connection, delivery: Delivery, errand: _Errand, pending: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The run that answers. A deployment without interrupt ids can be answered only while it asks one question."""
    value = stringified(errand.value) if errand.deployment.stringify_args else errand.value
    by_place = errand.interrupt_id.startswith("task:") and len(pending) == 1
    return {
        "assistant_id": await _assistant(connection, errand),
        "command": {"resume": value if by_place else {errand.interrupt_id: value}},
        "metadata": {DELIVERY: delivery.id},
        "multitask_strategy": "reject",
    }


async def _assistant(connection: Connection, errand: _Errand) -> str:
    known = errand.thread.assistant_id or errand.thread.graph_id or next(iter(errand.deployment.graphs), None)
    if known is not None:
        return known
    latest = next(iter(await connection.runs(errand.thread.thread_id, limit=1)), {})
    return str(latest.get("assistant_id", ""))


async def _was_received(connection: Connection, thread_id: str, delivery: Delivery) -> bool:
    runs = await connection.runs(thread_id)
    marks = (run.get("metadata") for run in runs)
    return any(isinstance(mark, dict) and mark.get(DELIVERY) == delivery.id for mark in marks)


def _errand(tx: Tx, delivery: Delivery) -> _Errand | Failure:
    body = jsontext.load(delivery.body)
    item, thread = decided.asked_by(tx, body["item_id"]), remote_threads.by_key(tx, body["thread_id"])
    deployment = deployments.get(tx, thread.deployment_id) if thread else None
    if item is None or thread is None or deployment is None:
        return Failure("the deployment was removed", final=True)
    if decided.is_withdrawn(tx, delivery, item.id, body["interrupt_id"]):
        return Failure("the decision was withdrawn", final=True)
    if deployment.paused:
        return Failure("the deployment is paused", wait=_WHILE_PAUSED)
    return _Errand(deployment, thread, item, body["interrupt_id"], body["value"])


def _refused(tx: Tx, delivery: Delivery, item_id: str, reason: str) -> Failure:
    return decided.fail(tx, delivery, decided.asked_by(tx, item_id), reason)


def stringified(value: Json) -> Json:
    """The answer with the arguments of calls as texts, for graphs that expect texts."""
    if isinstance(value, list):
        return [stringified(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    return {name: _texts(inner) if name == "args" else stringified(inner) for name, inner in value.items()}


def _texts(args: Json) -> Json:
    if not isinstance(args, dict):
        return args
    if "args" in args:  # an action request inside of an answer
        return {name: _texts(inner) if name == "args" else inner for name, inner in args.items()}
    return {name: inner if isinstance(inner, str) else canonical.text(inner) for name, inner in args.items()}
