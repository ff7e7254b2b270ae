"""The queries: each is one use case, with the paging and the text filters of REST."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import strawberry

from assent.errors import Invalid, NotFound
from assent.identity.model.agents import AgentFilter, Source
from assent.kernel import jsontext
from assent.kernel.events import Entry
from assent.surfaces.graphql.context import Context, Told
from assent.surfaces.graphql.limits import LARGEST_PAGE
from assent.surfaces.graphql.types import (
    Activity,
    ActivityPage,
    Agent,
    AgentPage,
    Counts,
    InboxItem,
    InboxItemPage,
)

First = Annotated[int, strawberry.argument(description=f"The length of the page, at most {LARGEST_PAGE}.")]
After = Annotated[str | None, strawberry.argument(description="`next` of the previous page.")]
Part = Annotated[str | None, strawberry.argument(description="A part of the name.")]
Filter = Annotated[str, strawberry.argument(description="Such as `is:pending type:tool older:2h refund`.")]


@strawberry.type
class Query:
    @strawberry.field(description="Items, newest first.")
    async def inbox_items(
        self, info: Told, filter: Filter = "", sort: str | None = None, first: First = 50, after: After = None
    ) -> InboxItemPage:
        context = info.context
        page = await context.inbox.list(
            context.caller, filter=_text("filter", filter), sort=sort, limit=_size(first), cursor=_cursor(after)
        )
        items = [InboxItem.of(view, detailed=False) for view in page.items]
        return InboxItemPage(items=items, next=page.next, counts=Counts(**page.counts))

    @strawberry.field(description="One item; null if there is none with this id.")
    async def inbox_item(self, info: Told, id: strawberry.ID) -> InboxItem | None:
        try:
            return InboxItem.of(await info.context.item(id), detailed=True)
        except NotFound:
            return None

    @strawberry.field(description="The registry of agents, by name.")
    async def agents(
        self,
        info: Told,
        text: Part = None,
        parent: str | None = None,
        human: str | None = None,
        source: str | None = None,
        first: First = 50,
        after: After = None,
    ) -> AgentPage:
        registry = info.context.sources.agents
        for name, value in {"text": text, "parent": parent, "human": human}.items():
            _text(name, value or "")
        wanted = AgentFilter(text, parent, human, _source(source))
        page = await registry.list(info.context.caller, wanted, limit=_size(first), cursor=_cursor(after))
        return AgentPage(items=[Agent.of(agent) for agent in page.items], next=page.next)

    @strawberry.field(
        description="The timeline, newest first: of one item, or of the whole tenant with the scope `audit:read`."
    )
    async def activity_log(
        self,
        info: Told,
        item_id: strawberry.ID | None = None,
        kind: str | None = None,
        actor: str | None = None,
        text: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        first: First = 50,
        after: After = None,
    ) -> ActivityPage:
        filters = {name: value for name, value in (("kind", kind), ("actor", actor), ("text", text)) if value}
        filters = {name: _text(name, value) for name, value in filters.items()}
        limit, cursor = _size(first), _cursor(after)
        if item_id is not None:
            if filters or since or until:
                raise Invalid("the activity of one item has no further filters")
            return await _activity_of_item(info.context, item_id, limit, cursor)
        moments = {"since": _moment("since", since), "until": _moment("until", until)}
        audit = info.context.sources.audit
        page = await audit.search(info.context.caller, **filters, **moments, limit=limit, cursor=cursor)  # type: ignore[arg-type]
        return ActivityPage(entries=[_activity(entry) for entry in page.items], next=page.next)


async def _activity_of_item(context: Context, item_id: str, limit: int, cursor: str | None) -> ActivityPage:
    before = int(cursor) if cursor and cursor.isdecimal() and len(cursor) <= 18 else None
    if cursor is not None and before is None:
        raise Invalid("after: not a cursor of this list")
    events = await context.inbox.timeline(context.caller, item_id, limit=limit, before=before)
    subject = f"item:{item_id}"
    entries = [Activity.of({**view, "subject": subject}) for view in reversed(events)]
    return ActivityPage(entries=entries, next=str(entries[-1].seq) if len(entries) == limit else None)


def _activity(entry: Entry) -> Activity:
    event, payload = entry
    facts: dict[str, Any] = {"kind": event.kind, "actor": event.actor, "subject": event.subject}
    told = None if payload is None else jsontext.load(payload)
    return Activity.of({"seq": event.seq, "at": event.at.isoformat(), "payload": told, **facts})


def _size(first: int) -> int:
    if not 1 <= first <= LARGEST_PAGE:
        raise Invalid(f"first: between 1 and {LARGEST_PAGE}")
    return first


def _source(named: str | None) -> Source | None:
    try:
        return None if named is None else Source(named)
    except ValueError:
        raise Invalid(f"source: one of {', '.join(Source)}") from None


def _cursor(after: str | None) -> str | None:
    return None if after is None else _text("after", after, most=1000)


def _text(name: str, value: str, *, most: int = 500) -> str:
    if len(value) > most:
        raise Invalid(f"{name}: at most {most} characters")
    return value


def _moment(name: str, at: datetime | None) -> datetime | None:
    if at is not None and at.tzinfo is None:
        raise Invalid(f"{name}: the time needs a zone, such as Z")
    return at
