"""The types of the schema. Fields of a list row are there at once; the details of an item are read when asked for."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Self, TypeVar

import strawberry
from strawberry.scalars import JSON

from assent.identity.model.agents import RegisteredAgent
from assent.review.model.items import ItemStatus
from assent.surfaces.graphql.context import Told, View

T = TypeVar("T")
Status = strawberry.enum(ItemStatus, name="InboxItemStatus")


def moment(at: str | None) -> datetime | None:
    return None if at is None else datetime.fromisoformat(at)


@strawberry.type
class Source:
    """Where the item comes from: a run, or null everywhere for a request through an API."""

    deployment: str | None
    graph_id: str | None
    assistant_id: str | None
    thread_id: str | None
    run_id: str | None
    interrupt_id: str | None
    remote: JSON | None


@strawberry.type
class Entity:
    type: str | None
    id: str


@strawberry.type
class Claim:
    by: str
    until: datetime | None


@strawberry.type
class Routing:
    """How a workspace review found its recipient: the `kind` is paired, system or unrouted."""

    kind: str
    chain: list[str] = strawberry.field(description="The agents from the one that asks up to the end of its parents.")
    reason: str | None = strawberry.field(description="Why it is unrouted.")
    advice: str | None = strawberry.field(description="The part of the registry to check.")

    @classmethod
    def of(cls, view: View) -> Self:
        return cls(kind=view["kind"], chain=view["chain"], reason=view.get("reason"), advice=view.get("advice"))


@strawberry.type
class Approvals:
    given: int
    needed: int


@strawberry.type
class ItemAction:
    key: str
    name: str
    args: JSON | None
    args_text: str
    description: str | None
    allowed: list[str]
    schema: JSON | None
    risk: str | None
    call_id: str | None
    edited: bool

    @classmethod
    def of(cls, view: View) -> Self:
        return cls(**{name: view[name] for name in cls.__dataclass_fields__})


@strawberry.type
class Decision:
    id: strawberry.ID
    kind: str
    revision: int
    actor: str
    at: datetime | None
    notes: str | None
    via: str
    standing: bool
    actions: JSON

    @classmethod
    def of(cls, view: View) -> Self:
        names = ("id", "kind", "revision", "actor", "notes", "via", "standing", "actions")
        return cls(at=moment(view["at"]), **{name: view[name] for name in names})


@strawberry.type
class Comment:
    id: strawberry.ID
    actor: str
    text: str
    at: datetime | None

    @classmethod
    def of(cls, view: View) -> Self:
        return cls(id=view["id"], actor=view["actor"], text=view["text"], at=moment(view["at"]))


@strawberry.type
class Revision:
    revision: int
    hash: str
    author: str
    notes: str | None
    created_at: datetime | None
    title: str
    description: str | None
    actions: list[ItemAction]

    @classmethod
    def of(cls, view: View) -> Self:
        names = ("revision", "hash", "author", "notes", "title", "description")
        actions = [ItemAction.of(action) for action in view["actions"]]
        created = moment(view["created_at"])
        return cls(created_at=created, actions=actions, **{name: view[name] for name in names})


@strawberry.type
class Activity:
    """An event of the timeline. The payload is null if it was erased."""

    seq: strawberry.ID
    at: datetime | None
    kind: str
    actor: str
    subject: str | None
    payload: JSON | None

    @classmethod
    def of(cls, view: View) -> Self:
        names = {name: view[name] for name in ("kind", "actor", "payload")}
        return cls(seq=strawberry.ID(str(view["seq"])), at=moment(view["at"]), subject=view.get("subject"), **names)


@strawberry.type
class InboxItem:
    view: strawberry.Private[View]
    detailed: strawberry.Private[bool]

    id: strawberry.ID
    status: Status  # type: ignore[valid-type]
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
    confirm: str | None
    execution: str | None
    requester: str
    recipient: str | None
    routing: Routing | None
    owner: str | None
    decided_by: str | None
    follows: strawberry.ID | None
    created_at: datetime | None
    updated_at: datetime | None
    expires_at: datetime | None
    decided_at: datetime | None
    undo_until: datetime | None
    approvals: Approvals
    claim: Claim | None
    source: Source
    entity: Entity | None

    @classmethod
    def of(cls, view: View, *, detailed: bool) -> Self:
        """`detailed`: the view has all details, not only those of a list row."""
        claim, entity, routing = view["claim"], view["entity"], view["routing"]
        return cls(
            view=view,
            detailed=detailed,
            approvals=_picked(Approvals, view["approvals"]),
            claim=Claim(by=claim["by"], until=moment(claim["until"])) if claim else None,
            routing=Routing.of(routing) if routing else None,
            source=_picked(Source, view["source"]),
            entity=_picked(Entity, entity) if entity else None,
            **_plain(view),
        )

    async def _details(self, info: Told) -> View:
        return self.view if self.detailed else await info.context.item(self.id, self.hash)

    @strawberry.field(description="The agent's text.")
    async def description(self, info: Told) -> str | None:
        text: str | None = (await self._details(info))["description"]
        return text

    @strawberry.field(description="The calls or questions, with masked secrets.")
    async def actions(self, info: Told) -> list[ItemAction]:
        return [ItemAction.of(action) for action in (await self._details(info))["actions"]]

    @strawberry.field
    async def decisions(self, info: Told) -> list[Decision]:
        return [Decision.of(decision) for decision in (await self._details(info))["decisions"]]

    @strawberry.field(description="The threads that the item is linked to.")
    async def links(self, info: Told) -> list[str]:
        links: list[str] = (await self._details(info))["links"]
        return links

    @strawberry.field(description="The operations that the caller could do now.")
    async def can(self, info: Told) -> list[str]:
        names: list[str] = (await self._details(info))["can"]
        return names

    @strawberry.field(description="Why the caller may not decide it; null if they may.")
    async def refusal(self, info: Told) -> str | None:
        reason: str | None = (await self._details(info))["refusal"]
        return reason

    @strawberry.field(description="The rules for deciding it.")
    async def policy(self, info: Told) -> JSON:
        return JSON((await self._details(info))["policy"])

    @strawberry.field(description="The value as it was raised; null if it contains a secret.")
    async def payload(self, info: Told) -> JSON | None:
        asked: Any = (await self._details(info))["asked"]
        return asked.get("payload") if isinstance(asked, dict) and self.dialect == "request" else asked

    @strawberry.field(description="The latest delivery of its decision.")
    async def delivery(self, info: Told) -> JSON | None:
        delivery: JSON | None = (await self._details(info))["delivery"]
        return delivery

    @strawberry.field
    async def comments(self, info: Told) -> list[Comment]:
        return [Comment.of(view) for view in await info.context.inbox.comments(info.context.caller, self.id)]

    @strawberry.field
    async def revisions(self, info: Told) -> list[Revision]:
        return [Revision.of(view) for view in await info.context.inbox.revisions(info.context.caller, self.id)]

    @strawberry.field(description="The newest 100 events, oldest first.")
    async def timeline(self, info: Told) -> list[Activity]:
        events = await info.context.inbox.timeline(info.context.caller, self.id, limit=100)
        return [Activity.of(view) for view in events]


def _picked(kind: type[T], view: View) -> T:
    """The fields of the type: a view may get others, which the schema does not have."""
    return kind(**{name: view[name] for name in kind.__dataclass_fields__})  # type: ignore[attr-defined]


def _plain(view: View) -> dict[str, Any]:
    return {name: view[name] for name in _PLAIN} | {name: moment(view[name]) for name in _MOMENTS}


_MOMENTS = ("created_at", "updated_at", "expires_at", "decided_at", "undo_until")
_PLAIN = (
    *("id", "status", "resolution", "revision", "hash", "type", "kind", "dialect", "title", "summary", "gated", "risk"),
    *("confirm", "execution", "requester", "recipient", "owner", "decided_by", "follows"),
)


@strawberry.type
class Counts:
    """Of the same filter without its status; 10,000 means that many or more."""

    pending: int
    resolved: int


@strawberry.type
class InboxItemPage:
    items: list[InboxItem]
    next: str | None = strawberry.field(description="`after` of the next page; null on the last.")
    counts: Counts


@strawberry.type
class ActivityPage:
    entries: list[Activity]
    next: str | None = strawberry.field(description="`after` of the next page; null on the last.")


@strawberry.type
class Agent:
    """An agent of the registry. Ids stay if the parent or the person was removed."""

    id: strawberry.ID
    name: str
    parent: str | None
    parent_id: strawberry.ID | None
    human: str | None
    human_id: strawberry.ID | None
    source: str
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, agent: RegisteredAgent) -> Self:
        return cls(**{name: getattr(agent, name) for name in cls.__dataclass_fields__})


@strawberry.type
class AgentPage:
    items: list[Agent]
    next: str | None = strawberry.field(description="`after` of the next page; null on the last.")


@strawberry.type
class InboxItemChange:
    """A change of an item's status, and the item as it is now."""

    seq: strawberry.ID
    kind: str
    actor: str
    at: datetime | None
    item: InboxItem
