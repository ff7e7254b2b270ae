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
        """Renders `template`, which extends `page.html`; `here` is the current navigation entry. `facts` have the
        number of pending items as `waiting` if it is known."""
        inboxes = await self.inboxes.list(caller)
        around: dict[str, Any] = {"places": self._places, "inboxes": inboxes, "failures": self._failures}
        around["waiting"], around["mine"] = await self._counted(caller, facts.pop("waiting", None))
        return await draw(template, status=status, caller=caller, here=here, **around, **facts)

    async def _counted(self, caller: Principal, waiting: int | None) -> tuple[int, list[Mine]]:
        """The number of pending items, and the lists of the caller's own items with theirs."""
        lists = MINE if caller.is_person else ()
        wanted = [filters.parse(entry.filter) for entry in lists]
        if waiting is None:
            wanted.append(filters.Filter())
        numbers = [count.number for count in await self._inbox.pending(caller, wanted)]
        mine = [replace(entry, count=number) for entry, number in zip(lists, numbers, strict=False)]
        return numbers[-1] if waiting is None else waiting, mine

    async def refuse(self, caller: Principal, scope: Scope, *, here: str, title: str) -> HTMLResponse:
        """Renders a 403 page that names the missing scope."""
        return await self.show(caller, "refused.html", here=here, status=403, scope=scope, title=title)
