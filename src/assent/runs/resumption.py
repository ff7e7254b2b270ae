"""Delivers a decision from the outbox to its waiting thread exactly once.

The run that continues the thread has the delivery's id, so a retry finds it. A decision on a question that the thread
no longer asks is not delivered.
"""

from __future__ import annotations

from typing import Any, Protocol

from assent.errors import AssentError, Unavailable
from assent.kernel import jsontext
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.outbox.model import Delivery, Failure
from assent.review.dialects.breakpoint import NAME as BREAKPOINT
from assent.review.dialects.breakpoint import Step
from assent.review.threads import decided
from assent.runs.continuation import run_before
from assent.runs.start import start_continuation
from assent.threads.rows import answers, holds, runs, threads

WITHDRAWN = Failure("the decision was withdrawn", final=True)


class EndThread(Protocol):
    """Ends a tenant's thread at its current state."""

    async def __call__(self, tenant: str, thread_id: str, /) -> None: ...


class Resumption:
    def __init__(self, store: Store, end_thread: EndThread) -> None:
        self._store = store
        self._end_thread = end_thread

    def at_once(self, tx: Tx, delivery: Delivery) -> bool:
        """Delivers in this transaction; False if that fails or takes more than one."""
        body = jsontext.load(delivery.body)
        return not _ends(body) and _resume(tx, delivery, body) is None

    async def __call__(self, delivery: Delivery) -> Failure | None:
        body = jsontext.load(delivery.body)
        try:
            if _ends(body):
                if await self._store.read(delivery.tenant, _is_withdrawn, delivery, body):
                    return WITHDRAWN
                await self._end_thread(delivery.tenant, body["thread_id"])
                return None
            return await self._store.write(delivery.tenant, _resume, delivery, body)
        except Unavailable:
            raise
        except AssentError as error:
            return Failure(error.message)


def _ends(body: dict[str, Any]) -> bool:
    """Whether the decision ends the thread. For a question other than a breakpoint, `Step.END` is a plain answer."""
    return body["value"] is None or (_is_breakpoint(body) and body["value"] == Step.END)


def _is_breakpoint(body: dict[str, Any]) -> bool:
    return str(body["interrupt_id"]).startswith(f"{BREAKPOINT}:")


def _resume(tx: Tx, delivery: Delivery, body: dict[str, Any]) -> Failure | None:
    thread = threads.lock(tx, body["thread_id"], values=False)
    if runs.get(tx, delivery.id) is not None:
        return None
    if thread is None:
        return Failure("the thread was deleted", final=True)
    if _is_withdrawn(tx, delivery, body):
        return WITHDRAWN
    interrupt_id, asked, said = body["interrupt_id"], decided.asked_by(tx, body["item_id"]), body.get("comments", [])
    before = run_before(tx, thread, body["run_id"])
    if before is None:
        return decided.fail(tx, delivery, asked, "the thread has no run to continue")
    if _is_breakpoint(body):
        start_continuation(tx, delivery.id, thread, before, asked, None, said)
        decided.note_contribution(tx, body["item_id"], thread.id, said)
        return None
    if holds.is_stopped(tx, thread.id):
        return Failure("the thread is stopped at a breakpoint, which is decided first")
    if all(question["id"] != interrupt_id for question in thread.pending):
        return decided.fail(tx, delivery, asked, "the thread no longer asks this question")
    start_continuation(tx, delivery.id, thread, before, asked, {"resume": {interrupt_id: body["value"]}}, said)
    recorded = answers.give(
        tx,
        thread_id=thread.id,
        run_id=delivery.id,
        interrupt_id=interrupt_id,
        actor=decided.decider(tx, body["item_id"]),
        value=body["value"],
    )
    if not recorded:
        raise AssertionError("the question of a decided item has another answer")
    decided.note_contribution(tx, body["item_id"], thread.id, said)
    return None


def _is_withdrawn(tx: Tx, delivery: Delivery, body: dict[str, Any]) -> bool:
    return decided.is_withdrawn(tx, delivery, body["item_id"], body["interrupt_id"])
