"""Sample data: a history for a demonstration, whose items are closed and marked as samples.

The timeline records that sample data was added or removed, and nothing about its items: the audit log never vouches for
a decision that nobody made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from assent.identity.model.access import Principal, Scope
from assent.kernel import events
from assent.kernel.canonical import Json
from assent.kernel.ids import new_id
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.review.dialects import recognise
from assent.review.model.calls.kinds import kind_of
from assent.review.model.decisions import DECISION, REVISION_REQUEST, Decision
from assent.review.model.items import HERE, Execution, Item, ItemStatus, Revision
from assent.review.model.questions import Interrupt, Verb, Verdict, outcome
from assent.review.rows import decisions, item_removal, items
from assent.review.rows import samples as rows
from assent.review.search import item_terms, item_words

SUBJECT = "sample data"
PREFIX = "sample-"
"""Begins the ids of the people and agents of sample data, who exist nowhere else."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One call of the past. `age` is the time since it was asked. Without a verb nobody decided, and it expired.
    `sent_back` is the note with which a revision was requested before the decision."""

    tool: str
    args: Json
    agent: str
    age: timedelta
    wait: timedelta
    reviewer: str
    verb: Verb | None
    edited: Json = None
    message: str | None = None
    sent_back: str | None = None


class Samples:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def count(self, caller: Principal) -> int:
        caller.require(Scope.ITEMS_READ)
        return await self._store.read(caller.tenant, rows.count)

    async def add(self, tenant: str, samples: Iterable[Sample]) -> int:
        """At the start of a demonstration; there is no other way to add them."""
        return await self._store.write(tenant, _add, list(samples))

    async def remove(self, caller: Principal) -> int:
        """Removes all of them, and returns how many there were."""
        caller.require(Scope.ADMIN)
        return await self._store.write(caller.tenant, _remove, caller)


def _add(tx: Tx, samples: list[Sample]) -> int:
    if not samples or rows.count(tx):
        return 0
    for sample in samples:
        _insert(tx, sample)
    events.append(tx, "system", "sample.added", SUBJECT, {"items": len(samples)})
    return len(samples)


def _remove(tx: Tx, caller: Principal) -> int:
    ids = rows.ids(tx)
    for item_id in ids:
        item_removal.remove(tx, item_id)
    if ids:
        events.append(tx, caller, "sample.removed", SUBJECT, {"items": len(ids)})
    return len(ids)


def _insert(tx: Tx, sample: Sample) -> None:
    """Its words are indexed for the search by `Backfill`, in the background."""
    value = {"type": "tool_approval", "name": sample.tool, "args": sample.args, "tool_call_id": "sample"}
    interrupt_id, requester = f"{PREFIX}{new_id()}", f"agent:{PREFIX}{sample.agent}"
    question, revision = recognise(Interrupt(interrupt_id, value)), Revision(1, value, author=requester)
    terms = item_terms.judged(tx, question, graph_id=sample.agent, requester=requester, gated=True)
    item = items.insert(
        tx,
        new_id(),
        revision,
        type=question.type,
        dialect=question.dialect,
        deployment=HERE,
        graph_id=sample.agent,
        interrupt_id=interrupt_id,
        requester=requester,
        secrets=[],
        **item_words.words(question, terms),
        **item_terms.bound(terms),
    )
    rows.close(tx, item, kind=kind_of(sample.tool, sample.args) or item.kind, **_closed(tx, sample))
    _decide(tx, sample, item)


def _closed(tx: Tx, sample: Sample) -> dict[str, Any]:
    asked_at = tx.now() - sample.age
    decided_at = asked_at + sample.wait
    times = {"created_at": asked_at, "updated_at": decided_at}
    if sample.verb is None:
        return {**times, "status": ItemStatus.EXPIRED, "resolution": "expired"}
    result = outcome([_verdict(sample)])
    ran = result.status == ItemStatus.APPROVED
    decided = {"decided_at": decided_at, "decided_by": f"reviewer:{PREFIX}{sample.reviewer}"}
    decided |= {"status": ItemStatus(result.status), "resolution": result.resolution}
    return {**times, **decided, "execution": Execution.DONE if ran else None}


def _decide(tx: Tx, sample: Sample, item: Item) -> None:
    asked_at = tx.now() - sample.age
    if sample.sent_back is not None:
        _record(tx, sample, item, REVISION_REQUEST, (), asked_at + sample.wait / 2)
    if sample.verb is not None:
        _record(tx, sample, item, DECISION, (_verdict(sample),), asked_at + sample.wait)


def _record(tx: Tx, sample: Sample, item: Item, kind: str, verdicts: tuple[Verdict, ...], at: Any) -> None:
    final = kind == DECISION
    decisions.insert(
        tx,
        Decision(
            id=new_id(),
            item_id=item.id,
            revision=1,
            hash=item.hash,
            kind=kind,
            verdicts=verdicts,
            notes=None if final else sample.sent_back,
            actor=f"reviewer:{PREFIX}{sample.reviewer}",
            via="web",
            standing=final,
            closes=final,
            delivery_id=None,
            at=at,
        ),
    )


def _verdict(sample: Sample) -> Verdict:
    assert sample.verb is not None
    return Verdict("0", sample.verb, args=sample.edited, message=sample.message)
