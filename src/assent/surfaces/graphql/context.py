"""The context of one operation: its caller, the use cases, and the items that it has loaded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from strawberry.types import Info

from assent.audit.service import Audit
from assent.identity.agents import Agents
from assent.identity.model.access import Principal
from assent.identity.model.passkeys import Proof
from assent.review.inbox import Inbox
from assent.review.live import Live
from assent.review.workspace_reviews import WorkspaceReviews

View = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sources:
    """The use cases behind the schema."""

    inbox: Inbox
    live: Live
    audit: Audit
    agents: Agents
    reviews: WorkspaceReviews


@dataclass(slots=True)
class Context:
    caller: Principal
    sources: Sources
    key: str | None = None
    """The Idempotency-Key of the request, for mutations that name none."""
    proof: Callable[[View | None], Proof | None] = lambda assertion: None
    _loaded: dict[str, View] = field(default_factory=dict)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def inbox(self) -> Inbox:
        return self.sources.inbox

    async def item(self, item_id: str, hash: str | None = None) -> View:
        """All details of an item, read once per operation. `hash` is that of the revision beside which they are shown:
        details of an earlier revision are read again. One read at a time: an operation has no more share of the
        database than any other request."""
        async with self._turn:
            loaded = self._loaded.get(item_id)
            if loaded is None or hash not in (None, loaded["hash"]):
                loaded = self._loaded[item_id] = await self.inbox.get(self.caller, item_id)
            return loaded


Told: TypeAlias = Info[Context, None]
