"""What the gate reads and writes beside the grants themselves: which questions were its own and whether anybody decided
them, which calls stopped to ask something themselves, and what the policy in force says about a call."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, bindparam, or_, select, update

from assent.dialects import tool_approval
from assent.domain import canonical
from assent.domain.canonical import Json
from assent.domain.deliveries import RESUME, DeliveryStatus
from assent.domain.grants import GATE, Call, GrantStatus, Passage, Passing, covers
from assent.domain.items import Execution, Item, ItemStatus
from assent.domain.policies import Call as PolicyCall
from assent.domain.policies import Effect, Rule, judge
from assent.domain.questions import Resolution, Verb
from assent.store import checkpoints, events, grants, jsontext, policies, runs
from assent.store import items as item_rows
from assent.store.agents import agent_of
from assent.store.checkpoints import Attempt
from assent.store.tables import TENANT, deliveries, item_revisions, items
from assent.store.tables import grants as grant_table
from assent.store.transaction import Tx

PAUSED = {"paused": True}
"""Stands as the result of a call that was started and now waits for an answer of its own."""

_OF_INTERRUPTS = (
    select(
        items.c.item_id,
        items.c.interrupt_id,
        items.c.doubt_id,
        items.c.status,
        items.c.resolution,
        item_revisions.c.asked,
        item_revisions.c.calls,
    )
    .join(
        item_revisions,
        (item_revisions.c.tenant_id == items.c.tenant_id)
        & (item_revisions.c.item_id == items.c.item_id)
        & (item_revisions.c.number == items.c.revision),
    )
    .where(items.c.tenant_id == TENANT, items.c.thread_id == bindparam("thread"))
    .where(
        or_(
            items.c.interrupt_id.in_(bindparam("ids", expanding=True)),
            items.c.doubt_id.in_(bindparam("ids", expanding=True)),
        )
    )
    .order_by(items.c.created_at, items.c.item_id)
)
_STARTED = (
    select(grant_table.c.grant_id, grant_table.c.item_id)
    .where(grant_table.c.tenant_id == TENANT, grant_table.c.status == GrantStatus.STARTED)
    .where(grant_table.c.thread_id == bindparam("thread"), grant_table.c.call_id == bindparam("call"))
    .where(grant_table.c.task == bindparam("in_task"))
)
_UNDELIVERED = (
    select(deliveries.c.delivery_id, deliveries.c.body)
    .where(deliveries.c.tenant_id == TENANT, deliveries.c.kind == RESUME)
    .where(deliveries.c.target == bindparam("thread"), deliveries.c.status == DeliveryStatus.PENDING)
    .where(deliveries.c.due_at <= bindparam("now"))
    .order_by(deliveries.c.created_at, deliveries.c.delivery_id)
)
_DELIVERED = (
    update(deliveries)
    .where(deliveries.c.tenant_id == TENANT, deliveries.c.delivery_id == bindparam("id"))
    .values(status=DeliveryStatus.DELIVERED, delivered_at=bindparam("now"), due_at=None, body="")
)
_ITEMS = (
    select(items)
    .where(items.c.tenant_id == TENANT, items.c.dialect == tool_approval.NAME)
    .order_by(items.c.created_at, items.c.item_id)
)
_IN_STATUS = _ITEMS.where(items.c.status == bindparam("wanted"))
_THIS = update(grant_table).where(
    grant_table.c.tenant_id == TENANT,
    grant_table.c.grant_id == bindparam("id"),
    grant_table.c.status == GrantStatus.STARTED,
)
_PAUSE = _THIS.values(result=bindparam("new_result"))
_GO_ON = _THIS.values(result=bindparam("new_result"), run_id=bindparam("run"), attempt=bindparam("number"))


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of the gate. `decided`: somebody, or time, has ended it; until then no answer to it counts."""

    call_id: str
    doubt: bool
    decided: bool


@dataclass(frozen=True, slots=True)
class Judged:
    """What the policy says. `named`: by a rule that speaks of the call, not by what holds for everything else. `sound`:
    nothing went wrong on the way to it."""

    effect: Effect
    rule: str
    named: bool
    sound: bool
    alone: bool
    """Whether anybody's yes is enough, without a second person or one whom the rule names."""


def asked(tx: Tx, thread_id: str, call_id: str, interrupt_ids: Collection[str]) -> dict[str, Asked]:
    """Which of these interrupts are questions of the gate, and about which call."""
    found: dict[str, Asked] = {}
    for row in tx.all(_OF_INTERRUPTS, thread=thread_id, ids=list(interrupt_ids)):
        if row.doubt_id in interrupt_ids:
            found[row.doubt_id] = Asked(call_id, doubt=True, decided=False)
        if row.interrupt_id in interrupt_ids and isinstance(row.asked, dict) and row.asked.get("gate") == GATE:
            # a request for a revision that has arrived is an answer as well: no, with the notes
            decided = row.status != ItemStatus.PENDING and row.resolution != Resolution.SUPERSEDED
            found[row.interrupt_id] = Asked(str(row.asked.get("tool_call_id")), doubt=False, decided=decided)
    return found


def consume(tx: Tx, call: Call, attempt: Attempt | None) -> Passage:
    """As `grants.consume`; a call that stopped by itself to ask something goes on."""
    return _gone_on(tx, call, attempt) or grants.consume(tx, call, attempt)


def pause(tx: Tx, grant_id: str, attempt: Attempt | None) -> None:
    """The call has stopped by itself to ask something: nothing is in doubt, its task will make it again."""
    if attempt is not None:
        checkpoints.hold(tx, attempt)
    tx.change(_PAUSE, id=grant_id, new_result=PAUSED)


def _gone_on(tx: Tx, call: Call, attempt: Attempt | None) -> Passage | None:
    started = tx.first(_STARTED, thread=call.thread_id, call=call.call_id, in_task=call.task)
    known = grants.in_doubt(tx, started.item_id) if started else []
    grant = next((one for one in known if started and one.id == started.grant_id), None)
    if grant is None or grant.result != PAUSED or not covers(grant, tx.tenant, call):
        return None
    if attempt is not None:
        checkpoints.hold(tx, attempt)
    run, number = (attempt.run_id, attempt.number) if attempt else (None, None)
    tx.change(_GO_ON, id=grant.id, new_result=None, run=run, number=number)
    item_rows.set_execution(tx, grant.item_id, Execution.STARTED)
    told = {"grant": grant.id, "tool": grant.tool, "call": grant.call_id, "attempt": number, "again": True}
    events.append(tx, f"run:{run}" if run else "gate", f"grant.{Execution.STARTED}", f"item:{grant.item_id}", told)
    return Passage(Passing.GO, grant)


def judged(tx: Tx, tool: str, args: Json, graph: str, attempt: Attempt | None) -> Judged:
    """A policy that cannot be applied asks."""
    policy = policies.in_force(tx).parsed()
    call = _call(tx, tool, args, graph, attempt)
    judgement = judge(policy, call)
    effect = judgement.effect
    if judgement.problems and effect is Effect.ALLOW:
        effect = Effect.ASK
    rule, sound = judgement.rule, not judgement.problems
    alone = rule.approvals == 1 and not rule.by and not rule.separate_duties and _lets_approve(rule)
    return Judged(effect, rule.name, rule is not policy.default, sound, alone)


def _lets_approve(rule: Rule) -> bool:
    """A rule may leave nothing to say but no; what nobody could approve now, no earlier word approves either."""
    return rule.verbs is None or Verb.APPROVE in rule.verbs


def stands_approved(tx: Tx, tool: str, args: Json, graph: str, attempt: Attempt | None) -> bool:
    """Whether somebody has approved calls like this one once for all; it is used, and the timeline tells."""
    used = policies.use_approval(tx, _call(tx, tool, args, graph, attempt))
    if used is None:
        return False
    told = {"tool": tool, "args_hash": canonical.digest(args), "run": attempt.run_id if attempt else None}
    events.append(tx, "gate", "approval.used", f"approval:{used.id}", told)
    return True


def decided_answers(tx: Tx, thread_id: str) -> dict[str, Json]:
    """What was decided and not heard yet, by the interrupt that waits for it."""
    told = (jsontext.load(row.body) for row in _undelivered(tx, thread_id))
    return {one["interrupt_id"]: one["value"] for one in told if one["value"] is not None}


def heard(tx: Tx, thread_id: str, interrupt_ids: Collection[str]) -> None:
    """These questions are behind their task: their answers are not sent again."""
    for row in _undelivered(tx, thread_id):
        if jsontext.load(row.body)["interrupt_id"] in interrupt_ids:
            tx.change(_DELIVERED, id=row.delivery_id, now=tx.now())


def listed(tx: Tx, status: ItemStatus | None) -> list[Item]:
    """Those about a single call, oldest first."""
    rows = tx.all(_ITEMS) if status is None else tx.all(_IN_STATUS, wanted=status)
    return [item_rows.item_of(row) for row in rows]


def _undelivered(tx: Tx, thread_id: str) -> Sequence[Row[Any]]:
    return tx.all(_UNDELIVERED, thread=f"thread:{thread_id}", now=tx.now())


def _call(tx: Tx, tool: str, args: Json, graph: str, attempt: Attempt | None) -> PolicyCall:
    run = runs.get(tx, attempt.run_id) if attempt else None
    agent = agent_of(tx, run.actor if run else "")
    return PolicyCall(tool, args, graph, agent.name, tx.tenant, agent.id)
