"""Carries a decision from the outbox to the run that waits for it: once, however often it is tried.

The run that goes on has the delivery's own id, so a second try finds it there. A thread that has moved on meanwhile
does not hear what it no longer asks.
"""

from __future__ import annotations

from typing import Any, Protocol

from assent.dialects.breakpoint import NAME as BREAKPOINT
from assent.dialects.breakpoint import Step
from assent.domain.deliveries import Delivery, Failure
from assent.domain.runs import Run
from assent.domain.threads import Thread
from assent.errors import AssentError, Unavailable
from assent.ports import Store
from assent.services.starting import go_on
from assent.store import answers, decisions, items, jsontext, runs, threads
from assent.store.transaction import Tx


class EndThread(Protocol):
    """Ends a tenant's thread where it stands, in the name of whoever decided so."""

    async def __call__(self, tenant: str, thread_id: str, /) -> None: ...


class Resumption:
    def __init__(self, store: Store, end_thread: EndThread) -> None:
        self._store = store
        self._end_thread = end_thread

    async def __call__(self, delivery: Delivery) -> Failure | None:
        told = jsontext.load(delivery.body)
        try:
            if told["value"] in (None, Step.END):
                await self._end_thread(delivery.tenant, told["thread_id"])
                return None
            return await self._store.write(delivery.tenant, _resume, delivery, told)
        except Unavailable:
            raise
        except AssentError as error:
            return Failure(error.message)


def _resume(tx: Tx, delivery: Delivery, told: dict[str, Any]) -> Failure | None:
    thread = threads.lock(tx, told["thread_id"], values=False)
    if runs.get(tx, delivery.id) is not None:
        return None
    if thread is None:
        return Failure("the thread is gone", final=True)
    before = _before(tx, thread, told)
    if before is None:
        return Failure("no run of the thread is left to go on from", final=True)
    interrupt_id = told["interrupt_id"]
    if interrupt_id.startswith(f"{BREAKPOINT}:"):
        go_on(tx, delivery.id, thread, before, command=None, gated=told["gated"])
        return None
    if all(question["id"] != interrupt_id for question in thread.pending):
        return Failure("the thread does not ask this any more", final=True)
    go_on(tx, delivery.id, thread, before, command={"resume": {interrupt_id: told["value"]}}, gated=told["gated"])
    taken = answers.give(
        tx,
        thread_id=thread.id,
        run_id=delivery.id,
        interrupt_id=interrupt_id,
        actor=_decider(tx, told["item_id"]),
        value=told["value"],
    )
    if not taken:
        raise AssertionError("an item was decided whose question has another answer")
    return None


def _before(tx: Tx, thread: Thread, told: dict[str, Any]) -> Run | None:
    """The run that asked; where it was deleted, the last one there is."""
    asked = runs.get(tx, told["run_id"]) if told["run_id"] else None
    return asked or next(iter(runs.page(tx, thread.id, status=None, limit=1, offset=0)), None)


def _decider(tx: Tx, item_id: str) -> str:
    decision, item = decisions.closing(tx, item_id), items.get(tx, item_id)
    return decision.actor if decision else item.requester if item else "system"
