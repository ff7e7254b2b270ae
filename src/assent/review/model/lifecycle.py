"""The lifecycle of an item, as one pure function: `step(item, event, now)` returns the changed item and the effects.

Use cases check rights, policies and dialects, and describe each change as an event. `LIFE` defines in which status each
event may occur and which status follows. `review/changes.py` saves the item and the effects in the transaction of the
use case. No other code changes an item's status, resolution, revision, approvals, deadlines or execution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeAlias

from assent.errors import InvalidTransition
from assent.kernel.canonical import Json
from assent.review.model.decisions import Decision
from assent.review.model.items import TRANSITIONS, Due, Execution, Item, ItemStatus, Revision
from assent.review.model.questions import Resolution
from assent.review.model.search.terms import Terms, next_due

PENDING, REVISION_REQUESTED = ItemStatus.PENDING, ItemStatus.REVISION_REQUESTED
APPROVED, REJECTED = ItemStatus.APPROVED, ItemStatus.REJECTED
CANCELLED, EXPIRED = ItemStatus.CANCELLED, ItemStatus.EXPIRED

Facts = Mapping[str, Any]
"""Fields of the item that come from its question, terms and run: title, policy, risk, run and others."""


# Effects


@dataclass(frozen=True, slots=True)
class AddRevision:
    revision: Revision


@dataclass(frozen=True, slots=True)
class RecordDecision:
    decision: Decision


@dataclass(frozen=True, slots=True)
class DismissDecisions:
    """All of them, one, or the request for a revision that a decision overrides."""

    only: str | None = None
    closing: bool = False


@dataclass(frozen=True, slots=True)
class Permit:
    """A grant to issue: for one call, usable from `not_before` until `expires_at`."""

    decision_id: str
    thread_id: str
    call_id: str
    tool: str
    hash: str
    not_before: datetime
    expires_at: datetime
    origin: str | None = None


@dataclass(frozen=True, slots=True)
class IssueGrants:
    permits: tuple[Permit, ...]


@dataclass(frozen=True, slots=True)
class RevokeGrants:
    """Revokes the unused ones."""


@dataclass(frozen=True, slots=True)
class DropDoubts:
    """No question waits for the outcome of the item's calls any longer."""


@dataclass(frozen=True, slots=True)
class Message:
    """A payload for the outbox: to the waiting run, or to the callback of a request."""

    id: str
    kind: str
    target: str
    body: Json
    wait: timedelta = timedelta()


@dataclass(frozen=True, slots=True)
class Deliver:
    message: Message


@dataclass(frozen=True, slots=True)
class Tell:
    """An event of the timeline."""

    kind: str
    told: Facts


Effect: TypeAlias = (
    AddRevision | RecordDecision | DismissDecisions | IssueGrants | RevokeGrants | DropDoubts | Deliver | Tell
)


class Step(NamedTuple):
    item: Item
    effects: tuple[Effect, ...]


# Events


@dataclass(frozen=True, slots=True, kw_only=True)
class Revised:
    revision: Revision
    facts: Facts = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedAgain(Revised):
    """The agent asks something else under the same item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resubmitted(Revised):
    """The requester answers a request for a revision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited(Revised):
    """A reviewer changes the arguments, or undoes such a change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Different terms apply to the same question."""

    facts: Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreed:
    """One of several required approvals was given."""

    decision: Decision
    approvals: int
    told: Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Recounted:
    """An approval of an open item was undone or retracted."""

    decision_id: str
    approvals: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """The decision that closes the item."""

    decision: Decision
    status: ItemStatus
    resolution: Resolution
    approvals: int
    undo_until: datetime | None = None
    permits: tuple[Permit, ...] = ()
    message: Message | None = None
    told: Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionRequested:
    decision: Decision
    undo_until: datetime | None
    message: Message | None
    told: Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Reopened:
    """The decision was undone, retracted or stopped before it took effect."""

    decision_id: str
    approvals: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """The item closes without a decision: withdrawn, superseded, or its thread ended."""

    resolution: Resolution
    notes: str | None = None
    message: Message | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lapsed(Closed):
    """The deadline passed without a decision."""

    resolution: Resolution = Resolution.EXPIRED


@dataclass(frozen=True, slots=True, kw_only=True)
class Overtaken:
    """The thread continued before the decision reached it."""

    decision_id: str
    resolution: Resolution
    begun: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """The author of the decision lost the right to decide after its delivery; unused grants are revoked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reminded:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Escalated:
    recipient: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    """The gate reports the progress of an approved call. `others`: more calls of the item are in doubt."""

    execution: Execution
    others: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Unobserved:
    """The answer reached a graph without a gate: the outcome of the call is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubted:
    """A call was started and its process is gone. `asked_in` is the question about its outcome."""

    asked_in: str | None = None
    told: Facts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A person records the outcome of a call in doubt. `others`: more calls of the item are in doubt."""

    execution: Execution
    others: bool
    message: Message | None
    told: Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Unasked:
    """The thread ended, and with it the question about the outcome of a call. The call stays in doubt."""

    resolution: Resolution


Event: TypeAlias = (
    AskedAgain
    | Resubmitted
    | Edited
    | Judged
    | Agreed
    | Recounted
    | Decided
    | RevisionRequested
    | Reopened
    | Closed
    | Lapsed
    | Overtaken
    | Recalled
    | Reminded
    | Escalated
    | Executed
    | Unobserved
    | Doubted
    | Settled
    | Unasked
)


def step(item: Item, event: Event, now: datetime) -> Step:
    """Applies the event to the item; raises `InvalidTransition` if it cannot occur in the item's status."""
    rule = LIFE[type(event)]
    if item.status not in rule.starts:
        to, allowed = rule.ends[0] if rule.ends else item.status, list(TRANSITIONS[item.status])
        facts: dict[str, Any] = {"from": item.status, "to": to, "allowed": allowed}
        raise InvalidTransition(f"the item is {item.status} and cannot be {rule.name}", **facts)
    return rule.follow(item, event, now)


# The consequences of each event


def _revised(item: Item, event: Revised, status: ItemStatus, kind: str) -> Step:
    revision = event.revision
    details = {"revision": revision.number, "hash": revision.hash, "notes": revision.notes}
    fields = {"status": status, "revision": revision.number, "hash": revision.hash, "approvals": 0, **event.facts}
    return Step(replace(item, **fields), (DismissDecisions(), AddRevision(revision), Tell(kind, details)))


def _asked_again(item: Item, event: AskedAgain, now: datetime) -> Step:
    return _revised(item, event, PENDING, "item.revised")


def _resubmitted(item: Item, event: Resubmitted, now: datetime) -> Step:
    return _revised(item, event, PENDING, "item.resubmitted")


def _edited(item: Item, event: Edited, now: datetime) -> Step:
    return _revised(item, event, item.status, "item.edited")


def _judged(item: Item, event: Judged, now: datetime) -> Step:
    return Step(replace(item, **event.facts), ())


def _agreed(item: Item, event: Agreed, now: datetime) -> Step:
    effects = (*_overriding(item), RecordDecision(event.decision), Tell("item.agreed", event.told))
    return Step(replace(item, approvals=event.approvals), effects)


def _recounted(item: Item, event: Recounted, now: datetime) -> Step:
    return Step(replace(item, approvals=event.approvals), (DismissDecisions(only=event.decision_id),))


def _decided(item: Item, event: Decided, now: datetime) -> Step:
    closed = replace(
        item,
        status=event.status,
        resolution=event.resolution,
        approvals=event.approvals,
        decided_at=now,
        decided_by=event.decision.actor,
        undo_until=event.undo_until,
        due_at=None,
        due=None,
    )
    effects: list[Effect] = [*_overriding(item), *_delivered(event.message), RecordDecision(event.decision)]
    if event.permits and event.status is APPROVED:
        effects.append(IssueGrants(event.permits))
        closed = _executed(closed, Executed(execution=Execution.GRANTED), now).item
    return Step(closed, (*effects, Tell(f"item.{event.status.lower()}", event.told)))


def _revision_requested(item: Item, event: RevisionRequested, now: datetime) -> Step:
    asked = replace(item, status=REVISION_REQUESTED, undo_until=event.undo_until)
    effects = (*_delivered(event.message), RecordDecision(event.decision), Tell("item.revision_requested", event.told))
    return Step(asked, effects)


def _reopened(item: Item, event: Reopened, now: datetime) -> Step:
    due_at, due = next_due(_plan(item), now)
    reopened = replace(
        item,
        status=PENDING,
        resolution=None,
        approvals=event.approvals,
        decided_at=None,
        decided_by=None,
        undo_until=None,
        execution=None,
        due_at=due_at,
        due=due,
    )
    return Step(reopened, (RevokeGrants(), DismissDecisions(only=event.decision_id)))


def _closed(item: Item, event: Closed, now: datetime) -> Step:
    status = EXPIRED if event.resolution is Resolution.EXPIRED else CANCELLED
    closed = replace(item, status=status, resolution=event.resolution, due_at=None, due=None, undo_until=None)
    details = {"resolution": event.resolution, "notes": event.notes}
    return Step(closed, (RevokeGrants(), *_delivered(event.message), Tell(f"item.{status.lower()}", details)))


def _overtaken(item: Item, event: Overtaken, now: datetime) -> Step:
    execution = item.execution if event.begun else None
    left = replace(item, resolution=event.resolution, execution=execution, undo_until=None)
    details = {"decision": event.decision_id, "reason": event.resolution}
    return Step(left, (RevokeGrants(), Tell("item.overtaken", details)))


def _recalled(item: Item, event: Recalled, now: datetime) -> Step:
    execution = None if item.execution is Execution.GRANTED else item.execution
    return Step(replace(item, execution=execution, undo_until=None), (RevokeGrants(),))


def _reminded(item: Item, event: Reminded, now: datetime) -> Step:
    return Step(_with_next_deadline(item, now), (Tell("item.reminded", {"recipient": item.recipient}),))


def _escalated(item: Item, event: Escalated, now: datetime) -> Step:
    widened = replace(item, recipient=event.recipient, policy={**item.policy, "escalated": True})
    details = {"from": item.recipient, "to": event.recipient}
    return Step(_with_next_deadline(widened, now), (Tell("item.escalated", details),))


def _executed(item: Item, event: Executed, now: datetime) -> Step:
    """Only a person ends a doubt, or the call itself before the question about it was raised."""
    stays = item.execution is Execution.IN_DOUBT and (event.others or item.doubt_id is not None)
    return Step(item if stays else replace(item, execution=event.execution), ())


def _unobserved(item: Item, event: Unobserved, now: datetime) -> Step:
    return Step(replace(item, execution=None) if item.execution is Execution.GRANTED else item, ())


def _doubted(item: Item, event: Doubted, now: datetime) -> Step:
    doubted = replace(item, execution=Execution.IN_DOUBT, doubt_id=event.asked_in or item.doubt_id)
    return Step(doubted, () if event.told is None else (Tell("grant.in_doubt", event.told),))


def _settled(item: Item, event: Settled, now: datetime) -> Step:
    execution = Execution.IN_DOUBT if event.others else event.execution
    effects = (*_delivered(event.message), Tell("item.doubt_settled", event.told))
    return Step(replace(item, execution=execution), effects)


def _unasked(item: Item, event: Unasked, now: datetime) -> Step:
    timeline_event = Tell("item.left_in_doubt", {"reason": event.resolution})
    return Step(replace(item, doubt_id=None), (DropDoubts(), timeline_event))


def _overriding(item: Item) -> Iterator[Effect]:
    """A held item may be decided although a revision was requested: that request is dismissed."""
    if item.status is REVISION_REQUESTED:
        yield DismissDecisions(closing=True)


def _delivered(message: Message | None) -> Iterator[Effect]:
    if message is not None:
        yield Deliver(message)


def _plan(item: Item) -> list[tuple[datetime, Due]]:
    return Terms.from_json(item.policy).schedule(item.created_at, item.expires_at)


def _with_next_deadline(item: Item, now: datetime) -> Item:
    due_at, due = next_due(_plan(item), item.due_at or now)
    return replace(item, due_at=due_at, due=due)


# The table


class Rule(NamedTuple):
    """The statuses in which an event can occur, and those that can follow; without `ends` the status stays."""

    name: str
    starts: frozenset[ItemStatus]
    ends: tuple[ItemStatus, ...]
    follow: Callable[[Item, Any, datetime], Step]


_OPEN = frozenset({PENDING, REVISION_REQUESTED})
_CLOSED_BY_DECISION = frozenset({APPROVED, REJECTED, REVISION_REQUESTED})
_ANY = frozenset(ItemStatus)

LIFE: Mapping[type, Rule] = {
    AskedAgain: Rule("asked again", _OPEN, (PENDING,), _asked_again),
    Resubmitted: Rule("resubmitted", frozenset({REVISION_REQUESTED}), (PENDING,), _resubmitted),
    Edited: Rule("edited", _OPEN, (), _edited),
    Judged: Rule("judged again", _OPEN, (), _judged),
    Agreed: Rule("agreed", _OPEN, (), _agreed),
    Recounted: Rule("approval retracted", _OPEN, (), _recounted),
    Decided: Rule("decided", _OPEN, (APPROVED, REJECTED), _decided),
    RevisionRequested: Rule("revision requested", frozenset({PENDING}), (REVISION_REQUESTED,), _revision_requested),
    Reopened: Rule("undone", _CLOSED_BY_DECISION, (PENDING,), _reopened),
    Closed: Rule("cancelled", _OPEN, (CANCELLED,), _closed),
    Lapsed: Rule("expired", _OPEN, (EXPIRED,), _closed),
    Overtaken: Rule("overtaken", _CLOSED_BY_DECISION, (), _overtaken),
    Recalled: Rule("recalled", _CLOSED_BY_DECISION, (), _recalled),
    Reminded: Rule("reminded", _OPEN, (), _reminded),
    Escalated: Rule("escalated", _OPEN, (), _escalated),
    Executed: Rule("executed", _ANY, (), _executed),
    Unobserved: Rule("unobserved", _ANY, (), _unobserved),
    Doubted: Rule("in doubt", _ANY, (), _doubted),
    Settled: Rule("settled", _ANY, (), _settled),
    Unasked: Rule("left in doubt", _ANY, (), _unasked),
}


STATUS_EVENTS = frozenset(
    f"item.{name}"
    for name in (
        *("created", "revised", "resubmitted", "revision_requested", "approved", "rejected", "cancelled", "expired"),
        *("undone", "undeliverable", "approval_retracted"),
    )
)
"""The events after which the status of an item may be another."""


def diagram() -> str:
    """The table as a Mermaid state diagram, for docs/lifecycle.md."""
    lines = ["stateDiagram-v2", "    [*] --> PENDING: asked"]
    for rule in LIFE.values():
        for start in (status for status in ItemStatus if status in rule.starts):
            lines += [f"    {start} --> {end}: {rule.name}" for end in rule.ends if end is not start]
    final = (status for status in ItemStatus if not status.open)
    return "\n".join([*lines, *(f"    {status} --> [*]" for status in final)])
