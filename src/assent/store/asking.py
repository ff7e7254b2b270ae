"""Items follow their threads: in the transaction that records what a thread waits for, its items are made, revised or
closed, so that no question is without its item and no item waits for a question that nobody asks any more."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from assent.dialects import breakpoint, recognise, request
from assent.domain.canonical import Json
from assent.domain.deliveries import RESUME
from assent.domain.grants import GATE, Grant, GrantStatus
from assent.domain.ids import new_id
from assent.domain.items import HERE, Due, Execution, Item, ItemStatus, Revision, aligned_calls, as_revised
from assent.domain.questions import Interrupt, ItemType, Question, Resolution, summary
from assent.domain.runs import Run
from assent.domain.terms import Terms, next_due, shown, stricter, terms_of
from assent.store import answers, decisions, deliveries, events, grants, items, jsontext, policies
from assent.store.agents import agent_of
from assent.store.transaction import Tx

IN_DOUBT = "assent.in_doubt"
"""The `kind` of the interrupt in which the gate asks how a call that was cut off has ended."""

_SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a thread waits for now. `upcoming` are the nodes it stopped before without asking anything."""

    thread_id: str
    pending: Sequence[Mapping[str, Any]]
    graph_id: str | None = None
    assistant_id: str | None = None
    values: Any = None
    run: Run | None = None
    gated: bool = False
    upcoming: Sequence[str] = ()

    @property
    def requester(self) -> str:
        return self.run.actor if self.run else _SYSTEM


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of a thread, with what identifies it there."""

    interrupt_id: str
    question: Question
    revision: Revision

    @property
    def looks_like(self) -> tuple[str, ...]:
        """By what a question is known again after its agent was asked to revise it."""
        return self.question.dialect, *(action.name for action in self.question.actions)


def follow(tx: Tx, waiting: Waiting) -> None:
    """Brings the thread's items in line with what it waits for now."""
    _note_doubts(tx, waiting)
    asked = _asked(waiting)
    present = items.open_of_thread(tx, waiting.thread_id)
    known = {item.interrupt_id: item for item in present}
    awaited = [item for item in present if item.status is ItemStatus.REVISION_REQUESTED]
    kept = set[str]()
    for one in asked:
        item = known.get(one.interrupt_id) or _awaited(tx, awaited, one)
        if item is None:
            _raise(tx, waiting, one)
        else:
            kept.add(item.id)
            _revise(tx, item, one, waiting)
    for item in present:
        if item.id not in kept:
            close(tx, item, Resolution.SUPERSEDED if asked or waiting.upcoming else Resolution.THREAD_ENDED)


def cut_off_by(tx: Tx, run: Run) -> None:
    """The run is over, and calls that it had begun were not heard of again."""
    begun = grants.left_started(tx, run.thread_id)
    cut_off(tx, [grant for grant in begun if grant.run_id == run.id], f"run:{run.id}")


def cut_off(tx: Tx, begun: Iterable[Grant], actor: str) -> None:
    """Whoever made these calls is gone: nobody knows whether they were made."""
    for grant in begun:
        item = items.lock(tx, grant.item_id)
        if item is not None and item.execution is not Execution.IN_DOUBT:
            items.change(tx, item, execution=Execution.IN_DOUBT)
            events.append(tx, actor, "grant.in_doubt", item.subject, {"grant": grant.id, "tool": grant.tool})


def end(tx: Tx, thread_id: str, resolution: Resolution = Resolution.THREAD_ENDED, actor: str = _SYSTEM) -> None:
    """The thread waits for nothing any more: it moved on by itself, or is gone. Nobody asks then what became of a call
    that was cut off, but it stays in doubt: only a person can say."""
    for item in items.open_of_thread(tx, thread_id):
        close(tx, item, resolution, actor)
    overtake(tx, thread_id, (), resolution, actor)
    for item in items.in_doubt_of_thread(tx, thread_id):
        items.change(tx, item, doubt_id=None)
        grants.drop_doubts(tx, item.id)
        events.append(tx, actor, "item.left_in_doubt", item.subject, {"reason": resolution})


def overtake(tx: Tx, thread_id: str, still: Collection[str], resolution: Resolution, actor: str = _SYSTEM) -> None:
    """Who may decide has moved the thread before what was decided took effect: nothing comes of it any more, unless its
    question is `still` there."""
    for item in items.decided_of_thread(tx, thread_id):
        if item.interrupt_id not in still:
            _overtake(tx, item, resolution, actor)


def _overtake(tx: Tx, item: Item, resolution: Resolution, actor: str) -> None:
    decision = decisions.closing(tx, item.id)
    if decision is None or decision.delivery_id is None or not deliveries.withdraw(tx, decision.delivery_id):
        return
    grants.revoke_of_item(tx, item.id)
    begun = item.execution if grants.in_doubt(tx, item.id) else None
    items.change(tx, item, resolution=resolution, execution=begun, undo_until=None)
    events.append(tx, actor, "item.overtaken", item.subject, {"decision": decision.id, "reason": resolution})


def close(tx: Tx, item: Item, resolution: Resolution, actor: str = _SYSTEM, notes: str | None = None) -> Item:
    """Ends an item that nobody has decided."""
    status = item.moved(ItemStatus.EXPIRED if resolution is Resolution.EXPIRED else ItemStatus.CANCELLED)
    grants.revoke_of_item(tx, item.id)
    closed = items.change(tx, item, status=status, resolution=resolution, due_at=None, due=None, undo_until=None)
    kind = "item.expired" if status is ItemStatus.EXPIRED else "item.cancelled"
    events.append(tx, actor, kind, item.subject, {"resolution": resolution, "notes": notes})
    return closed


def revise(tx: Tx, item: Item, revision: Revision, *, actor: str, kind: str = "item.revised", **columns: Any) -> Item:
    """The next revision: what was said to the one before counts no more."""
    decisions.dismiss(tx, item.id)
    items.add_revision(tx, item.id, revision)
    revised = items.change(tx, item, revision=revision.number, hash=revision.hash, approvals=0, **columns)
    told = {"revision": revision.number, "hash": revision.hash, "notes": revision.notes}
    events.append(tx, actor, kind, item.subject, told)
    return revised


def create(tx: Tx, question: Question, revision: Revision, terms: Terms, **columns: Any) -> Item:
    """A new item, due as its terms say."""
    item = items.insert(
        tx,
        new_id(),
        revision,
        type=columns.pop("type", question.type),
        dialect=question.dialect,
        deployment=HERE,
        **timed(terms, tx.now(), columns.pop("expires_at", None)),
        **{**_words(question, terms), **bound(terms), **columns},
    )
    told = {"type": item.type, "title": item.title, "revision": item.revision, "hash": item.hash, "gated": item.gated}
    events.append(tx, item.requester, "item.created", item.subject, {**told, "thread": item.thread_id})
    return item


def question_of(item: Item, revision: Revision) -> Question:
    """What a revision asks, with a reviewer's changes in it."""
    if item.dialect == breakpoint.NAME:
        return breakpoint.question(revision.asked["next"])
    if item.dialect == request.NAME:
        return as_revised(request.question(revision.asked), revision)
    interrupt = Interrupt(item.interrupt_id or item.id, revision.asked, revision.response_schema)
    return as_revised(recognise(interrupt), revision)


def _asked(waiting: Waiting) -> list[Asked]:
    if waiting.upcoming and waiting.run is not None:
        question = breakpoint.question(waiting.upcoming)
        revision = Revision(1, {"next": list(waiting.upcoming)}, author=waiting.requester)
        return [Asked(f"breakpoint:{waiting.run.id}", question, revision)]
    return [_read(waiting, one) for one in waiting.pending if not _is_doubt(one)]


def _read(waiting: Waiting, pending: Mapping[str, Any]) -> Asked:
    interrupt = Interrupt(pending["id"], pending.get("value"), pending.get("response_schema"))
    question = recognise(interrupt)
    revision = Revision(
        1, question.value, question.response_schema, calls=_calls(waiting, question), author=waiting.requester
    )
    return Asked(interrupt.id, question, revision)


def _calls(waiting: Waiting, question: Question) -> dict[str, str]:
    """The agent's ids of the calls asked about, where the question itself does not carry them."""
    if question.type is not ItemType.TOOL or all(action.call_id for action in question.actions):
        return {}
    values = waiting.values if isinstance(waiting.values, Mapping) else {}
    return aligned_calls(question, values.get("messages")) or {}


def _raise(tx: Tx, waiting: Waiting, one: Asked) -> None:
    """A new item, unless a decision on this very question is still on its way to the agent."""
    before = items.latest_of_interrupt(tx, waiting.thread_id, one.interrupt_id)
    if before is not None and is_answered(tx, before):
        return
    if before is not None:
        grants.revoke_of_item(tx, before.id)  # it is asked again: what was allowed and not used is not any more
    terms = _terms(tx, waiting, one)
    run = waiting.run
    create(
        tx,
        one.question,
        one.revision,
        terms,
        graph_id=waiting.graph_id,
        assistant_id=waiting.assistant_id,
        thread_id=waiting.thread_id,
        run_id=run.id if run else None,
        interrupt_id=one.interrupt_id,
        requester=waiting.requester,
        follows=before.id if before else None,
    )


def is_answered(tx: Tx, item: Item) -> bool:
    """Whether what was decided is still on its way: in the outbox, or with a run that waits for its turn."""
    if item.thread_id and item.interrupt_id and answers.standing(tx, item.thread_id, item.interrupt_id):
        return True
    return deliveries.under_way(tx, item.subject)


def _terms(tx: Tx, waiting: Waiting, one: Asked) -> Terms:
    return judged(
        tx, one.question, graph_id=waiting.graph_id, requester=waiting.requester, gated=_is_gated(waiting, one)
    )


def judged(tx: Tx, question: Question, *, graph_id: str | None, requester: str, gated: bool) -> Terms:
    """What the policy in force says about a question."""
    version = policies.in_force(tx)
    return terms_of(
        version.parsed(),
        version.number,
        question,
        graph=graph_id,
        agent=agent_of(tx, requester),
        tenant=tx.tenant,
        gated=gated,
    )


def bound(terms: Terms) -> dict[str, Any]:
    """The columns of an item that its terms fill."""
    return {"gated": terms.gated, "risk": terms.risk, "policy": terms.to_json()}


def timed(terms: Terms, asked_at: datetime, expires_at: datetime | None) -> dict[str, Any]:
    """The columns of an item that say what time does about it, when it is asked under these terms."""
    plan = terms.schedule(asked_at, expires_at)
    due_at, due = next_due(plan, asked_at)
    return {"expires_at": next((at for at, end in plan if end is Due.EXPIRE), None), "due_at": due_at, "due": due}


def _words(question: Question, terms: Terms) -> dict[str, str]:
    """What a list shows of a question. It is the agent's text, and a column cannot hold a NUL: its picture stands for
    it there. What was asked is kept as it is."""
    words = {"title": question.title, "summary": summary(shown(question, terms))}
    return {name: text.replace("\0", "\N{SYMBOL FOR NULL}") for name, text in words.items()}


def _is_gated(waiting: Waiting, one: Asked) -> bool:
    """Our gate has asked, or will want a grant for what is asked here: then every call must be known by its id."""
    value = one.question.value
    if isinstance(value, dict) and value.get("gate") == GATE:
        return True
    revised = as_revised(one.question, one.revision)
    return waiting.gated and revised.type is ItemType.TOOL and all(action.known_by for action in revised.actions)


def _awaited(tx: Tx, awaited: list[Item], one: Asked) -> Item | None:
    """The item whose revision this is: the same kind of question about the same tools."""
    for item in awaited:
        before = question_of(item, items.revision(tx, item.id, item.revision))
        if one.looks_like == (before.dialect, *(action.name for action in before.actions)):
            awaited.remove(item)
            return item
    return None


def _revise(tx: Tx, item: Item, one: Asked, waiting: Waiting) -> None:
    current = items.revision(tx, item.id, item.revision)
    unchanged = item.interrupt_id == one.interrupt_id and replace(current, edits={}).hash == one.revision.hash
    if unchanged and (item.status is ItemStatus.PENDING or is_answered(tx, item)):
        return  # in the latter case the notes are still on their way to the agent, which asks as it did before
    revision = replace(one.revision, number=item.revision + 1)
    terms = stricter(Terms.from_json(item.policy), _terms(tx, waiting, one))
    run_id = waiting.run.id if waiting.run else item.run_id
    revise(
        tx,
        item,
        revision,
        actor=waiting.requester,
        status=ItemStatus.PENDING,
        interrupt_id=one.interrupt_id,
        run_id=run_id,
        **_words(one.question, terms),
        **bound(terms),
    )


def _is_doubt(pending: Mapping[str, Any]) -> bool:
    value = pending.get("value")
    return isinstance(value, dict) and value.get("kind") == IN_DOUBT


def _note_doubts(tx: Tx, waiting: Waiting) -> None:
    """The gate asks how a call that was cut off has ended: the item that allowed it shows so, and takes the answer."""
    for one in filter(_is_doubt, waiting.pending):
        asked = one["value"]
        item, grant = items.lock(tx, str(asked.get("item_id"))), grants.get(tx, str(asked.get("grant_id")))
        if item is None or item.thread_id != waiting.thread_id:
            continue
        if grant is not None and grant.status is not GrantStatus.STARTED:
            _tell_again(tx, item, one["id"], grant)
            continue
        items.change(tx, item, execution=Execution.IN_DOUBT, doubt_id=one["id"])
        if grant is not None:
            grants.doubt(tx, grant.id, one["id"])


def _tell_again(tx: Tx, item: Item, interrupt_id: str, grant: Grant) -> None:
    """The run had asked before a person said it, and ended after: the question hears what was said, and nobody is asked
    a second time about a call that may be made again by now."""
    if answers.standing(tx, str(item.thread_id), interrupt_id) or interrupt_id in _on_their_way(tx, item):
        return
    said = grant.result if isinstance(grant.result, dict) else {}
    outcome = "run_again" if grant.status is GrantStatus.REVOKED else said.get("doubt", "done")
    deliver(tx, item, interrupt_id, {"outcome": outcome, "notes": said.get("notes")})


def _on_their_way(tx: Tx, item: Item) -> set[str]:
    """The questions that answers in the outbox are for."""
    return {jsontext.load(body)["interrupt_id"] for body in deliveries.bodies_under_way(tx, item.subject)}


def deliver(tx: Tx, item: Item, interrupt_id: str, value: Json, *, wait: timedelta = timedelta()) -> str:
    """To the run here that waits for it. Without a value, the thread is ended."""
    body = {"item_id": item.id, "thread_id": item.thread_id, "run_id": item.run_id, "gated": item.gated}
    told = jsontext.dump({**body, "interrupt_id": interrupt_id, "value": value})
    return deliveries.add(tx, RESUME, subject=item.subject, target=f"thread:{item.thread_id}", body=told, wait=wait)
