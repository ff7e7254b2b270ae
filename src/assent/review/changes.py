"""Applies an event to an item: saves the item and its effects in the caller's transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from assent.kernel import events, jsontext
from assent.kernel.events import Actor
from assent.kernel.store.transaction import Tx
from assent.outbox import deliveries
from assent.review.model import lifecycle
from assent.review.model.items import Item
from assent.review.model.lifecycle import (
    AddRevision,
    Deliver,
    DismissDecisions,
    DropDoubts,
    Event,
    IssueGrants,
    RecordDecision,
    RevokeGrants,
    Tell,
)
from assent.review.rows import decisions, grants, items
from assent.review.search import item_index

_SEARCHED = ("revision", "type", "title", "summary", "policy", "decided_by")
"""A change of these changes the words of the item in the full-text index."""


def apply(tx: Tx, actor: Actor | str, item: Item, event: Event) -> Item:
    """The caller has locked `item`. The timeline is written last, because that locks the tenant's event chain."""
    after, effects = lifecycle.step(item, event, tx.now())
    for effect in effects:
        if not isinstance(effect, Tell):
            _WRITE[type(effect)](tx, after, effect)
    saved = items.save(tx, item, after)
    if any(getattr(saved, name) != getattr(item, name) for name in _SEARCHED):
        saved = item_index.index(tx, saved)
    for effect in effects:
        if isinstance(effect, Tell):
            events.append(tx, actor, effect.kind, item.subject, dict(effect.told))
    return saved


def _add_revision(tx: Tx, item: Item, effect: AddRevision) -> None:
    items.add_revision(tx, item.id, effect.revision)


def _record(tx: Tx, item: Item, effect: RecordDecision) -> None:
    decisions.insert(tx, effect.decision)


def _dismiss(tx: Tx, item: Item, effect: DismissDecisions) -> None:
    if effect.only is not None:
        decisions.dismiss_one(tx, effect.only)
    elif effect.closing:
        decisions.dismiss_closing(tx, item.id)
    else:
        decisions.dismiss(tx, item.id)


def _issue(tx: Tx, item: Item, effect: IssueGrants) -> None:
    for permit in effect.permits:
        grants.insert(tx, item_id=item.id, revision=item.revision, **asdict(permit))


def _revoke(tx: Tx, item: Item, effect: RevokeGrants) -> None:
    grants.revoke_of_item(tx, item.id)


def _drop_doubts(tx: Tx, item: Item, effect: DropDoubts) -> None:
    grants.drop_doubts(tx, item.id)


def _deliver(tx: Tx, item: Item, effect: Deliver) -> None:
    message = effect.message
    deliveries.add(
        tx,
        message.kind,
        subject=item.subject,
        target=message.target,
        body=jsontext.dump(message.body),
        wait=message.wait,
        delivery_id=message.id,
    )


_WRITE: Mapping[type, Callable[[Tx, Item, Any], None]] = {
    AddRevision: _add_revision,
    RecordDecision: _record,
    DismissDecisions: _dismiss,
    IssueGrants: _issue,
    RevokeGrants: _revoke,
    DropDoubts: _drop_doubts,
    Deliver: _deliver,
}
