"""An item: one question to a person, from the moment an agent asks to its end.

What is asked is kept in immutable revisions, each with a hash; what people said to them in immutable decisions. The
item itself only says where it stands. Every change of its status passes through the one table below.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from assent.domain import canonical
from assent.domain.canonical import Json
from assent.domain.questions import Action, Question, Resolution, Verb, Verdict
from assent.errors import InvalidTransition

HERE = "local"
"""The deployment that this server itself is."""

LONGEST_GRACE = timedelta(minutes=5)
"""For how long, at most, a decision can be taken back."""


class ItemStatus(StrEnum):
    PENDING = "PENDING"
    REVISION_REQUESTED = "REVISION_REQUESTED"
    APPROVED = "APPROVED"
    REJECTED = "REJECTED"
    EXPIRED = "EXPIRED"
    CANCELLED = "CANCELLED"

    @property
    def open(self) -> bool:
        return self in _OPEN


_OPEN = frozenset({ItemStatus.PENDING, ItemStatus.REVISION_REQUESTED})
_ENDS = (ItemStatus.APPROVED, ItemStatus.REJECTED, ItemStatus.EXPIRED, ItemStatus.CANCELLED)
TRANSITIONS: Mapping[ItemStatus, tuple[ItemStatus, ...]] = {
    ItemStatus.PENDING: (*_ENDS, ItemStatus.REVISION_REQUESTED),
    ItemStatus.REVISION_REQUESTED: (*_ENDS, ItemStatus.PENDING),
    **dict.fromkeys(_ENDS, ()),
}
"""Where an item can go. Taking a decision back within its grace is not in here: it makes the decision undone."""


class Execution(StrEnum):
    """How far what was approved has come, as the gate tells it."""

    GRANTED = "granted"
    STARTED = "started"
    DONE = "done"
    FAILED = "failed"
    IN_DOUBT = "in_doubt"
    ABANDONED = "abandoned"


class Due(StrEnum):
    """What time does to an item that nobody decides."""

    REMIND = "remind"
    ESCALATE = "escalate"
    EXPIRE = "expire"


@dataclass(frozen=True, slots=True)
class Item:
    id: str
    status: ItemStatus
    resolution: Resolution | None
    revision: int
    hash: str
    type: str
    dialect: str
    title: str
    summary: str
    gated: bool
    risk: str | None
    policy: Mapping[str, Any]
    execution: Execution | None
    deployment: str
    graph_id: str | None
    assistant_id: str | None
    thread_id: str | None
    run_id: str | None
    interrupt_id: str | None
    doubt_id: str | None
    requester: str
    recipient: str | None
    entity_type: str | None
    entity_id: str | None
    dedupe_key: str | None
    callback: str | None
    follows: str | None
    approvals: int
    claimed_by: str | None
    claimed_until: datetime | None
    created_at: datetime
    updated_at: datetime
    decided_at: datetime | None
    decided_by: str | None
    undo_until: datetime | None
    expires_at: datetime | None
    due_at: datetime | None
    due: Due | None

    @property
    def held(self) -> bool:
        """Made through the API: it waits here for its resubmission, where an interrupt is resumed with the notes."""
        return self.interrupt_id is None

    @property
    def subject(self) -> str:
        """How the timeline and the outbox name it."""
        return f"item:{self.id}"

    def moved(self, to: ItemStatus) -> ItemStatus:
        """The new status, or `InvalidTransition`."""
        if to not in TRANSITIONS[self.status]:
            facts: dict[str, Any] = {"from": self.status, "to": to, "allowed": list(TRANSITIONS[self.status])}
            raise InvalidTransition(f"the item is {self.status}, it cannot become {to}", **facts)
        return to


@dataclass(frozen=True, slots=True)
class Revision:
    """What is asked, as it stands once and for all. `edits` are a reviewer's changes, by the key of the action."""

    number: int
    asked: Json
    response_schema: Json = None
    calls: Mapping[str, str] = field(default_factory=dict)
    edits: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    author: str = "system"
    notes: str | None = None
    created_at: datetime | None = None

    @property
    def hash(self) -> str:
        return canonical.digest([self.asked, self.response_schema, dict(self.calls), dict(self.edits)])


def as_revised(question: Question, revision: Revision) -> Question:
    """The question with the agent's ids for its calls, and with a reviewer's changes in place of what they changed."""
    actions = (_revised(action, revision) for action in question.actions)
    return replace(question, actions=tuple(actions))


def _revised(action: Action, revision: Revision) -> Action:
    call_id = action.call_id or revision.calls.get(action.key)
    edit = revision.edits.get(action.key)
    if edit is None:
        return replace(action, call_id=call_id)
    args, name = edit["args"], edit.get("name") or action.name
    return replace(action, call_id=call_id, name=name, args=args, args_text=canonical.text(args))


def as_asked(verdicts: Iterable[Verdict], revision: Revision) -> tuple[Verdict, ...]:
    """The verdicts as the agent must hear them: to approve what a reviewer has changed is to edit what was asked."""
    return tuple(_asked(verdict, revision.edits.get(verdict.key)) for verdict in verdicts)


def _asked(verdict: Verdict, edit: Mapping[str, Json] | None) -> Verdict:
    if edit is None or verdict.verb is not Verb.APPROVE:
        return verdict
    return Verdict(verdict.key, Verb.EDIT, args=edit["args"], name=edit.get("name"))


def edits_in(verdicts: Iterable[Verdict], revision: Revision) -> dict[str, dict[str, Json]]:
    """What stands changed after these verdicts; a changed name only where there is one."""
    made = {one.key: _edit(one) for one in verdicts if one.verb is Verb.EDIT}
    return {**{key: dict(edit) for key, edit in revision.edits.items()}, **made}


def _edit(verdict: Verdict) -> dict[str, Json]:
    return {"args": verdict.args} if verdict.name is None else {"args": verdict.args, "name": verdict.name}


def aligned_calls(question: Question, messages: Json) -> dict[str, str] | None:
    """The agent's own ids of the calls asked about, from the last message in which it made calls: same name, same
    arguments, same order. None where they are not exactly there."""
    calls = _last_calls(messages)
    found: dict[str, str] = {}
    for action in question.actions:
        call = next((one for one in calls if _is_call(one, action)), None)
        if call is None:
            return None
        found[action.key] = call["id"]
        calls = calls[calls.index(call) + 1 :]
    return found


def _last_calls(messages: Json) -> list[dict[str, Any]]:
    if not isinstance(messages, list):
        return []
    made = (one.get("tool_calls") for one in reversed(messages) if isinstance(one, dict) and one.get("type") == "ai")
    return [call for call in next(made, None) or [] if isinstance(call, dict)]


def _is_call(call: Mapping[str, Any], action: Action) -> bool:
    named = call.get("name") == action.name and isinstance(call.get("id"), str)
    return named and canonical.same(call.get("args"), action.args)
