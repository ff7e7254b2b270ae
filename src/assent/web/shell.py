"""What every page has around it: where a person can go, and how much waits for them there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi.responses import HTMLResponse

from assent.domain.access import Principal, Scope
from assent.errors import NotFound
from assent.services.inbox import Inbox
from assent.services.inboxes import Inboxes
from assent.web.rendering import render


@dataclass(frozen=True, slots=True)
class Place:
    name: str
    path: str
    label: str
    icon: str


PLACES = (
    Place("threads", "/inbox/threads", "Threads", "thread"),
    Place("insights", "/inbox/insights", "Insights", "chart"),
    Place("policies", "/inbox/policies", "Policies", "shield"),
    Place("audit", "/inbox/audit", "Audit", "history"),
)


class Shell:
    def __init__(self, inbox: Inbox, inboxes: Inboxes) -> None:
        self._inbox = inbox
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
        """The page `template`, which extends `page.html`; `here` is the name of its place."""
        waiting = (await self._inbox.list(caller, filter="is:pending", limit=1)).counts["pending"]
        inboxes = await self.inboxes.list(caller)
        return render(
            template, status=status, caller=caller, here=here, places=PLACES, waiting=waiting, inboxes=inboxes, **facts
        )

    async def refuse(self, caller: Principal, scope: Scope, *, here: str, title: str) -> HTMLResponse:
        """A page that says what it takes to see what is here."""
        return await self.show(caller, "refused.html", here=here, status=403, scope=scope, title=title)
