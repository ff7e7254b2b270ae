"""The subscription to changes of status, from the timeline: changes made by other processes arrive as well."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

import strawberry

from assent.errors import Invalid, NotFound
from assent.review.model.lifecycle import STATUS_EVENTS
from assent.review.watchers import Change
from assent.surfaces.graphql.context import Context, Told, View
from assent.surfaces.graphql.types import InboxItem, InboxItemChange, moment


@strawberry.type
class Subscription:
    @strawberry.subscription(description="Changes of status, of one item or of all that the caller sees.")
    async def on_inbox_item_status_changed(
        self,
        info: Told,
        item_id: strawberry.ID | None = None,
        after: Annotated[
            strawberry.ID | None, strawberry.argument(description="`seq` of the last change that the caller has.")
        ] = None,
    ) -> AsyncGenerator[InboxItemChange, None]:
        if item_id is not None:
            await info.context.inbox.get(info.context.caller, item_id)  # raises if there is none
        async with aclosing(info.context.sources.live.follow(info.context.caller, after=_number(after))) as changes:  # type: ignore[type-var]
            async for change in changes:
                if change is not None and change.kind in STATUS_EVENTS and item_id in (None, change.item["id"]):
                    view = await _current(info.context, change.item["id"])
                    if view is not None:
                        yield _shown(change, view)


async def _current(context: Context, item_id: str) -> View | None:
    """The item as one read returns it: a subscription outlives revisions, and a hash must be that of the arguments.
    None if the item was removed meanwhile."""
    try:
        return await context.inbox.get(context.caller, item_id)
    except NotFound:
        return None


def _shown(change: Change, view: View) -> InboxItemChange:
    return InboxItemChange(
        seq=strawberry.ID(str(change.seq)),
        kind=change.kind,
        actor=change.actor,
        at=moment(change.at),
        item=InboxItem.of(view, detailed=True),
    )


def _number(after: str | None) -> int | None:
    if after is None:
        return None
    if not after.isdecimal() or len(after) > 18:
        raise Invalid("after: not a seq of this subscription")
    return int(after)
