"""Grants as rows. Consuming one is a compare-and-set, fenced by the attempt that wants to make the call."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, bindparam, select, update

from assent.domain.canonical import Json
from assent.domain.grants import Call, Grant, GrantStatus, Passage, Passing, covers
from assent.domain.ids import new_id
from assent.domain.items import Execution
from assent.store import checkpoints, events, items
from assent.store.checkpoints import Attempt
from assent.store.tables import TENANT, grants
from assent.store.transaction import Tx

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
    started_at=bindparam("now"),
)
_END = _THIS.where(grants.c.status == GrantStatus.STARTED).values(
    status=bindparam("new_status"), result=bindparam("new_result"), ended_at=bindparam("now")
)
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

_BEGUN = "a call just like this one was begun before and may have been made already: look before you approve it"


def insert(tx: Tx, **columns: Any) -> str:
    grant_id = new_id()
    tx.insert(grants, grant_id=grant_id, status=GrantStatus.GRANTED, created_at=tx.now(), **columns)
    return grant_id


def of_item(tx: Tx, item_id: str) -> list[Grant]:
    return [_grant(row) for row in tx.all(_OF_ITEM, item=item_id)]


def consume(tx: Tx, call: Call, attempt: Attempt | None) -> Passage:
    """Whether the call may be made now. GO means that it has been written down as started: it is made now or, should
    this process die, never by itself again, unless the tool knows a second call by the grant's id."""
    if attempt is not None:
        checkpoints.hold(tx, attempt)
    known = [_grant(row) for row in tx.all(_OF_CALL, thread=call.thread_id, call=call.call_id)]
    agreed = [grant for grant in known if covers(grant, tx.tenant, call)]
    if not agreed:
        return _ask(tx, call, _refusal(known))
    begun = next((one for one in agreed if one.status is GrantStatus.STARTED and one.task == call.task), None)
    ready = next((one for one in agreed if one.usable(tx.now())), None)
    if ready is not None and begun is None:  # what became of the first try comes before a second one
        return _start(tx, ready, call, attempt)
    return _used(tx, begun or agreed[0], call, attempt)


def was_begun(tx: Tx, call: Call) -> bool:
    """Whether this task has begun the call before, with these arguments or as a person has changed them."""
    return tx.first(_BEGUN_IN_TASK, thread=call.thread_id, call=call.call_id, in_task=call.task) is not None


def recall(tx: Tx, call: Call, attempt: Attempt | None) -> Passage:
    """What became of a call that must not be made any more: it never goes, not even where its tool knows the key."""
    if attempt is not None:
        checkpoints.hold(tx, attempt)
    known = (_grant(row) for row in tx.all(_OF_CALL, thread=call.thread_id, call=call.call_id))
    taken = [one for one in known if one.status in _TAKEN and one.task == call.task and covers(one, tx.tenant, call)]
    begun = next((one for one in taken if one.status is GrantStatus.STARTED), None)
    if not taken:
        return Passage(Passing.ASK)
    return _used(tx, begun or taken[0], replace(call, idempotent=False), attempt)


def begun_like(tx: Tx, thread_id: str, tool: str, args: Json) -> list[Grant]:
    """Of calls on this thread with the same tool and the same arguments, whatever the agent's ids for them are: those
    that were begun and not heard of since."""
    started = [_grant(row) for row in tx.all(_STARTED_OF_TOOL, thread=thread_id, tool=tool)]
    return [
        one
        for one in started
        if one.result is None and covers(one, tx.tenant, Call(thread_id, one.call_id, tool, args, ""))
    ]


def doubted_like(tx: Tx, thread_id: str, tool: str, args: Json) -> list[Grant]:
    """Those of `begun_like` that nobody is making any more."""
    found = ((one, items.get(tx, one.item_id)) for one in begun_like(tx, thread_id, tool, args))
    return [one for one, item in found if item is not None and item.execution is Execution.IN_DOUBT]


def finish(tx: Tx, grant_id: str, result: Json, attempt: Attempt | None, *, failed: bool = False) -> None:
    """The call has returned, or raised: what came of it, for the attempt that asks again after a crash."""
    if attempt is not None:
        checkpoints.hold(tx, attempt)
    row = tx.first(_BY_ID, id=grant_id)
    status = GrantStatus.FAILED if failed else GrantStatus.DONE
    if row is not None and tx.change(_END, id=grant_id, new_status=status, new_result=result, now=tx.now()):
        _tell(tx, _grant(row), Execution.FAILED if failed else Execution.DONE, attempt)


def in_doubt(tx: Tx, item_id: str) -> list[Grant]:
    """Those of the item whose call was started and never heard of again."""
    return [grant for grant in of_item(tx, item_id) if grant.status is GrantStatus.STARTED]


def left_started(tx: Tx, thread_id: str, *, but_not_in: Collection[str] = ()) -> list[Grant]:
    """Calls of the thread that were begun, by other tasks than these, and that nobody has heard of since. One that only
    waits for an answer of its own says so in its result."""
    found = [_grant(row) for row in tx.all(_STARTED, thread=thread_id)]
    return [grant for grant in found if grant.result is None and grant.task not in but_not_in]


def doubt(tx: Tx, grant_id: str, interrupt_id: str) -> None:
    """The gate asks in this interrupt how the call has ended."""
    tx.change(_DOUBT, id=grant_id, asked_in=interrupt_id)


def is_doubt(tx: Tx, thread_id: str, interrupt_id: str) -> bool:
    return tx.first(_OF_DOUBT, thread=thread_id, asked_in=interrupt_id) is not None


def get(tx: Tx, grant_id: str) -> Grant | None:
    row = tx.first(_BY_ID, id=grant_id)
    return None if row is None else _grant(row)


def drop_doubts(tx: Tx, item_id: str) -> None:
    """Nobody waits any more to hear how calls of this item have ended."""
    tx.change(_DROP_DOUBTS, item=item_id)


def settle_doubt(tx: Tx, grant: Grant, result: Json) -> None:
    """A person has said what came of it; None: nothing that counts, another grant takes its place."""
    status = GrantStatus.REVOKED if result is None else GrantStatus.DONE
    tx.change(_END, id=grant.id, new_status=status, new_result=result, now=tx.now())


def renew(tx: Tx, grant: Grant, lifetime: timedelta) -> str:
    """Another one for exactly the same call."""
    same = ("item_id", "revision", "decision_id", "thread_id", "call_id", "tool", "hash")
    begins = tx.now()
    return insert(tx, **{name: getattr(grant, name) for name in same}, not_before=begins, expires_at=begins + lifetime)


def revoke_of_item(tx: Tx, item_id: str) -> int:
    """What was granted and not used is not granted any more."""
    return tx.change(_REVOKE, item=item_id, now=tx.now())


def _start(tx: Tx, grant: Grant, call: Call, attempt: Attempt | None) -> Passage:
    run, number = (attempt.run_id, attempt.number) if attempt else (None, None)
    if not tx.change(_START, id=grant.id, was=grant.status, in_task=call.task, run=run, number=number, now=tx.now()):
        return _ask(tx, call, "the approval was used meanwhile")
    _tell(tx, grant, Execution.STARTED, attempt)
    return Passage(Passing.GO, grant)


def _used(tx: Tx, grant: Grant, call: Call, attempt: Attempt | None) -> Passage:
    if grant.task != call.task or grant.status in (GrantStatus.GRANTED, GrantStatus.REVOKED):
        return _ask(tx, call, _why_not(grant, tx.now()))
    if grant.status is not GrantStatus.STARTED:
        return Passage(Passing.REPEAT, grant)
    if call.idempotent:
        return _start(tx, grant, call, attempt)
    _note(tx, grant, Execution.IN_DOUBT, attempt)  # its item shows so once the question is there that can be answered
    return Passage(Passing.IN_DOUBT, grant)


def _ask(tx: Tx, call: Call, reason: str) -> Passage:
    if begun_like(tx, call.thread_id, call.tool, call.args):
        return Passage(Passing.ASK, reason=_BEGUN, doubtful=True)
    return Passage(Passing.ASK, reason=reason)


def _why_not(grant: Grant, now: datetime) -> str:
    if grant.status is GrantStatus.GRANTED:
        return "the approval has lapsed" if grant.expires_at <= now else "the approval can still be taken back"
    return "the approval was taken back" if grant.status is GrantStatus.REVOKED else "the approval was used already"


def _refusal(known: Sequence[Grant]) -> str:
    return "what was approved differs from this call" if known else "nobody has approved this call"


def _tell(tx: Tx, grant: Grant, execution: Execution, attempt: Attempt | None) -> None:
    """The item shows it, and the timeline. What was thought to be cut off and is heard of is in doubt no more."""
    others = any(one.id != grant.id for one in in_doubt(tx, grant.item_id))
    items.set_execution(tx, grant.item_id, execution, heard_of=not others)
    _note(tx, grant, execution, attempt)


def _note(tx: Tx, grant: Grant, execution: Execution, attempt: Attempt | None) -> None:
    actor = f"run:{attempt.run_id}" if attempt else "gate"
    told = {
        "grant": grant.id,
        "tool": grant.tool,
        "call": grant.call_id,
        "attempt": attempt.number if attempt else None,
    }
    events.append(tx, actor, f"grant.{execution}", f"item:{grant.item_id}", told)


def _grant(row: Row[Any]) -> Grant:
    return Grant(
        id=row.grant_id,
        status=GrantStatus(row.status),
        **{name: getattr(row, name) for name in Grant.__slots__ if name not in ("id", "status")},
    )
