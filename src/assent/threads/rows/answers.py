"""Answers to questions, one standing per interrupt: the first row wins."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, bindparam, select, update

from assent.kernel.store.prepared import Prepared
from assent.kernel.store.tables import TENANT, answers
from assent.kernel.store.transaction import Tx

_OF_QUESTION = (
    select(answers)
    .where(
        answers.c.tenant_id == TENANT,
        answers.c.thread_id == bindparam("thread_id"),
        answers.c.interrupt_id == bindparam("interrupt_id"),
        answers.c.standing,
    )
    .limit(1)
)
_LATEST = (
    select(answers)
    .where(answers.c.tenant_id == TENANT, answers.c.thread_id == bindparam("thread_id"), answers.c.standing)
    .order_by(answers.c.created_at.desc())
    .limit(1)
)
_OF_RUN = Prepared(
    select(answers.c.interrupt_id).where(answers.c.tenant_id == TENANT, answers.c.run_id == bindparam("run"))
)
_WITHDRAW = (
    update(answers)
    .where(
        answers.c.tenant_id == TENANT,
        answers.c.run_id == bindparam("run"),
        answers.c.interrupt_id == bindparam("question"),
    )
    .values(standing=False)
)


@dataclass(frozen=True, slots=True)
class Given:
    """A standing answer, as shown to the author of a later one."""

    interrupt_id: str
    run_id: str
    actor: str
    value: Any
    at: datetime


def give(tx: Tx, *, thread_id: str, run_id: str, interrupt_id: str, actor: str, value: Any) -> bool:
    """False where the question has a standing answer already."""
    return tx.insert_new(
        answers,
        run_id=run_id,
        interrupt_id=interrupt_id,
        thread_id=thread_id,
        actor=actor,
        value=value,
        standing=True,
        created_at=tx.now(),
    )


def standing(tx: Tx, thread_id: str, interrupt_id: str) -> Given | None:
    return _given(tx.first(_OF_QUESTION, thread_id=thread_id, interrupt_id=interrupt_id))


def latest(tx: Tx, thread_id: str) -> Given | None:
    return _given(tx.first(_LATEST, thread_id=thread_id))


def of_run(tx: Tx, run_id: str) -> list[str]:
    """The questions that the run has answers for."""
    return [row.interrupt_id for row in tx.all(_OF_RUN, run=run_id)]


def settle(tx: Tx, run_id: str, still_open: Collection[str]) -> None:
    """Withdraws the answers of a run that ended with their questions still open, so that they can be answered again."""
    for interrupt_id in of_run(tx, run_id):
        if interrupt_id in still_open:
            tx.change(_WITHDRAW, run=run_id, question=interrupt_id)


def settle_ended(tx: Tx, thread_id: str, still_open: Collection[str], active: Collection[str]) -> None:
    """As `settle`, for all answers to open questions whose run has ended: the graph may have refused the answer in one
    run, and repeated the question in a later one."""
    for interrupt_id in still_open:
        answer = standing(tx, thread_id, interrupt_id)
        if answer is not None and answer.run_id not in active:
            tx.change(_WITHDRAW, run=answer.run_id, question=interrupt_id)


def _given(row: Row[Any] | None) -> Given | None:
    return None if row is None else Given(row.interrupt_id, row.run_id, row.actor, row.value, row.created_at)
