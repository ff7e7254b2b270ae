"""An item: one question to a person, from creation to its end.

The question is stored in immutable revisions, each with a hash; the verdicts in immutable decisions. The item itself
only has the current state. Every change of its status follows the one table below.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from assent.errors import InvalidTransition
from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.review.model.questions import Action, Question, Resolution, Verb, Verdict

HERE = "local"
"""The deployment of this server."""

LONGEST_GRACE = timedelta(minutes=5)
"""The longest grace period in which a decision can be undone."""


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
"""The allowed transitions. Undo within the grace period is not one of them: it dismisses the decision."""


class Execution(StrEnum):
    """The progress of an approved call, as the gate reports it."""

    GRANTED = "granted"
    STARTED = "started"
    DONE = "done"
    FAILED = "failed"
    IN_DOUBT = "in_doubt"
    ABANDONED = "abandoned"


class Due(StrEnum):
    """The action at the next deadline of an undecided item."""

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
    kind: str
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
    reworded: bool
    doubt_id: str | None
    requester: str
    recipient: str | None
    entity_type: str | None
    entity_id: str | None
    dedupe_key: str | None
    callback: str | None
    follows: str | None
    approvals: int
    owner: str | None
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
    sample: bool = False
    called: str = ""
    """The names of its calls, if a template gave the title."""
    workspace_run_id: str | None = None
    """The run whose work it reviews."""
    origin: str | None = None
    """The agent, deployment and thread of a gate elsewhere that asked it."""

    routing: Mapping[str, Any] | None = None
    """How the recipient of a workspace review was found."""

    @property
    def held(self) -> bool:
        """Created through the API: it waits here for its resubmission, while an interrupt is resumed with the notes."""
        return self.interrupt_id is None

    @property
    def remote(self) -> bool:
        """Asked elsewhere: by an agent on another deployment, or by a gate in a process of its own."""
        return self.deployment != HERE or self.origin is not None

    @property
    def called_here(self) -> bool:
        """Whether runs of this server make its calls, so that a standing approval names them."""
        return not (self.held or self.remote)

    @property
    def subject(self) -> str:
        """Its name in the timeline and the outbox."""
        return f"item:{self.id}"

    def moved(self, to: ItemStatus) -> ItemStatus:
        """The new status, or `InvalidTransition`."""
        if to not in TRANSITIONS[self.status]:
            facts: dict[str, Any] = {"from": self.status, "to": to, "allowed": list(TRANSITIONS[self.status])}
            raise InvalidTransition(f"the item is {self.status} and cannot become {to}", **facts)
        return to


@dataclass(frozen=True, slots=True)
class Revision:
    """An immutable version of the question. `edits` are a reviewer's changes, by the key of the action."""

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
    """The question with the agent's ids of its calls, and with a reviewer's edits applied."""
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
    """The verdicts for the agent: approving an edited action becomes an edit of the original one."""
    return tuple(_asked(verdict, revision.edits.get(verdict.key)) for verdict in verdicts)


def _asked(verdict: Verdict, edit: Mapping[str, Json] | None) -> Verdict:
    if edit is None or verdict.verb is not Verb.APPROVE:
        return verdict
    return Verdict(verdict.key, Verb.EDIT, args=edit["args"], name=edit.get("name"))


def edits_in(verdicts: Iterable[Verdict], revision: Revision) -> dict[str, dict[str, Json]]:
    """All edits after these verdicts; with a name only if it changed."""
    made = {verdict.key: _edit(verdict) for verdict in verdicts if verdict.verb is Verb.EDIT}
    return {**{key: dict(edit) for key, edit in revision.edits.items()}, **made}


def _edit(verdict: Verdict) -> dict[str, Json]:
    return {"args": verdict.args} if verdict.name is None else {"args": verdict.args, "name": verdict.name}


def aligned_calls(question: Question, messages: Json) -> dict[str, str] | None:
    """The agent's own ids of the calls, from its last message with calls: same name, same arguments, same order. None
    unless all match exactly."""
    calls = _last_calls(messages)
    ids: dict[str, str] = {}
    for action in question.actions:
        call = next((candidate for candidate in calls if _is_call(candidate, action)), None)
        if call is None:
            return None
        ids[action.key] = call["id"]
        calls = calls[calls.index(call) + 1 :]
    return ids


def _last_calls(messages: Json) -> list[dict[str, Any]]:
    if not isinstance(messages, list):
        return []
    made = (
        message.get("tool_calls")
        for message in reversed(messages)
        if isinstance(message, dict) and message.get("type") == "ai"
    )
    return [call for call in next(made, None) or [] if isinstance(call, dict)]


def _is_call(call: Mapping[str, Any], action: Action) -> bool:
    named = call.get("name") == action.name and isinstance(call.get("id"), str)
    return named and canonical.same(call.get("args"), action.args)
