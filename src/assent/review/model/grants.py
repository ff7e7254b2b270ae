"""A grant: one-use permission to run exactly one call with exactly these arguments.

A decision issues it, and the gate at the tool consumes it before the effect. Its hash covers everything that the person
approved, so a call that differs in anything has no grant, regardless of the graph's state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from assent.kernel import canonical
from assent.kernel.canonical import Json

GATE = "assent"
"""The value of `gate` in the gate's interrupts, which makes them gated under any policy."""

MARKS = "x-assent"
"""The keyword of an answer's schema that has the gate's marks, if the value of the question is LangChain's own."""

ITEM = "item_id"
"""The mark that names the item of a question which a gate elsewhere raises."""

GATE_CHANNEL = "assent_gate"
"""The private channel that marks a graph with a gate."""


class GrantStatus(StrEnum):
    """`started` is written before the effect, `done` or `failed` after it. A grant that a dead attempt left `started`
    is in doubt."""

    GRANTED = "granted"
    STARTED = "started"
    DONE = "done"
    FAILED = "failed"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class Grant:
    id: str
    item_id: str
    revision: int
    decision_id: str
    thread_id: str
    call_id: str
    tool: str
    hash: str
    status: GrantStatus
    not_before: datetime
    expires_at: datetime
    task: str | None
    doubt_id: str | None
    run_id: str | None
    attempt: int | None
    result: Json
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    origin: str | None = None
    """The process elsewhere that may use it; None for a gate of this server."""

    taken_by: str | None = None
    """The attempt elsewhere that has started the call."""

    alive_until: datetime | None = None
    """When that attempt counts as dead, unless its next heartbeat arrives."""

    def usable(self, now: datetime) -> bool:
        return self.status is GrantStatus.GRANTED and self.not_before <= now < self.expires_at


@dataclass(frozen=True, slots=True)
class Call:
    """A call that an agent is about to make. `task` is the graph's own id of the task: a retry of the same task, in any
    run, is the same call. `idempotent`: its tool uses the grant's id as an idempotency key. `unedited`: the agent's own
    arguments, if a person has edited them."""

    thread_id: str
    call_id: str
    tool: str
    args: Json
    task: str
    idempotent: bool = False
    graph: str = ""
    origin: str | None = None
    """The process elsewhere that makes the call: its agent, deployment and thread. None for a gate of this server."""
    unedited: Json = None

    @property
    def mark(self) -> str:
        """Identifies the call among those of its task, as the agent made it."""
        return mark(self.call_id, self.tool, self.args if self.unedited is None else self.unedited)


class Passing(StrEnum):
    """The gate's next step for a call."""

    GO = "go"
    REPEAT = "repeat"  # it already ran: return its recorded result
    WAIT = "wait"  # it started and raised a question of its own, not yet answered
    BUSY = "busy"  # another attempt is making it now
    IN_DOUBT = "in_doubt"
    ASK = "ask"


@dataclass(frozen=True, slots=True)
class Passage:
    passing: Passing
    grant: Grant | None = None
    reason: str | None = None
    doubtful: bool = False
    """Whether an equal call was started before and may have run: then only a person's decision lets it pass."""

    comments: str | None = None
    """The comments of reviewers that reach the agent with the result of the call."""


def seal(
    *,
    tenant: str,
    thread_id: str,
    item_id: str,
    revision: int,
    tool: str,
    args: Json,
    call_id: str,
    origin: str | None = None,
) -> str:
    """The hash of the approved call."""
    agreed = {"tenant": tenant, "thread": thread_id, "item": item_id, "revision": revision}
    agreed |= {} if origin is None else {"origin": origin}
    return canonical.digest({**agreed, "tool": tool, "args": args, "call_id": call_id})


def marks_of(value: Json, schema: Json) -> Mapping[str, Json] | None:
    """The gate's marks on a question, in its value or in the schema of its answer; None on any other question."""
    beside = schema.get(MARKS) if isinstance(schema, dict) else None
    candidates = (part for part in (value, beside) if isinstance(part, dict))
    return next((part for part in candidates if part.get("gate") == GATE), None)


def call_asked(value: Json, schema: Json) -> tuple[Json, Json, Json]:
    """The call id, the tool and the arguments that a question of the gate is about."""
    marks = marks_of(value, schema) or {}
    requests = value.get("action_requests") if isinstance(value, dict) else None
    shown = requests[0] if isinstance(requests, list) and requests and isinstance(requests[0], dict) else marks
    return marks.get("tool_call_id"), shown.get("name"), shown.get("args")


def mark(call_id: Json, tool: Json, args: Json) -> str:
    """Distinguishes the calls of one task. Arguments that are not JSON are left out: no grant can cover them."""
    try:
        return canonical.digest([call_id, tool, args])
    except canonical.NotJson:
        return canonical.digest([call_id, tool])


def covers(grant: Grant, tenant: str, call: Call) -> bool:
    """Whether this grant is for exactly this call."""
    hash = seal(
        tenant=tenant,
        thread_id=call.thread_id,
        item_id=grant.item_id,
        revision=grant.revision,
        tool=call.tool,
        args=call.args,
        call_id=call.call_id,
        origin=call.origin,
    )
    return hash == grant.hash
