"""The types of the REST API's responses, as far as callers use them; a test compares them with real ones."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

Status = Literal["PENDING", "REVISION_REQUESTED", "APPROVED", "REJECTED", "EXPIRED", "CANCELLED"]
Verb = Literal["approve", "edit", "reject", "respond", "ignore", "accept", "decline", "cancel"]


class Action(TypedDict):
    """One operation inside an item: a tool call, a question, a form."""

    key: str
    name: str
    args: Any
    args_text: str
    description: str | None
    allowed: list[Verb]
    schema: dict[str, Any] | None
    risk: str | None
    call_id: str | None
    edited: bool


class Verdict(TypedDict, total=False):
    """The verdict on one action; `key` and `verb` are needed."""

    key: str
    verb: Verb
    args: Any
    name: str
    message: str


class Decision(TypedDict):
    id: str
    kind: str
    revision: int
    hash: str
    actions: list[dict[str, Any]]
    notes: str | None
    actor: str
    actor_name: str | None
    via: str
    standing: bool
    closes: bool
    at: str


class Source(TypedDict):
    deployment: str | None
    graph_id: str | None
    assistant_id: str | None
    thread_id: str | None
    run_id: str | None
    interrupt_id: str | None


class Routing(TypedDict):
    """How a workspace review found its recipient."""

    kind: Literal["paired", "system", "unrouted"]
    chain: list[str]
    reason: NotRequired[str]
    advice: NotRequired[str]


class Summary(TypedDict):
    """An item in a list or a change."""

    id: str
    status: Status
    resolution: str | None
    revision: int
    hash: str
    type: str
    kind: str
    dialect: str
    title: str
    summary: str
    gated: bool
    risk: str | None
    requester: str
    recipient: str | None
    routing: Routing | None
    owner: str | None
    approvals: dict[str, int]
    claim: dict[str, Any] | None
    source: Source
    entity: dict[str, str] | None
    created_at: str
    updated_at: str
    expires_at: str | None
    decided_at: str | None
    decided_by: str | None
    undo_until: str | None
    follows: str | None


class Item(Summary):
    """An item with all its details."""

    description: str | None
    actions: list[Action]
    decisions: list[Decision]
    links: list[str]
    comments: int
    can: list[str]
    refusal: str | None
    policy: dict[str, Any]
    delivery: dict[str, Any] | None


class ItemPage(TypedDict):
    items: list[Summary]
    next: str | None
    counts: dict[str, int]


class Comment(TypedDict):
    id: str
    actor: str
    text: str
    at: str


class Event(TypedDict):
    """An entry of a timeline."""

    seq: int
    at: str
    kind: str
    actor: str
    payload: Any


class Change(TypedDict):
    """An event of an item, and the item as it is now. `seq` resumes a watch."""

    seq: int
    kind: str
    actor: str
    at: str
    item: Summary
