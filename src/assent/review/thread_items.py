"""Keeps items in line with their threads: the transaction that records a thread's pending questions creates, revises or
closes its items, so that every question has its item and no item waits for a question that is gone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from assent.errors import TooLarge
from assent.kernel import canonical, events, jsontext
from assent.kernel.canonical import Json
from assent.kernel.ids import new_id
from assent.kernel.limits import Limits
from assent.kernel.store.transaction import Tx
from assent.outbox import deliveries
from assent.outbox.model import ANSWER, GATE_ANSWER, RESUME
from assent.review import changes, workspace_runs
from assent.review.collaboration import owners
from assent.review.dialects import approves, breakpoint, question_of, recognise, workspace_review
from assent.review.model.grants import ITEM, Call, Grant, GrantStatus, covers, marks_of
from assent.review.model.items import HERE, Execution, Item, ItemStatus, Revision, aligned_calls, as_revised
from assent.review.model.lifecycle import (
    AskedAgain,
    Closed,
    Doubted,
    Edited,
    Lapsed,
    Message,
    Overtaken,
    Resubmitted,
    Unasked,
    Unobserved,
)
from assent.review.model.questions import Interrupt, ItemType, Question, Resolution
from assent.review.model.search.terms import Terms, secrets_in, stricter
from assent.review.model.secrets import Text
from assent.review.rows import decisions, grants, items, secrets
from assent.review.search import item_index, item_terms, item_words
from assent.review.search.item_words import Learned
from assent.threads.model.runs import Run
from assent.threads.model.threads import Thread
from assent.threads.rows import answers, threads
from assent.threads.rows.state import checkpoints

IN_DOUBT = "assent.in_doubt"
"""The `kind` of the gate's interrupt about the outcome of an interrupted call."""

SYSTEM = "system"
"""The actor of this server's own changes."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The pending questions of a thread. `upcoming` are the nodes that it stopped before at a breakpoint, with `notes`
    for the reviewer. `asker` replaces the actor of `run` as requester; `by` is the actor that moved the thread here.
    `origin` identifies a gate elsewhere, whose other questions than those in `about` stay as they are. `far_id` is the
    id of the thread on another deployment. `gone` is the resolution of questions that it no longer asks, where that is
    known."""

    thread_id: str
    pending: Sequence[Mapping[str, Any]]
    graph_id: str | None = None
    assistant_id: str | None = None
    values: Any = None
    run: Run | None = None
    gated: bool = False
    upcoming: Sequence[str] = ()
    notes: Sequence[str] = ()
    asker: str | None = None
    by: str = SYSTEM
    deployment: str = HERE
    far_id: str | None = None
    origin: str | None = None
    about: Collection[str] | None = None
    gone: Resolution | None = None

    @classmethod
    def of(cls, thread: Thread, pending: Sequence[Mapping[str, Any]], values: Any, **facts: Any) -> Waiting:
        """The questions of the thread, with the graph of its row instead of a run's."""
        assistant = thread.metadata.get("assistant_id")
        return cls(thread.id, pending, graph_id=thread.graph_id, assistant_id=assistant, values=values, **facts)

    def is_about(self, item: Item) -> bool:
        return self.about is None or item.interrupt_id in self.about

    @property
    def requester(self) -> str:
        return self.asker or (self.run.actor if self.run else SYSTEM)


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of a thread, with its interrupt id."""

    interrupt_id: str
    question: Question
    revision: Revision

    @property
    def looks_like(self) -> tuple[str, ...]:
        """Identifies a question after its agent was asked to revise it."""
        return self.question.dialect, *(action.name for action in self.question.actions)


def follow(tx: Tx, waiting: Waiting) -> None:
    """Creates, revises and closes the thread's items to match its pending questions."""
    by_gates = _asked_by_gates(tx, waiting)
    doubted = {
        str(pending["id"]): grant
        for pending in waiting.pending
        if (grant := _doubted(tx, waiting, pending, by_gates)) is not None
    }
    for interrupt_id, grant in doubted.items():
        _note_doubt(tx, interrupt_id, grant)
    present = _present(tx, waiting)
    asked = _asked(tx, waiting, present, but_not={*doubted, *by_gates})
    by_interrupt = {item.interrupt_id: item for item in present}
    awaited = [item for item in present if item.status is ItemStatus.REVISION_REQUESTED]
    current, learned = {item.id for item in by_gates.values()}, Learned(tx, waiting.thread_id)
    matched = [(entry, by_interrupt.get(entry.interrupt_id) or _awaited(tx, awaited, entry)) for entry in asked]
    ids = {entry.interrupt_id for entry in asked}
    unanswered = next((item for item in awaited if item.interrupt_id not in ids and waiting.is_about(item)), None)
    for entry, item in matched:
        if item is None:
            _raise(tx, waiting, entry, learned, instead_of=unanswered)
        else:
            current.add(item.id)
            _revise(tx, item, entry, waiting, learned)
    for item in filter(waiting.is_about, present):
        if item.id not in current:
            passed = Resolution.SUPERSEDED if asked or waiting.upcoming else Resolution.THREAD_ENDED
            close(tx, item, waiting.gone or passed, waiting.by)
    for gated in by_gates.values():
        _link(tx, gated, waiting.deployment)
    learned.apply()


def _present(tx: Tx, waiting: Waiting) -> list[Item]:
    """The open items of who asks. A gate elsewhere has its own, and nobody else revises or closes those, except the
    deployment that they are linked to."""
    own = (item for item in items.open_of_thread(tx, waiting.thread_id) if item.origin == waiting.origin)
    present = [item for item in own if waiting.is_about(item) or item.status is ItemStatus.REVISION_REQUESTED]
    return present + (items.open_of_gates(tx, waiting.deployment, waiting.far_id) if waiting.far_id else [])


def _asked_by_gates(tx: Tx, waiting: Waiting) -> dict[str, Item]:
    """The items of the questions on another deployment that gates there have asked."""
    if waiting.far_id is None:
        return {}
    named = (waiting.deployment, waiting.far_id)
    asked = ((str(pending["id"]), asked_by_gate(tx, pending, *named)) for pending in waiting.pending)
    return {id: item for id, item in asked if item is not None}


def asked_by_gate(tx: Tx, pending: Mapping[str, Any], deployment: str, far_id: str) -> Item | None:
    """The item of this question if a gate on this thread of the deployment asked it: the gate itself creates and
    revises it. The gate's question names its item: an interrupt id alone may be that of another agent's question."""
    marks = marks_of(pending.get("value"), pending.get("response_schema")) or {}
    item = items.get(tx, str(marks.get(ITEM)))
    if item is None or items.asked_on(item) != far_id or item.deployment not in (HERE, deployment):
        return None
    return item if pending["id"] in (item.interrupt_id, item.doubt_id) else None


def _link(tx: Tx, item: Item, deployment: str) -> None:
    """The thread of the gate is on this deployment: decisions wake it there, also the one that came before the link."""
    if item.deployment == HERE and (current := items.lock(tx, item.id)) is not None:
        items.change(tx, current, deployment=deployment)
        if not current.status.open:
            deliveries.send_again(tx, current.subject)


def cut_off_by(tx: Tx, run: Run) -> None:
    """The run has ended, and calls that it had started have no result."""
    begun = grants.left_started(tx, run.thread_id)
    cut_off(tx, [grant for grant in begun if grant.run_id == run.id], f"run:{run.id}")


def cut_off(tx: Tx, begun: Iterable[Grant], actor: str) -> None:
    """The processes of these calls are gone: whether the calls ran is unknown."""
    for grant in begun:
        item = items.lock(tx, grant.item_id)
        if item is not None and item.execution is not Execution.IN_DOUBT:
            changes.apply(tx, actor, item, Doubted(told={"grant": grant.id, "tool": grant.tool}))


def end(tx: Tx, thread_id: str, resolution: Resolution = Resolution.THREAD_ENDED, actor: str = SYSTEM) -> None:
    """The thread waits for nothing any longer: it continued by itself, or is gone. No question about an interrupted
    call remains, but the call stays in doubt: only a person can settle it."""
    for item in items.open_of_thread(tx, thread_id):
        close(tx, item, resolution, actor)
    overtake(tx, thread_id, (), resolution, actor)
    for item in items.in_doubt_of_thread(tx, thread_id):
        changes.apply(tx, actor, item, Unasked(resolution=resolution))


def supersede_questions(tx: Tx, thread_id: str, actor: str) -> None:
    """The thread continues without an answer: its questions are dropped."""
    threads.drop_questions(tx, thread_id)
    end(tx, thread_id, Resolution.SUPERSEDED, actor)


def remove_thread(tx: Tx, thread_id: str, actor: str = SYSTEM) -> bool:
    """Removes the thread. Its open items are closed by `actor`, and calls without a result are in doubt: no run can
    record one any longer. Items are kept."""
    cut_off(tx, grants.left_started(tx, thread_id), actor)
    end(tx, thread_id, actor=actor)
    return threads.remove(tx, thread_id)


def unobserved(tx: Tx, thread_id: str, pending: Collection[str]) -> None:
    """Answers have reached a graph without a gate: the outcome of the allowed calls stays unknown. Those that are still
    `pending` have not."""
    for item in items.granted_of_thread(tx, thread_id):
        if item.interrupt_id not in pending:
            changes.apply(tx, SYSTEM, item, Unobserved())


def overtake(tx: Tx, thread_id: str, still: Collection[str], resolution: Resolution, actor: str = SYSTEM) -> None:
    """A person who may decide has moved the thread before its decisions took effect: they are withdrawn, unless their
    question is `still` there."""
    for item in items.decided_of_thread(tx, thread_id):
        if item.interrupt_id not in still:
            _overtake(tx, item, resolution, actor)


def _overtake(tx: Tx, item: Item, resolution: Resolution, actor: str) -> None:
    decision = decisions.closing(tx, item.id)
    if decision is None or decision.delivery_id is None or not deliveries.withdraw(tx, decision.delivery_id):
        return
    begun = bool(grants.in_doubt(tx, item.id))
    changes.apply(tx, actor, item, Overtaken(decision_id=decision.id, resolution=resolution, begun=begun))


def close(
    tx: Tx,
    item: Item,
    resolution: Resolution,
    actor: str = SYSTEM,
    notes: str | None = None,
    message: Message | None = None,
) -> Item:
    """Closes an item without a decision."""
    event = Lapsed if resolution is Resolution.EXPIRED else Closed
    return changes.apply(tx, actor, item, event(resolution=resolution, notes=notes, message=message))


def revise(tx: Tx, item: Item, event: AskedAgain | Edited | Resubmitted, *, actor: str) -> Item:
    """The next revision: earlier decisions do not count for it."""
    _require_size(tx, event.revision)
    return changes.apply(tx, actor, item, event)


def create(
    tx: Tx, question: Question, revision: Revision, terms: Terms, known: Text | None = None, **columns: Any
) -> Item:
    """A new item, with the deadlines of its terms. `known` contains the secrets of its thread."""
    _require_size(tx, revision)
    item = items.insert(
        tx,
        new_id(),
        revision,
        type=columns.pop("type", question.type),
        dialect=question.dialect,
        deployment=columns.pop("deployment", HERE),
        secrets=sorted(secrets_in(question, terms)),
        **item_terms.timed(terms, tx.now(), columns.pop("expires_at", None)),
        **{**item_words.words(question, terms, known), **item_terms.bound(terms), **columns},
    )
    item = item_index.index(tx, item)
    details = {
        "type": item.type,
        "title": item.title,
        "revision": item.revision,
        "hash": item.hash,
        "gated": item.gated,
    }
    events.append(tx, item.requester, "item.created", item.subject, {**details, "thread": item.thread_id})
    return item


def flaw(limits: Limits, pending: Iterable[Mapping[str, Any]]) -> str | None:
    """The reason why the pending questions cannot be shown, or None. Also parses the questions, whose schemas are slow
    the first time, so that the transaction need not."""
    pending = list(pending)
    try:
        asked = [canonical.text([question.get("value"), question.get("response_schema")]) for question in pending]
    except canonical.NotJson as error:
        return str(error)
    reason = next(filter(None, map(limits.flaw, asked)), None) or limits.flaw_in_sum(asked)
    for question in pending if reason is None else ():
        approves(recognise(Interrupt(question["id"], question.get("value"), question.get("response_schema"))))
    return reason


def _require_size(tx: Tx, revision: Revision) -> None:
    reason = tx.limits.flaw(canonical.text([revision.asked, revision.response_schema, dict(revision.edits)]))
    if reason is not None:
        raise TooLarge(f"the question has {reason}")


def _asked(tx: Tx, waiting: Waiting, present: Sequence[Item], *, but_not: Collection[str]) -> list[Asked]:
    before = next((item.interrupt_id for item in present if item.dialect == breakpoint.NAME), None)
    interrupt_id = before or (f"breakpoint:{waiting.run.id}" if waiting.run else None)
    asked = [_read(tx, waiting, question) for question in waiting.pending if question["id"] not in but_not]
    if waiting.upcoming and interrupt_id is not None:
        asked.append(_stopped(tx, waiting, interrupt_id))
    return asked


def _stopped(tx: Tx, waiting: Waiting, interrupt_id: str) -> Asked:
    """The question of a breakpoint. It contains the thread's position, so that a decision applies only there."""
    asked: dict[str, Json] = {"next": list(waiting.upcoming), "heads": checkpoints.heads(tx, waiting.thread_id)}
    if waiting.notes:
        asked["notes"] = list(waiting.notes)
    question = breakpoint.question(waiting.upcoming, waiting.notes)
    return Asked(interrupt_id, question, Revision(1, asked, author=waiting.requester))


def heads_of(tx: Tx, item: Item, thread: Thread) -> str | None:
    """The thread's position, by `checkpoints.heads`, when the breakpoint of the item was raised."""
    if item.dialect != breakpoint.NAME:
        return None
    revision = items.revision(tx, item.id, item.revision)
    named = revision.asked.get("heads") if isinstance(revision.asked, dict) else None
    return named if isinstance(named, str) else _unmoved_heads(tx, item, revision, thread)


def _unmoved_heads(tx: Tx, item: Item, revision: Revision, thread: Thread) -> str | None:
    """For an item created before positions were stored: the current position, if the thread has not moved since."""
    if thread.state_updated_at is None or revision.created_at is None or thread.state_updated_at > revision.created_at:
        return None
    moved = item.run_id is None or checkpoints.head_run(tx, thread.id) != item.run_id
    return None if moved else checkpoints.heads(tx, thread.id)


def _read(tx: Tx, waiting: Waiting, pending: Mapping[str, Any]) -> Asked:
    interrupt = Interrupt(pending["id"], pending.get("value"), pending.get("response_schema"))
    question = workspace_runs.as_review(tx, recognise(interrupt), waiting.requester, waiting.graph_id)
    revision = Revision(
        1, question.value, question.response_schema, calls=_calls(waiting, question), author=waiting.requester
    )
    return Asked(interrupt.id, question, revision)


def _calls(waiting: Waiting, question: Question) -> dict[str, str]:
    """The agent's ids of the calls, if the question itself does not contain them."""
    if question.type is not ItemType.TOOL or all(action.call_id for action in question.actions):
        return {}
    values = waiting.values if isinstance(waiting.values, Mapping) else {}
    return aligned_calls(question, values.get("messages")) or {}


def _raise(tx: Tx, waiting: Waiting, asked: Asked, learned: Learned, *, instead_of: Item | None = None) -> None:
    """Creates an item, unless a decision on the same question is still on its way to the agent. `instead_of` is an item
    that the agent was asked to revise and did not ask again: the new one follows it."""
    before = items.latest_of_interrupt(tx, waiting.thread_id, asked.interrupt_id, waiting.origin)
    if before is not None and is_answered(tx, before):
        return
    if before is not None:
        grants.revoke_of_item(tx, before.id)  # it is asked again: unused grants are revoked
    terms = _terms(tx, waiting, asked)
    run, earlier = waiting.run, before or instead_of
    question, columns = _routed(tx, waiting, asked)
    create(
        tx,
        question,
        asked.revision,
        terms,
        learned.before,
        deployment=waiting.deployment,
        graph_id=waiting.graph_id,
        assistant_id=waiting.assistant_id,
        thread_id=waiting.thread_id,
        run_id=run.id if run else None,
        interrupt_id=asked.interrupt_id,
        requester=waiting.requester,
        origin=waiting.origin,
        follows=earlier.id if earlier else None,
        owner=owners.inherited(tx, earlier),
        reworded=before is not None and _is_reworded(tx, before, asked),
        **columns,
    )
    learned.fresh |= secrets_in(asked.question, terms)


def _routed(tx: Tx, waiting: Waiting, asked: Asked) -> tuple[Question, dict[str, Any]]:
    """The question as its item shows it, and the columns of a workspace review."""
    if asked.question.dialect != workspace_review.NAME:
        return asked.question, {}
    agent = workspace_runs.agent_of_run(tx, waiting.requester, waiting.graph_id)
    return workspace_runs.routed(tx, asked.question, agent, waiting.run.id if waiting.run else None)


def _is_reworded(tx: Tx, item: Item, asked: Asked) -> bool:
    """Whether the agent has asked something else under this interrupt's id before: then the id alone does not identify
    the question of an answer."""
    if item.interrupt_id != asked.interrupt_id:
        return False
    return item.reworded or _as_raised(tx, item) != asked.revision.hash


def _as_raised(tx: Tx, item: Item) -> str:
    """The hash of the agent's question, without a reviewer's edits."""
    return replace(items.revision(tx, item.id, item.revision), edits={}).hash


def asks_same(tx: Tx, item: Item, pending: Mapping[str, Any]) -> bool:
    """Whether a pending question of a thread without a gate is the one of the item."""
    return _read(tx, Waiting(str(item.thread_id), [pending]), pending).revision.hash == _as_raised(tx, item)


def is_answered(tx: Tx, item: Item) -> bool:
    """Whether the decision is still on its way: in the outbox, or with a queued run."""
    if item.thread_id and item.interrupt_id and answers.standing(tx, item.thread_id, item.interrupt_id):
        return True
    return deliveries.under_way(tx, item.subject)


def _terms(tx: Tx, waiting: Waiting, asked: Asked) -> Terms:
    return item_terms.judged(
        tx, asked.question, graph_id=waiting.graph_id, requester=waiting.requester, gated=_is_gated(waiting, asked)
    )


def _is_gated(waiting: Waiting, asked: Asked) -> bool:
    """Whether the gate has asked, or will need a grant for this question: then every call must have its id."""
    if marks_of(asked.question.value, asked.question.response_schema) is not None:
        return True
    revised = as_revised(asked.question, asked.revision)
    return waiting.gated and revised.type is ItemType.TOOL and all(action.known_by for action in revised.actions)


def _awaited(tx: Tx, awaited: list[Item], asked: Asked) -> Item | None:
    """The item whose revision this is: the same kind of question about the same tools."""
    for item in awaited:
        before = question_of(item, items.revision(tx, item.id, item.revision))
        if asked.looks_like == (before.dialect, *(action.name for action in before.actions)):
            awaited.remove(item)
            return item
    return None


def _revise(tx: Tx, item: Item, asked: Asked, waiting: Waiting, learned: Learned) -> None:
    unchanged = item.interrupt_id == asked.interrupt_id and _as_raised(tx, item) == asked.revision.hash
    if unchanged and (item.status is ItemStatus.PENDING or is_answered(tx, item)):
        return  # if answered, the notes are still on their way to the agent
    revision = replace(asked.revision, number=item.revision + 1)
    terms = stricter(Terms.from_json(item.policy), _terms(tx, waiting, asked))
    question, columns = _routed(tx, waiting, asked)
    facts = {
        "interrupt_id": asked.interrupt_id,
        "reworded": _is_reworded(tx, item, asked),
        **_source(waiting),
        **_kind(tx, item, asked.question, terms),
        **item_words.words(question, terms, learned.before),
        **item_terms.bound(terms),
        **address(item, columns),
    }
    revised = revise(tx, item, AskedAgain(revision=revision, facts=facts), actor=waiting.requester)
    learned.fresh |= secrets.learn(tx, revised)


def address(item: Item, columns: Mapping[str, Any]) -> dict[str, Any]:
    """The recipient of a revised workspace review: the registry may have changed since. The item stays that of its
    first run, and an escalated one stays with the people that it was escalated to."""
    kept = {"entity_type", "entity_id", "workspace_run_id"} if item.workspace_run_id else set[str]()
    kept |= {"recipient"} if item.policy.get("escalated") else set()
    return {name: value for name, value in columns.items() if name not in kept}


def _source(waiting: Waiting) -> dict[str, Any]:
    """The columns of an item that identify the asking run, if there is one."""
    if waiting.run is None:
        return {}
    return {"run_id": waiting.run.id, "graph_id": waiting.graph_id, "assistant_id": waiting.assistant_id}


def _kind(tx: Tx, item: Item, question: Question, terms: Terms) -> dict[str, Any]:
    """The columns of an item whose question has changed its kind: the right to decide depends on that. Its deadlines
    start now."""
    if (item.dialect, item.type) == (question.dialect, question.type):
        return {}
    return {"dialect": question.dialect, "type": question.type, **item_terms.timed(terms, tx.now(), item.expires_at)}


def _doubted(tx: Tx, waiting: Waiting, pending: Mapping[str, Any], by_gates: Mapping[str, Item]) -> Grant | None:
    """The grant of the call that the gate asks about here. The gate recorded the interrupt id before it asked: any
    other question that looks like a doubt is an ordinary one, and becomes an item."""
    value = pending.get("value")
    if not isinstance(value, dict) or value.get("kind") != IN_DOUBT:
        return None
    grant = grants.get(tx, str(value.get("grant_id")))
    if grant is None or grant.doubt_id != pending["id"] or not _is_asker(waiting, grant, by_gates):
        return None
    call = Call(grant.thread_id, grant.call_id, grant.tool, value.get("args"), "", origin=grant.origin)
    named = (value.get("item_id"), value.get("tool_call_id"), value.get("name"))
    matches = named == (grant.item_id, grant.call_id, grant.tool) and covers(grant, tx.tenant, call)
    return grant if matches else None


def _is_asker(waiting: Waiting, grant: Grant, by_gates: Mapping[str, Item]) -> bool:
    """Whether the grant is one of this thread, or of a gate on it."""
    if (grant.thread_id, grant.origin) == (waiting.thread_id, waiting.origin):
        return True
    return any(item.id == grant.item_id for item in by_gates.values())


def _note_doubt(tx: Tx, interrupt_id: str, grant: Grant) -> None:
    """The gate asks about the outcome of an interrupted call: the item that allowed it shows that, and takes the
    answer."""
    item = items.lock(tx, grant.item_id)
    if item is None:
        return
    if grant.status is GrantStatus.STARTED:
        changes.apply(tx, SYSTEM, item, Doubted(asked_in=interrupt_id))
    else:
        _resend_outcome(tx, item, interrupt_id, grant)


def _resend_outcome(tx: Tx, item: Item, interrupt_id: str, grant: Grant) -> None:
    """The run asked before a person settled the doubt, and stopped after it: delivers the recorded outcome, so that
    nobody is asked twice about a call that may run again by now."""
    if answers.standing(tx, str(item.thread_id), interrupt_id) or interrupt_id in _answers_in_outbox(tx, item):
        return
    result = grant.result if isinstance(grant.result, dict) else {}
    outcome = "run_again" if grant.status is GrantStatus.REVOKED else result.get("doubt", "done")
    deliver(tx, item, interrupt_id, {"outcome": outcome, "notes": result.get("notes")})


def _answers_in_outbox(tx: Tx, item: Item) -> set[str]:
    """The questions whose answers are in the outbox."""
    return {jsontext.load(body)["interrupt_id"] for body in deliveries.bodies_under_way(tx, item.subject)}


def deliver(tx: Tx, item: Item, interrupt_id: str, value: Json) -> None:
    message = resumption(item, interrupt_id, value)
    body = jsontext.dump(message.body)
    deliveries.add(tx, message.kind, subject=item.subject, target=message.target, body=body, delivery_id=message.id)


def resumption(
    item: Item, interrupt_id: str, value: Json, *, wait: timedelta = timedelta(), said: Sequence[Json] = ()
) -> Message:
    """The message to the waiting run, here or on another deployment, with the comments on the question. Without a
    value, it ends the thread."""
    body = {"item_id": item.id, "thread_id": item.thread_id, "run_id": item.run_id, "gated": item.gated}
    payload = {**body, "interrupt_id": interrupt_id, "value": value}
    payload |= {"comments": list(said)} if said else {}
    if item.origin is not None:
        return Message(new_id(), GATE_ANSWER, f"thread:{item.thread_id}", payload, wait)
    if item.remote:
        return Message(new_id(), ANSWER, f"deployment:{item.deployment}", payload, wait)
    return Message(new_id(), RESUME, f"thread:{item.thread_id}", payload, wait)
