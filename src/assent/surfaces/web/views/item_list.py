"""The item list that the URL selects, limited to the items visible to the caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from assent.errors import AssentError, Invalid
from assent.identity.model.access import Principal
from assent.kernel.store.ports import Store
from assent.review.inbox import Inbox
from assent.review.item_views import ItemPage as Found
from assent.review.model.search import filters
from assent.review.model.search.filters import Filter
from assent.surfaces.web import renderers
from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.views import people
from assent.surfaces.web.views.people import Names

PAGE = 30
TABS = ("pending", "resolved")
View = Mapping[str, Any]
_INVALID = Filter()


@dataclass(frozen=True, slots=True)
class Wanted:
    """The selected list. Every URL contains it, so that Back returns to the same list."""

    q: str = ""
    tab: str = "pending"
    inbox: str = ""
    base: str = ""
    """The filter of the inbox, without the search."""

    @property
    def text(self) -> str:
        return f"{self.base} {self.q}".strip()

    @property
    def by_tab(self) -> bool:
        """Whether the tab selects the statuses, because the search does not."""
        wanted = self._parsed
        return not (wanted.statuses or any(name == "execution" for name, _ in wanted.columns))

    @property
    def shown(self) -> str:
        """The tab of the items that are listed; empty if the search asks for both kinds."""
        is_open = {status.open for status in self._parsed.statuses}
        if self.by_tab or not is_open:
            return self.tab if self.by_tab else ""
        return TABS[0 if True in is_open else 1] if len(is_open) == 1 else ""

    @property
    def closed(self) -> bool:
        """Whether the list has decided items only: its columns tell about the decision."""
        statuses = self._parsed.statuses
        return not any(status.open for status in statuses) if statuses else self.tab == "resolved"

    @property
    def group(self) -> str | None:
        return self._parsed.group

    @property
    def sort(self) -> str:
        return self._parsed.sort or "newest"

    @property
    def _parsed(self) -> Filter:
        try:
            return filters.parse(self.text)
        except Invalid:
            return _INVALID

    def query(self, **more: str | None) -> str:
        """The query string, with its question mark."""
        facts = {"inbox": self.inbox, "q": self.q, "tab": "" if self.tab == "pending" else self.tab, **more}
        query = urlencode({name: value for name, value in facts.items() if value})
        return f"?{query}" if query else ""

    def on_tab(self, tab: str) -> str:
        """URL of the same search on another tab. Statuses in the search, which would win, are left out."""
        q = self.q
        for status in self.chosen("is"):
            if status in filters.STATUSES:
                q = filters.toggled(q, "is", status)
        return "/inbox" + replace(self, q=q.strip()).query(tab=tab if tab != TABS[0] else "")

    def with_term(self, field: str, value: str) -> str:
        """URL of the same list with this filter toggled."""
        return "/inbox" + replace(self, q=filters.toggled(self.q, field, value).strip()).query()

    def chosen(self, field: str) -> list[str]:
        """The values of the field that the search selects."""
        return filters.chosen_values(self.q, field)


@dataclass(frozen=True, slots=True)
class Listing:
    wanted: Wanted
    found: Found
    names: Names
    doubts: Sequence[View] = ()
    problem: AssentError | None = None
    first: bool = True
    current: str = ""

    @property
    def rows(self) -> list[View]:
        """Items in doubt come first."""
        return [*self.doubts, *self.found.items]

    @property
    def groups(self) -> list[tuple[str, list[View]]]:
        """The rows under the headings of their groups; without groups, one without a heading."""
        groups: list[tuple[str, list[View]]] = []
        for item in self.rows:
            heading = self._heading(item)
            if not groups or groups[-1][0] != heading:
                groups.append((heading, []))
            groups[-1][1].append(item)
        return groups

    def _heading(self, item: View) -> str:
        match self.wanted.group:
            case "agent":
                return self.names.of(item["requester"])
            case "type":
                return _(renderers.sign(item["kind"]).word)
            case "thread":
                thread_id = item["source"]["thread_id"]
                return _("Thread %(id)s") % {"id": thread_id[-8:]} if thread_id else _("Without a thread")
        return ""


async def gather(inbox: Inbox, store: Store, caller: Principal, wanted: Wanted, cursor: str | None = None) -> Listing:
    problem, current, found, doubts = None, "", Found([], None, {"pending": 0, "resolved": 0}), list[dict[str, Any]]()
    try:
        current = wanted.tab if wanted.by_tab else ""
        status = f"is:{current}" if current else ""
        filter = f"{wanted.text} {status}".strip()
        found = await inbox.list(
            caller, filter=filter, limit=PAGE, cursor=cursor, facets=cursor is None, arguments=True
        )
        if current == "pending" and not cursor:
            doubts = (
                await inbox.list(caller, filter=f"{wanted.text} is:in-doubt".strip(), limit=PAGE, arguments=True)
            ).items
    except Invalid as error:
        problem = error
    actors = [actor for item in (*doubts, *found.items) for actor in _actors(item)]
    names = await people.names(store, caller, [*actors, *found.facets.get("agent", ())])
    return Listing(wanted, found, names, doubts, problem, cursor is None, current)


def waiting(listed: Listing | None) -> int | None:
    """The number of all pending items, if the list has counted them."""
    counted = listed is not None and listed.problem is None and not listed.wanted.text
    return int(listed.found.counts["pending"]) if listed is not None and counted else None


def _actors(item: View) -> list[str | None]:
    return [item["requester"], item["decided_by"], item["owner"], item["claim"] and item["claim"]["by"]]


async def following(inbox: Inbox, caller: Principal, wanted: Wanted, item_id: str) -> str | None:
    """The next pending item of the list."""
    try:
        status = "is:pending" if wanted.by_tab else ""
        return await inbox.following(caller, item_id, filter=f"{wanted.text} {status}".strip())
    except Invalid:
        return await inbox.following(caller, item_id, filter="is:pending")
