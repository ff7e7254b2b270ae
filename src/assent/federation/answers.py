"""Delivers decisions to other deployments.

Right before sending, the deployment is asked whether exactly the decided question is still pending. The run that
continues the thread carries the id of the delivery. It is looked for first, so that an answer whose response was lost
is not sent again. A thread gets one answer at a time: where a deployment runs two at once, one of them is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from assent.errors import ConfigError, DeploymentFailed
from assent.federation.answering_runs import DELIVERY, Run, delivery_of, is_answered
from assent.federation.connection import Connection
from assent.federation.deployments import RemoteDeployments
from assent.federation.questions import acceptable
from assent.kernel import canonical, jsontext
from assent.kernel.canonical import Json
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.outbox.model import Delivery, Failure
from assent.review.model.grants import ITEM
from assent.review.model.items import Item
from assent.review.model.questions import Resolution
from assent.review.threads import decided, elsewhere
from assent.threads.model.deployments import Deployment
from assent.threads.rows.remote import deployments, remote_threads
from assent.threads.rows.remote.remote_threads import RemoteThread

_PATIENCE_SECONDS = 20.0  # below the lease of a delivery: two senders must not send at once
_AFTER_LOSS, _AFTER_TIMEOUT = timedelta(seconds=2), timedelta(seconds=10)
_WHILE_PAUSED = timedelta(minutes=1)
_TURN = timedelta(seconds=30)  # above the patience
_FIRST_WAIT, _LONGEST_WAIT, _WAITS_PER_AGE = timedelta(seconds=1), timedelta(seconds=30), 10
_REFUSED = (400, 404, 422)
_MAY_BE_BUSY, _BUSY_ATTEMPTS = 400, 3


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
            failure = await self._failed(delivery, errand, failed)
            if failed.unsure:  # the answer may still arrive: the turn lasts until its lease is over
                return failure
        except TimeoutError:
            return Failure(f"{errand.deployment.name} did not answer in time", wait=_AFTER_TIMEOUT)
        except ConfigError as error:
            return Failure(error.message)
        await self._store.write(delivery.tenant, _end_turn, errand.thread.key, delivery.id, answered=failure is None)
        return failure

    async def wake(self, delivery: Delivery) -> Failure | None:
        """Wakes a thread whose gate fetches the answer itself. A thread of no deployment here is continued there."""
        thread = await self._store.read(delivery.tenant, _thread_of, delivery)
        return None if thread is None else await self(delivery)

    async def _carry(self, connection: Connection, delivery: Delivery, errand: _Errand) -> Failure | None:
        thread_id, turn = errand.thread.thread_id, (errand.thread.key, delivery.id, _TURN)
        if not await self._store.write(delivery.tenant, remote_threads.take_turn, *turn):
            return _wait(delivery)
        runs = await connection.runs(thread_id)
        if _was_received(runs, delivery):
            return None
        if is_answered(runs):
            return _wait(delivery)
        asked = await connection.pending(thread_id)
        pending = await acceptable(self._store.limits, asked, thread=thread_id, deployment=errand.deployment.id)
        if not await self._store.read(delivery.tenant, elsewhere.still_asks, errand.item, errand.thread, pending):
            return await self._overtaken(connection, delivery, errand)
        if errand.value is None:
            await connection.end(thread_id)
            return None
        await self._store.write(delivery.tenant, _note_contribution, delivery, errand)
        await connection.start(thread_id, _run(delivery, errand, asked, next(iter(runs), {})))
        return None

    async def _overtaken(self, connection: Connection, delivery: Delivery, errand: _Errand) -> Failure | None:
        thread_id = errand.thread.thread_id
        if _was_received(await connection.runs(thread_id), delivery):
            return None
        exists = await connection.thread(thread_id) is not None
        resolution = Resolution.ANSWERED_ELSEWHERE if exists else Resolution.THREAD_ENDED
        reason = "the thread no longer asks this question" if exists else "the thread was deleted"
        return await self._store.write(
            delivery.tenant, elsewhere.overtaken, delivery, errand.item.id, resolution, reason
        )

    async def _failed(self, delivery: Delivery, errand: _Errand, failed: DeploymentFailed) -> Failure:
        # Aegra answers 400 while another answer is under way, and no longer tells so afterwards
        busy = failed.answered == _MAY_BE_BUSY and delivery.attempts < _BUSY_ATTEMPTS
        if failed.answered in _REFUSED and not busy:
            reason = f"the deployment refused the answer: {failed.message}"
            return await self._store.write(delivery.tenant, _refused, delivery, errand.item.id, reason)
        wait = _AFTER_LOSS if failed.unsure else timedelta()
        return Failure(f"{failed.message}; {failed.hint}", wait=wait)


def _run(
    delivery: Delivery, errand: _Errand, pending: Sequence[Mapping[str, Any]], latest: Mapping[str, Any]
) -> dict[str, Any]:
    """The run that answers. A deployment without interrupt ids can be answered only while it asks one question. One
    that keeps no metadata of runs keeps that of their config."""
    value = stringified(errand.value) if errand.deployment.stringify_args else errand.value
    by_place = errand.interrupt_id.startswith("task:") and len(pending) == 1
    mark = {DELIVERY: delivery.id}
    return {
        "assistant_id": _assistant(errand, latest),
        "command": {"resume": value if by_place else {errand.interrupt_id: value}},
        "metadata": mark,
        "multitask_strategy": "reject",
        **({"config": {"metadata": mark}} if latest and "metadata" not in latest else {}),
    }


def _assistant(errand: _Errand, latest: Mapping[str, Any]) -> str:
    known = errand.thread.assistant_id or errand.thread.graph_id or next(iter(errand.deployment.graphs), None)
    return known or str(latest.get("assistant_id", ""))


def _was_received(runs: Sequence[Run], delivery: Delivery) -> bool:
    return any(delivery_of(run) == delivery.id for run in runs)


def _wait(delivery: Delivery) -> Failure:
    """Often at first, then rarely: the run of another answer may take hours."""
    age = (delivery.attempted_at or delivery.created_at) - delivery.created_at
    wait = min(max(age / _WAITS_PER_AGE, _FIRST_WAIT), _LONGEST_WAIT)
    return Failure("another answer is under way on the thread", wait=wait, attempted=False)


def _end_turn(tx: Tx, key: str, delivery_id: str, *, answered: bool) -> None:
    remote_threads.end_turn(tx, key, delivery_id)
    if answered:
        remote_threads.unsettle(tx, key)


def _errand(tx: Tx, delivery: Delivery) -> _Errand | Failure:
    body = jsontext.load(delivery.body)
    item = decided.asked_by(tx, body["item_id"])
    thread = elsewhere.thread_of(tx, item) if item else None
    deployment = deployments.get(tx, thread.deployment_id) if thread else None
    if item is None or thread is None or deployment is None:
        return Failure("the deployment was removed", final=True)
    if decided.is_withdrawn(tx, delivery, item.id, body["interrupt_id"]):
        return Failure("the decision was withdrawn", final=True)
    if deployment.paused:
        return Failure("the deployment is paused", wait=_WHILE_PAUSED)
    return _Errand(deployment, thread, item, body["interrupt_id"], _value(item, body["value"]))


def _value(item: Item, answer: Json) -> Json:
    """A gate fetches its answer itself. A resume would answer any other question of the thread, too."""
    return answer if item.origin is None or answer is None else {ITEM: item.id}


def _thread_of(tx: Tx, delivery: Delivery) -> RemoteThread | None:
    item = decided.asked_by(tx, jsontext.load(delivery.body)["item_id"])
    return elsewhere.thread_of(tx, item) if item else None


def _note_contribution(tx: Tx, delivery: Delivery, errand: _Errand) -> None:
    """Before the answer is sent: the next question can be here before the response."""
    said = jsontext.load(delivery.body).get("comments", ())
    decided.note_contribution(tx, errand.item.id, str(errand.item.thread_id), said)


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
