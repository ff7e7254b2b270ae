"""Grants as rows. Consuming one is a compare-and-set, fenced by the attempt that wants to make the call."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, bindparam, select, update

from assent.kernel import events
from assent.kernel.canonical import Json
from assent.kernel.ids import new_id
from assent.kernel.store.tables import TENANT, grants
from assent.kernel.store.transaction import Tx
from assent.review.model.grants import Call, Grant, GrantStatus, Passage, Passing, covers
from assent.review.model.items import Execution
from assent.review.model.lifecycle import Executed, step
from assent.review.rows import attempts, grant_scopes, items
from assent.review.rows.attempts import Maker

_TAKEN = (GrantStatus.STARTED, GrantStatus.DONE, GrantStatus.FAILED)
_ALL = select(grants).where(grants.c.tenant_id == TENANT)
_BY_ID = _ALL.where(grants.c.grant_id == bindparam("id")).with_for_update()
_OF_ITEM = _ALL.where(grants.c.item_id == bindparam("item")).order_by(grants.c.created_at, grants.c.grant_id)
_OF_CALL = (
    _ALL.where(grants.c.thread_id == bindparam("thread"), grants.c.call_id == bindparam("call"))
    .order_by(grants.c.created_at.desc(), grants.c.grant_id.desc())
    .with_for_update()
)
_BEGUN_IN_TASK = (
    select(grants.c.grant_id)
    .where(grants.c.tenant_id == TENANT, grants.c.status.in_(_TAKEN))
    .where(grants.c.thread_id == bindparam("thread"), grants.c.call_id == bindparam("call"))
    .where(grants.c.task == bindparam("in_task"))
)
_THIS = update(grants).where(grants.c.tenant_id == TENANT, grants.c.grant_id == bindparam("id"))
_START = _THIS.where(grants.c.status == bindparam("was")).values(
    status=GrantStatus.STARTED,
    task=bindparam("in_task"),
    run_id=bindparam("run"),
    attempt=bindparam("number"),
    taken_by=bindparam("by"),
    alive_until=bindparam("until"),
    started_at=bindparam("now"),
)
_END = _THIS.where(grants.c.status == GrantStatus.STARTED).values(
    status=bindparam("new_status"), result=bindparam("new_result"), ended_at=bindparam("now"), alive_until=None
)
_GIVE_BACK = _THIS.where(grants.c.status == GrantStatus.STARTED, grants.c.result.is_(None)).values(
    status=GrantStatus.GRANTED,
    task=None,
    run_id=None,
    attempt=None,
    taken_by=None,
    alive_until=None,
    started_at=None,
)
_ALIVE = _THIS.where(grants.c.status == GrantStatus.STARTED, grants.c.alive_until.is_not(None)).values(
    alive_until=bindparam("until")
)
_SILENT = (
    select(grants.c.tenant_id, grants.c.grant_id)
    .where(grants.c.alive_until <= bindparam("now"))
    .order_by(grants.c.alive_until)
    .limit(bindparam("limit"))
)
_NEXT_SILENT = (
    select(grants.c.alive_until).where(grants.c.alive_until.is_not(None)).order_by(grants.c.alive_until).limit(1)
)
_END_OF_LIFE = _THIS.where(grants.c.alive_until <= bindparam("now")).values(alive_until=None)
_STARTED = _ALL.where(grants.c.thread_id == bindparam("thread"), grants.c.status == "started")
_STARTED_OF_TOOL = _STARTED.where(grants.c.tool == bindparam("tool")).order_by(grants.c.created_at, grants.c.grant_id)
_OF_DOUBT = _ALL.where(grants.c.thread_id == bindparam("thread"), grants.c.doubt_id == bindparam("asked_in"))
_DOUBT = _THIS.values(doubt_id=bindparam("asked_in"))
_DROP_DOUBTS = (
    update(grants).where(grants.c.tenant_id == TENANT, grants.c.item_id == bindparam("item")).values(doubt_id=None)
)
_REVOKE = (
    update(grants)
    .where(grants.c.tenant_id == TENANT, grants.c.item_id == bindparam("item"))
    .where(grants.c.status == GrantStatus.GRANTED)
    .values(status=GrantStatus.REVOKED, ended_at=bindparam("now"))
)

_BEGUN = "an equal call was started before and may have run already: check that before you approve it"


def insert(tx: Tx, **columns: Any) -> str:
    grant_id = new_id()
    tx.insert(grants, grant_id=grant_id, status=GrantStatus.GRANTED, created_at=tx.now(), **columns)
    return grant_id


def of_item(tx: Tx, item_id: str) -> list[Grant]:
    return [_grant(row) for row in tx.all(_OF_ITEM, item=item_id)]


def consume(tx: Tx, call: Call, attempt: Maker) -> Passage:
    """Whether the call may run now. GO means that it is recorded as started: it runs now or, if this process dies,
    never again without a decision, unless its tool uses the grant's id as an idempotency key."""
    attempts.hold(tx, attempt)
    recorded = [_grant(row) for row in tx.all(_OF_CALL, thread=call.thread_id, call=call.call_id)]
    agreed = [grant for grant in recorded if _is_for(tx, grant, call)]
    if not agreed:
        return _ask(tx, call, _refusal(recorded))
    begun = next((grant for grant in agreed if grant.status is GrantStatus.STARTED and grant.task == call.task), None)
    unused = (grant for grant in agreed if grant.usable(tx.now()))
    ready = next((grant for grant in unused if grant_scopes.holds_in(tx, grant, attempt)), None)
    if ready is not None and begun is None:  # the outcome of the first attempt comes before a second one
        return _start(tx, ready, call, attempt)
    return _used(tx, begun or agreed[0], call, attempt)


def give_back(tx: Tx, grant: Grant, attempt: Maker) -> None:
    """The call was not made: its grant is as good as before."""
    attempts.hold(tx, attempt)
    if tx.change(_GIVE_BACK, id=grant.id):
        _tell(tx, grant, Execution.GRANTED, attempt)


def was_begun(tx: Tx, call: Call) -> bool:
    """Whether this task has started the call before, with these arguments or with a person's edits."""
    return tx.first(_BEGUN_IN_TASK, thread=call.thread_id, call=call.call_id, in_task=call.task) is not None


def recall(tx: Tx, call: Call, attempt: Maker, of_items: Collection[str] | None = None) -> Passage:
    """The state of a call that is now forbidden or declined: it never runs again, even if its tool is idempotent. With
    `of_items`, only the grants of these items count."""
    attempts.hold(tx, attempt)
    recorded = (_grant(row) for row in tx.all(_OF_CALL, thread=call.thread_id, call=call.call_id))
    taken = [
        grant
        for grant in recorded
        if grant.status in _TAKEN
        and grant.task == call.task
        and _is_for(tx, grant, call)
        and (of_items is None or grant.item_id in of_items)
    ]
    begun = next((grant for grant in taken if grant.status is GrantStatus.STARTED), None)
    if not taken:
        return Passage(Passing.ASK)
    return _used(tx, begun or taken[0], replace(call, idempotent=False), attempt)


def begun_like(tx: Tx, thread_id: str, tool: str, args: Json) -> list[Grant]:
    """The started calls without a result on this thread, with the same tool and arguments, under any call id."""
    started = [_grant(row) for row in tx.all(_STARTED_OF_TOOL, thread=thread_id, tool=tool)]
    return [grant for grant in started if grant.result is None and covers(grant, tx.tenant, _same(grant, tool, args))]


def _same(grant: Grant, tool: str, args: Json) -> Call:
    """A call with the grant's id, thread and origin."""
    return Call(grant.thread_id, grant.call_id, tool, args, "", origin=grant.origin)


def doubted_like(tx: Tx, thread_id: str, tool: str, args: Json) -> list[Grant]:
    """Those of `begun_like` whose item is in doubt."""
    candidates = ((grant, items.get(tx, grant.item_id)) for grant in begun_like(tx, thread_id, tool, args))
    return [grant for grant, item in candidates if item is not None and item.execution is Execution.IN_DOUBT]


def finish(tx: Tx, grant_id: str, result: Json, attempt: Maker, *, failed: bool = False) -> None:
    """Records the result or error of the call, for an attempt that repeats it after a crash."""
    attempts.hold(tx, attempt)
    row = tx.first(_BY_ID, id=grant_id)
    status = GrantStatus.FAILED if failed else GrantStatus.DONE
    if row is not None and tx.change(_END, id=grant_id, new_status=status, new_result=result, now=tx.now()):
        _tell(tx, _grant(row), Execution.FAILED if failed else Execution.DONE, attempt)


def in_doubt(tx: Tx, item_id: str) -> list[Grant]:
    """Those of the item whose call was started and has no result."""
    return [grant for grant in of_item(tx, item_id) if grant.status is GrantStatus.STARTED]


def left_started(tx: Tx, thread_id: str, *, but_not_in: Collection[str] = ()) -> list[Grant]:
    """Calls of the thread that other tasks started and that have no result. A call that waits for an answer of its own
    has a result that marks it."""
    started = [_grant(row) for row in tx.all(_STARTED, thread=thread_id)]
    return [grant for grant in started if grant.result is None and grant.task not in but_not_in]


def keep_alive(tx: Tx, grant_id: str, until: datetime) -> None:
    """A heartbeat of the attempt that makes the call. One that comes too late changes nothing."""
    tx.change(_ALIVE, id=grant_id, until=until)


def silent(tx: Tx, limit: int) -> tuple[list[tuple[str, str]], datetime | None]:
    """Tenant and id of the grants whose attempts elsewhere send no heartbeats any more, and when the next one may be
    among them. Needs a transaction across tenants."""
    rows = tx.all(_SILENT, now=tx.now(), limit=limit)
    following = tx.first(_NEXT_SILENT)
    return [(row.tenant_id, row.grant_id) for row in rows], following and following[0]


def give_up(tx: Tx, grant_id: str) -> Grant | None:
    """The grant, if its attempt is still silent: it is dead from now on."""
    return get(tx, grant_id) if tx.change(_END_OF_LIFE, id=grant_id, now=tx.now()) else None


def doubt(tx: Tx, grant_id: str, interrupt_id: str) -> None:
    """The gate asks about the outcome of the call in this interrupt."""
    tx.change(_DOUBT, id=grant_id, asked_in=interrupt_id)


def is_doubt(tx: Tx, thread_id: str, interrupt_id: str) -> bool:
    return tx.first(_OF_DOUBT, thread=thread_id, asked_in=interrupt_id) is not None


def get(tx: Tx, grant_id: str) -> Grant | None:
    row = tx.first(_BY_ID, id=grant_id)
    return None if row is None else _grant(row)


def drop_doubts(tx: Tx, item_id: str) -> None:
    """No question waits for the outcome of this item's calls any longer."""
    tx.change(_DROP_DOUBTS, item=item_id)


def settle_doubt(tx: Tx, grant: Grant, result: Json) -> None:
    """Records the outcome that a person gave; None: another grant replaces this one."""
    status = GrantStatus.REVOKED if result is None else GrantStatus.DONE
    tx.change(_END, id=grant.id, new_status=status, new_result=result, now=tx.now())


def renew(tx: Tx, grant: Grant, lifetime: timedelta) -> str:
    """Issues another grant for exactly the same call."""
    same = ("item_id", "revision", "decision_id", "thread_id", "call_id", "tool", "hash", "origin")
    begins = tx.now()
    return insert(tx, **{name: getattr(grant, name) for name in same}, not_before=begins, expires_at=begins + lifetime)


def set_execution(tx: Tx, item_id: str, executed: Executed) -> None:
    """Updates the progress of the call on its item."""
    item = items.lock(tx, item_id)
    if item is not None:
        items.save(tx, item, step(item, executed, tx.now()).item)


def revoke_of_item(tx: Tx, item_id: str) -> int:
    """Revokes the unused grants."""
    return tx.change(_REVOKE, item=item_id, now=tx.now())


def _start(tx: Tx, grant: Grant, call: Call, attempt: Maker) -> Passage:
    begun = attempts.begun_by(attempt, tx.now())
    if not tx.change(_START, id=grant.id, was=grant.status, in_task=call.task, now=tx.now(), **begun):
        return _ask(tx, call, "the approval has just been used")
    _tell(tx, grant, Execution.STARTED, attempt)
    return Passage(Passing.GO, grant)


def _used(tx: Tx, grant: Grant, call: Call, attempt: Maker) -> Passage:
    if grant.task != call.task or grant.status in (GrantStatus.GRANTED, GrantStatus.REVOKED):
        return _ask(tx, call, _why_not(grant, tx.now()))
    if grant.status is not GrantStatus.STARTED:
        return Passage(Passing.REPEAT, grant)
    if attempts.is_alive(grant, tx.now()):
        return Passage(Passing.GO if attempts.is_own(attempt, grant) else Passing.BUSY, grant)
    if call.idempotent and grant_scopes.holds_in(tx, grant, attempt):
        return _start(tx, grant, call, attempt)
    _note(tx, grant, Execution.IN_DOUBT, attempt)  # the item changes once the question is raised
    return Passage(Passing.IN_DOUBT, grant)


def _ask(tx: Tx, call: Call, reason: str) -> Passage:
    if begun_like(tx, call.thread_id, call.tool, call.args):
        return Passage(Passing.ASK, reason=_BEGUN, doubtful=True)
    return Passage(Passing.ASK, reason=reason)


def _is_for(tx: Tx, grant: Grant, call: Call) -> bool:
    return covers(grant, tx.tenant, call) and grant_scopes.answers(tx, grant, call)


def _why_not(grant: Grant, now: datetime) -> str:
    if grant.usable(now):
        return "the approval is for a run of another graph, caller or configuration"
    if grant.status is GrantStatus.GRANTED:
        return "the approval has expired" if grant.expires_at <= now else "the approval can still be undone"
    return "the approval was undone" if grant.status is GrantStatus.REVOKED else "the approval was already used"


def _refusal(known: Sequence[Grant]) -> str:
    return "the approved call differs from this one" if known else "nobody has approved this call"


def _tell(tx: Tx, grant: Grant, execution: Execution, attempt: Maker) -> None:
    """Updates the item and the timeline. A call that reports after all is no longer in doubt."""
    others = any(doubtful.id != grant.id for doubtful in in_doubt(tx, grant.item_id))
    set_execution(tx, grant.item_id, Executed(execution=execution, others=others))
    _note(tx, grant, execution, attempt)


def _note(tx: Tx, grant: Grant, execution: Execution, attempt: Maker) -> None:
    details = {
        "grant": grant.id,
        "tool": grant.tool,
        "call": grant.call_id,
        "attempt": attempts.number_of(attempt),
    }
    events.append(tx, attempts.actor_of(attempt), f"grant.{execution}", f"item:{grant.item_id}", details)


def _grant(row: Row[Any]) -> Grant:
    return Grant(
        id=row.grant_id,
        status=GrantStatus(row.status),
        **{name: getattr(row, name) for name in Grant.__slots__ if name not in ("id", "status")},
    )
