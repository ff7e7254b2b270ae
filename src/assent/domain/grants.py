"""A grant: one-use permission to run exactly one call with exactly these arguments.

A decision makes it, the gate at the tool consumes it before the effect. Its hash covers everything the person agreed
to, so a call that differs in anything finds no grant, whatever the graph's state says.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from assent.domain import canonical
from assent.domain.canonical import Json

GATE = "assent"
"""What our gate puts into its interrupts under `gate`, so that they are gated whatever a policy says."""

GATE_CHANNEL = "assent_gate"
"""The private channel by which a graph that has our gate in it is known."""


class GrantStatus(StrEnum):
    """`started` stands before the effect, `done` or `failed` after it. What is left `started` by an attempt that is
    gone is in doubt."""

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

    def usable(self, now: datetime) -> bool:
        return self.status is GrantStatus.GRANTED and self.not_before <= now < self.expires_at


@dataclass(frozen=True, slots=True)
class Call:
    """A call that an agent is about to make. `task` is the graph's own name for where it is made: a retry of the same
    task, in whatever run, is the same call. `idempotent`: its tool knows a second call by the grant's id."""

    thread_id: str
    call_id: str
    tool: str
    args: Json
    task: str
    idempotent: bool = False


class Passing(StrEnum):
    """What the gate is told about a call."""

    GO = "go"
    REPEAT = "repeat"  # it was made already: its recorded result stands
    IN_DOUBT = "in_doubt"
    ASK = "ask"


@dataclass(frozen=True, slots=True)
class Passage:
    passing: Passing
    grant: Grant | None = None
    reason: str | None = None
    doubtful: bool = False
    """Whether a call just like it was begun before and may have been made: then nothing but a person's word counts."""


def seal(*, tenant: str, thread_id: str, item_id: str, revision: int, tool: str, args: Json, call_id: str) -> str:
    """The hash of what was agreed to."""
    agreed = {"tenant": tenant, "thread": thread_id, "item": item_id, "revision": revision}
    return canonical.digest({**agreed, "tool": tool, "args": args, "call_id": call_id})


def covers(grant: Grant, tenant: str, call: Call) -> bool:
    """Whether this grant speaks of exactly this call."""
    found = seal(
        tenant=tenant,
        thread_id=call.thread_id,
        item_id=grant.item_id,
        revision=grant.revision,
        tool=call.tool,
        args=call.args,
        call_id=call.call_id,
    )
    return found == grant.hash
