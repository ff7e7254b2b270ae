"""The server's side of gates elsewhere: performs the steps of an agent's process on the records here.

An agent reaches its own records only: its id is part of the origin of every question and grant, as are the names of
the deployment and the thread, and the hash of a grant covers the origin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from assent.errors import Conflict, Forbidden, Invalid, NotFound, TooLarge
from assent.gate.elsewhere.wire import CallSent, naming
from assent.gate.records import Answered, Look, Pending
from assent.gate.stored import Book, StoredRecords
from assent.identity.model.access import Principal, Scope
from assent.kernel import canonical, fair_threads
from assent.kernel.canonical import Json
from assent.kernel.ids import new_id
from assent.kernel.quotas import quotas
from assent.kernel.store import idempotency
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.review import thread_items
from assent.review.model.grants import Call, Grant, GrantStatus, Passage, marks_of
from assent.review.rows import gate, grants, items
from assent.review.rows.attempts import AttemptElsewhere, Maker
from assent.review.rows.gate import Pause
from assent.review.threads import decided

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of a call, reported by the attempt that makes it. A doubt is reported by another attempt."""

    kind: str
    attempt: str | None = None
    result: Json = None
    asked: Sequence[Json] = ()
    note: Json = None
    interrupt_id: str | None = None


class GateDesk:
    def __init__(self, store: Store, *, patience: timedelta) -> None:
        """`patience`: how long an attempt is alive without heartbeats."""
        self._store = store
        self.patience = patience

    async def look(self, caller: Principal, sent: CallSent, positions: Sequence[str]) -> Look:
        return await self._write(caller, lambda tx: _records(tx, caller).look(_call(tx, caller, sent), positions))

    async def take(self, caller: Principal, sent: CallSent, attempt: str, answered: Answered) -> Passage:
        maker = AttemptElsewhere(attempt, caller.actor, self.patience)
        return await self._write(
            caller, lambda tx: _records(tx, caller, maker).consume(_call(tx, caller, sent), answered)
        )

    async def recall(self, caller: Principal, sent: CallSent, attempt: str, of_items: list[str] | None) -> Passage:
        maker = AttemptElsewhere(attempt, caller.actor, self.patience)
        return await self._write(
            caller, lambda tx: _records(tx, caller, maker).recall(_call(tx, caller, sent), of_items)
        )

    async def ask(self, caller: Principal, deployment: str, pending: Pending) -> tuple[dict[str, Json], Json]:
        """The value and the schema of the interrupt to raise: they name the item."""
        if marks_of(pending.value, pending.response_schema) is None:
            raise Invalid("value: not a question of the gate")
        if flaw := await fair_threads.beside(thread_items.flaw, self._store.limits, [pending.question]):
            raise TooLarge(f"the question has {flaw}")
        return await self._write(caller, lambda tx: _asked(tx, caller, deployment, pending))

    async def report(self, caller: Principal, grant_id: str, report: Report) -> None:
        return await self._write(caller, lambda tx: self._reported(tx, caller, grant_id, report))

    def _reported(self, tx: Tx, caller: Principal, grant_id: str, report: Report) -> None:
        grant = _own(tx, caller, grant_id)
        records = _records(tx, caller)
        if report.kind == "doubted":
            return records.announce_doubt(grant.id, str(report.interrupt_id))
        _require_current(grant, report)
        if report.kind == "alive":
            grants.keep_alive(tx, grant.id, tx.now() + self.patience)
        elif report.kind == "paused":
            records.pause(grant.id, Pause(report.asked, report.note))
        elif report.kind == "returned":
            grants.give_back(tx, grant, None)
        else:
            records.finish(grant.id, report.result, failed=report.kind == "failed")

    async def _write(self, caller: Principal, function: Callable[[Tx], T]) -> T:
        caller.require(Scope.ITEMS_CREATE)
        if caller.is_person:
            raise Forbidden(
                "a gate needs the key of an agent: with a person's key it could approve its own calls",
                hint="assent keys create --kind agent",
            )
        return await self._store.write(caller.tenant, function)


class _FetchedBook(Book):
    """The answers to gates elsewhere wait in the outbox until they are fetched: then they reach their agent."""

    def answer(self, tx: Tx, call: Call, interrupt_id: str) -> Json:
        message = gate.fetched_answer(tx, call, interrupt_id)
        if message is None:
            return None
        decided.note_contribution(tx, message["item_id"], message["thread_id"], message.get("comments", ()))
        return message["value"]


def _records(tx: Tx, caller: Principal, maker: Maker = None) -> StoredRecords:
    return StoredRecords(tx, _FetchedBook(), maker or AttemptElsewhere("", caller.actor, timedelta()))


def _origin(caller: Principal, deployment: str, thread_id: str) -> str:
    return canonical.text({"agent": caller.actor, "deployment": deployment, "thread": thread_id})


def _thread_of(tx: Tx, origin: str) -> str:
    """The id here of the thread: that of its first question, else a new one. Nobody can choose it for a thread of their
    own before it is stored. The agent only claims to be on that thread: a deployment's thread of this name, and the
    threads of other agents under it, keep their own questions and secrets."""
    return items.thread_of_origin(tx, origin) or new_id()


def _call(tx: Tx, caller: Principal, sent: CallSent) -> Call:
    origin = _origin(caller, sent.deployment, sent.thread_id)
    thread = _thread_of(tx, origin)
    named = (thread, sent.call_id, sent.tool, sent.args, sent.task, sent.idempotent, sent.graph)
    return Call(*named, origin=origin, unedited=sent.unedited)


def _asked(tx: Tx, caller: Principal, deployment: str, raised: Pending) -> tuple[dict[str, Json], Json]:
    origin = _origin(caller, deployment, raised.thread_id)
    idempotency.hold(tx, caller.actor, origin)  # two first questions are on one thread
    thread = _thread_of(tx, origin)
    value, schema = dict(raised.value), raised.response_schema
    if (decided := _decided_meanwhile(tx, thread, origin, raised.interrupt_id)) is not None:
        return naming(decided, value, schema)
    quotas.require_storage(tx)
    quotas.require_item(tx)
    waiting = thread_items.Waiting(
        thread,
        [raised.question],
        about=frozenset((raised.interrupt_id, *raised.before)),
        graph_id=raised.graph or None,
        asker=caller.actor,
        gated=True,
        origin=origin,
    )
    thread_items.follow(tx, waiting)
    item = items.latest_of_interrupt(tx, thread, raised.interrupt_id, origin)
    return (value, schema) if item is None else naming(item.id, value, schema)


def _decided_meanwhile(tx: Tx, thread: str, origin: str, interrupt_id: str) -> str | None:
    """The item of this question, if people have answered it since the gate looked: it is not asked again."""
    item = items.latest_of_interrupt(tx, thread, interrupt_id, origin)
    if item is None or item.status.open:
        return None
    return item.id if gate.has_answer(tx, item.id, interrupt_id) else None


def _own(tx: Tx, caller: Principal, grant_id: str) -> Grant:
    grant = grants.get(tx, grant_id)
    item = items.get(tx, grant.item_id) if grant else None
    if grant is None or grant.origin is None or item is None or item.requester != caller.actor:
        raise NotFound(f"grant {grant_id!r} not found")
    return grant


def _require_current(grant: Grant, report: Report) -> None:
    """Refuses the report of an attempt that another one or a person has replaced. A repeated report changes nothing."""
    if report.attempt is None or grant.taken_by != report.attempt:
        raise Conflict("another attempt has started this call, or none has")
    if grant.status not in (GrantStatus.STARTED, GrantStatus.DONE, GrantStatus.FAILED):
        raise Conflict(f"the grant of this call is {grant.status}")
