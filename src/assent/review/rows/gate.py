"""The gate's queries beside the grants: its own questions and their decisions, paused calls, and the policy's judgement
of a call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, bindparam, or_, select, update

from assent.identity.rows.agents import agent_of
from assent.kernel import canonical, events, jsontext
from assent.kernel.canonical import Json
from assent.kernel.store.tables import TENANT, deliveries, item_revisions, items
from assent.kernel.store.tables import grants as grant_table
from assent.kernel.store.transaction import Tx
from assent.outbox.model import GATE_ANSWER, RESUME, DeliveryStatus
from assent.review.dialects.langchain import hitl_request, tool_approval
from assent.review.model.grants import Call, Grant, GrantStatus, Passage, Passing, covers
from assent.review.model.items import Execution, Item, ItemStatus
from assent.review.model.lifecycle import Executed
from assent.review.model.policies import Call as PolicyCall
from assent.review.model.policies import Effect, judge
from assent.review.model.questions import Resolution
from assent.review.rows import attempts, grant_scopes, grants, policies
from assent.review.rows import items as item_rows
from assent.review.rows.attempts import AttemptElsewhere, Maker
from assent.threads.rows import runs
from assent.threads.rows.state.checkpoints import Attempt

PAUSED = "paused"
"""The key of the open questions in the result of a started call that waits for an answer of its own."""
NOTE = "note"
"""The key of the call's own note there."""

_OF_INTERRUPTS = (
    select(
        items.c.item_id,
        items.c.interrupt_id,
        items.c.doubt_id,
        items.c.status,
        items.c.resolution,
        items.c.gated,
        items.c.origin,
        item_revisions.c.asked,
        item_revisions.c.response_schema,
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
    .values(status=DeliveryStatus.DELIVERED, delivered_at=bindparam("now"), due_at=None)
)
_ANSWERS = (
    select(deliveries.c.body)
    .where(deliveries.c.tenant_id == TENANT, deliveries.c.kind == RESUME, deliveries.c.target == bindparam("thread"))
    .where(deliveries.c.body.contains(bindparam("question")))
    .where(
        or_(
            deliveries.c.status == DeliveryStatus.DELIVERED,
            (deliveries.c.status == DeliveryStatus.PENDING) & (deliveries.c.due_at <= bindparam("now")),
        )
    )
    .order_by(deliveries.c.created_at.desc(), deliveries.c.delivery_id.desc())
)
_FETCHED = (
    select(deliveries.c.body)
    .where(deliveries.c.tenant_id == TENANT, deliveries.c.kind == GATE_ANSWER)
    .where(deliveries.c.subject == bindparam("about"))
    .where(or_(deliveries.c.status != DeliveryStatus.PENDING, deliveries.c.due_at <= bindparam("now")))
    .order_by(deliveries.c.created_at.desc(), deliveries.c.delivery_id.desc())
)
_ITEMS = (
    select(items)
    .where(items.c.tenant_id == TENANT, items.c.dialect.in_((tool_approval.NAME, hitl_request.NAME)))
    .order_by(items.c.created_at, items.c.item_id)
)
_IN_STATUS = _ITEMS.where(items.c.status == bindparam("wanted"))
_THIS = update(grant_table).where(
    grant_table.c.tenant_id == TENANT,
    grant_table.c.grant_id == bindparam("id"),
    grant_table.c.status == GrantStatus.STARTED,
)
_PAUSE = _THIS.values(result=bindparam("new_result"), alive_until=None)
_GO_ON = _THIS.values(
    result=bindparam("new_result"),
    run_id=bindparam("run"),
    attempt=bindparam("number"),
    taken_by=bindparam("by"),
    alive_until=bindparam("until"),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of the gate. `about_call`: about exactly the call that was looked for. `decided`: it was decided or
    closed; before that, no answer to it is valid."""

    item_id: str
    about_call: bool
    decided: bool


@dataclass(frozen=True, slots=True)
class Judged:
    """The policy's judgement. `named`: by a rule that matches the call, not by the default. `sound`: without
    problems."""

    effect: Effect
    rule: str
    named: bool
    sound: bool
    alone: bool
    """Whether any single approval is enough, without named deciders, a second person or a proof of presence."""


def asked(tx: Tx, call: Call, interrupt_ids: Collection[str]) -> dict[str, Asked]:
    """The questions of the gate among these interrupts."""
    questions: dict[str, Asked] = {}
    rows = tx.all(_OF_INTERRUPTS, thread=call.thread_id, ids=list(interrupt_ids))
    for row in (row for row in rows if row.origin == call.origin):
        if row.doubt_id in interrupt_ids:
            questions[row.doubt_id] = Asked(row.item_id, about_call=True, decided=False)
        if row.interrupt_id in interrupt_ids and _is_ours(row):
            # a delivered request for a revision is also an answer: a rejection with notes
            decided = row.status != ItemStatus.PENDING and row.resolution != Resolution.SUPERSEDED
            about = grant_scopes.is_about(row.asked, row.response_schema, call)
            questions[row.interrupt_id] = Asked(row.item_id, about, decided)
    return questions


def _is_ours(row: Row[Any]) -> bool:
    """Whether the question has the gate's mark, so that only a person can answer it."""
    return bool(row.gated) and grant_scopes.is_of_gate(row.asked, row.response_schema)


def consume(tx: Tx, call: Call, attempt: Maker, has_answer: Callable[[str], bool]) -> Passage:
    """As `grants.consume`; a paused call continues once its own question is answered."""
    return _continue_after_pause(tx, call, attempt, has_answer) or grants.consume(tx, call, attempt)


@dataclass(frozen=True, slots=True)
class Pause:
    """The open questions of a call, and its own note about how it continues."""

    asked: Sequence[Json]
    note: Json = None


def note_of(grant: Grant) -> Json:
    """The note of the paused call that continues under this grant."""
    return grant.result.get(NOTE) if isinstance(grant.result, dict) and PAUSED in grant.result else None


def pause(tx: Tx, grant_id: str, paused: Pause, attempt: Maker) -> None:
    """The call paused to ask this: it is not in doubt, and its task makes it again after the answer."""
    attempts.hold(tx, attempt)
    tx.change(_PAUSE, id=grant_id, new_result={PAUSED: list(paused.asked), NOTE: paused.note})


def give_back(tx: Tx, passage: Passage, attempt: Maker) -> None:
    """The call that this passage let through was not made. A retry that an idempotent tool lets through stays as it is:
    its first call may have been made."""
    grant = passage.grant
    if grant is None or passage.passing is not Passing.GO:
        return
    if isinstance(grant.result, dict) and PAUSED in grant.result:
        pause(tx, grant.id, Pause(grant.result[PAUSED], note_of(grant)), attempt)
    elif grant.status is GrantStatus.GRANTED:
        grants.give_back(tx, grant, attempt)


def announce_doubt(tx: Tx, grant_id: str, interrupt_id: str, attempt: Maker) -> None:
    """The gate is about to ask about the outcome of the call, in this interrupt. The row distinguishes its question
    from one that an agent forges."""
    attempts.hold(tx, attempt)
    grants.doubt(tx, grant_id, interrupt_id)


def _continue_after_pause(tx: Tx, call: Call, attempt: Maker, has_answer: Callable[[str], bool]) -> Passage | None:
    """None if the call has not paused, or if it cannot continue, which is a doubt: its question cannot be raised again,
    or the grant is not valid in this run. A pause without a question is a breakpoint of a nested graph: a task that
    resumes has passed it."""
    grant = _paused(tx, call)
    if grant is None or not isinstance(grant.result, dict):
        return None
    attempts.hold(tx, attempt)
    asked = grant.result.get(PAUSED)
    if not isinstance(asked, list):
        return None
    if asked and not any(has_answer(question["id"]) for question in asked):
        return Passage(Passing.WAIT, grant) if all("value" in question for question in asked) else None
    if not grant_scopes.holds_in(tx, grant, attempt):
        return None
    tx.change(_GO_ON, id=grant.id, new_result=None, **attempts.begun_by(attempt, tx.now()))
    grants.set_execution(tx, grant.item_id, Executed(execution=Execution.STARTED))
    number = attempts.number_of(attempt)
    details = {"grant": grant.id, "tool": grant.tool, "call": grant.call_id, "attempt": number, "again": True}
    events.append(tx, attempts.actor_of(attempt), f"grant.{Execution.STARTED}", f"item:{grant.item_id}", details)
    return Passage(Passing.GO, grant)


def _paused(tx: Tx, call: Call) -> Grant | None:
    rows = tx.all(_STARTED, thread=call.thread_id, call=call.call_id, in_task=call.task)
    started = (grant for row in rows for grant in grants.in_doubt(tx, row.item_id) if grant.id == row.grant_id)
    own = (grant for grant in started if covers(grant, tx.tenant, call))
    return next((grant for grant in own if grant_scopes.answers(tx, grant, call)), None)


def judged(tx: Tx, tool: str, args: Json, graph: str, attempt: Maker) -> Judged:
    """A policy with problems asks instead of allowing."""
    policy = policies.in_force(tx).parsed()
    call = _call(tx, tool, args, graph, attempt)
    judgement = judge(policy, call)
    effect = judgement.effect
    if judgement.problems and effect is Effect.ALLOW:
        effect = Effect.ASK
    rule, sound = judgement.rule, not judgement.problems
    return Judged(effect, rule.name, rule is not policy.default, sound, alone=rule.barrier is None)


def stands_approved(tx: Tx, tool: str, args: Json, graph: str, attempt: Maker) -> bool:
    """Whether a standing approval covers the call; it is used up by one, and the timeline records that."""
    used = policies.use_approval(tx, _call(tx, tool, args, graph, attempt))
    if used is None:
        return False
    details = {"tool": tool, "args_hash": canonical.digest(args), "run": attempts.run_of(attempt)}
    events.append(tx, "gate", "approval.used", f"approval:{used.id}", details)
    return True


def decided_answers(tx: Tx, thread_id: str) -> dict[str, Json]:
    """The decided answers that were not used yet, by the interrupt that waits for them."""
    payloads = (jsontext.load(row.body) for row in _undelivered(tx, thread_id))
    return {payload["interrupt_id"]: payload["value"] for payload in payloads if payload["value"] is not None}


def decided_answer(tx: Tx, thread_id: str, interrupt_id: str) -> Json:
    """The latest decided answer to this question, used or not; None without one."""
    rows = tx.all(_ANSWERS, thread=f"thread:{thread_id}", question=interrupt_id, now=tx.now())
    payloads = (jsontext.load(row.body) for row in rows)
    return next((payload["value"] for payload in payloads if payload["interrupt_id"] == interrupt_id), None)


def fetched_answer(tx: Tx, call: Call, interrupt_id: str) -> Mapping[str, Any] | None:
    """As `decided_answer`, for the question of a gate elsewhere: the message with the value."""
    ids = {entry.item_id for entry in asked(tx, call, [interrupt_id]).values()}
    return next((message for id in ids if (message := _fetched(tx, id, interrupt_id)) is not None), None)


def has_answer(tx: Tx, item_id: str, interrupt_id: str) -> bool:
    return _fetched(tx, item_id, interrupt_id) is not None


def _fetched(tx: Tx, item_id: str, interrupt_id: str) -> Mapping[str, Any] | None:
    rows = tx.all(_FETCHED, about=f"item:{item_id}", now=tx.now())
    messages: Iterator[Mapping[str, Any]] = (jsontext.load(row.body) for row in rows)
    latest = next((message for message in messages if message["interrupt_id"] == interrupt_id), None)
    return None if latest is None or latest["value"] is None else latest


def mark_delivered(tx: Tx, thread_id: str, interrupt_ids: Collection[str]) -> None:
    """Marks the answers to these questions as delivered: they are not sent again."""
    for row in _undelivered(tx, thread_id):
        if jsontext.load(row.body)["interrupt_id"] in interrupt_ids:
            tx.change(_DELIVERED, id=row.delivery_id, now=tx.now())


def listed(tx: Tx, status: ItemStatus | None) -> list[Item]:
    """Items of a single call, oldest first."""
    rows = tx.all(_ITEMS) if status is None else tx.all(_IN_STATUS, wanted=status)
    return [item_rows.item_of(row) for row in rows]


def _undelivered(tx: Tx, thread_id: str) -> Sequence[Row[Any]]:
    return tx.all(_UNDELIVERED, thread=f"thread:{thread_id}", now=tx.now())


def _call(tx: Tx, tool: str, args: Json, graph: str, attempt: Maker) -> PolicyCall:
    agent = agent_of(tx, _agent(tx, attempt))
    return PolicyCall(tool, args, graph, agent.name, tx.tenant, agent.id)


def _agent(tx: Tx, maker: Maker) -> str:
    """The actor of the agent that makes the call."""
    if isinstance(maker, AttemptElsewhere):
        return maker.actor
    run = runs.get(tx, maker.run_id) if isinstance(maker, Attempt) else None
    return run.actor if run else ""
