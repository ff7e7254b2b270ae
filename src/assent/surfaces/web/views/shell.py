"""The frame of every page: navigation and pending counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fastapi.responses import HTMLResponse

from assent.errors import NotFound
from assent.identity.model.access import Principal, Scope
from assent.review.inbox import Inbox
from assent.review.inboxes import Inboxes
from assent.review.model.search import filters
from assent.surfaces.extensions import Place
from assent.surfaces.web.rendering import draw

PLACES = (
    Place("threads", "/inbox/threads", "Threads", "thread"),
    Place("crons", "/inbox/crons", "Crons", "clock"),
    Place("insights", "/inbox/insights", "Insights", "chart"),
    Place("agents", "/inbox/agents", "Agents", "agent"),
    Place("policies", "/inbox/policies", "Policies", "shield"),
    Place("audit", "/inbox/audit", "Audit", "history"),
)


@dataclass(frozen=True, slots=True)
class Mine:
    """A list of the caller's own items."""

    filter: str
    label: str
    icon: str
    count: int = 0


MINE = (Mine("owner:me", "Assigned to me", "person"), Mine("mentions:me", "Mentions", "at"))


class Shell:
    def __init__(
        self,
        inbox: Inbox,
        inboxes: Inboxes,
        failures: Sequence[tuple[str, str]] = (),
        places: Sequence[Place] = (),
    ) -> None:
        """`failures` are the places where graphs failed to load, each with its reason; `places` are those of
        extensions."""
        self._inbox = inbox
        self._failures = failures
        self._places = (*places, *PLACES)
        self.inboxes = inboxes

    async def inbox(self, caller: Principal, inbox_id: str) -> Mapping[str, Any] | None:
        """One of the caller's inboxes."""
        try:
            return await self.inboxes.get(caller, inbox_id)
        except NotFound:
            return None

    async def show(
        self, caller: Principal, template: str, *, here: str, status: int = 200, **facts: Any
    ) -> HTMLResponse:
        """Renders `template`, which extends `page.html`; `here` is the current navigation entry."""
        waiting = (await self._inbox.list(caller, filter="is:pending", limit=1)).counts["pending"]
        inboxes = await self.inboxes.list(caller)
        around = {"places": self._places, "waiting": waiting, "inboxes": inboxes, "failures": self._failures}
        around["mine"] = await self._mine(caller)
        return await draw(template, status=status, caller=caller, here=here, **around, **facts)

    async def _mine(self, caller: Principal) -> list[Mine]:
        """The lists of the caller's own items, with the number of pending ones."""
        if not caller.is_person:
            return []
        counts = await self._inbox.pending(caller, [filters.parse(entry.filter) for entry in MINE])
        return [replace(entry, count=count.number) for entry, count in zip(MINE, counts, strict=True)]

    async def refuse(self, caller: Principal, scope: Scope, *, here: str, title: str) -> HTMLResponse:
        """Renders a 403 page that names the missing scope."""
        return await self.show(caller, "refused.html", here=here, status=403, scope=scope, title=title)
