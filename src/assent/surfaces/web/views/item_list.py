"""The item list that the URL selects, limited to the items visible to the caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from assent.errors import AssentError, Invalid
from assent.identity.model.access import Principal
from assent.kernel.store.ports import Store
from assent.review.inbox import Inbox
from assent.review.item_views import ItemPage as Found
from assent.review.model import filters
from assent.surfaces.web.views import people
from assent.surfaces.web.views.people import Names

PAGE = 30
TABS = ("pending", "resolved")
View = Mapping[str, Any]


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
        wanted = filters.parse(self.text)
        return not (wanted.statuses or any(name == "execution" for name, _ in wanted.columns))

    def query(self, **more: str | None) -> str:
        """The query string, with its question mark."""
        facts = {"inbox": self.inbox, "q": self.q, "tab": "" if self.tab == "pending" else self.tab, **more}
        query = urlencode({name: value for name, value in facts.items() if value})
        return f"?{query}" if query else ""

    def with_term(self, field: str, value: str) -> str:
        """URL of the same list with this filter toggled."""
        term = f"{field}:{value}"
        others = [word for word in self.q.split() if not word.startswith(f"{field}:")]
        q = " ".join(others if term in self.q.split() else [*others, term])
        return "/inbox" + Wanted(q, self.tab, self.inbox, self.base).query()

    def has_term(self, field: str, value: str) -> bool:
        return f"{field}:{value}" in self.q.split()


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


async def gather(inbox: Inbox, store: Store, caller: Principal, wanted: Wanted, cursor: str | None = None) -> Listing:
    problem, current, found, doubts = None, "", Found([], None, {"pending": 0, "resolved": 0}), list[dict[str, Any]]()
    try:
        current = wanted.tab if wanted.by_tab else ""
        status = f"is:{current}" if current else ""
        found = await inbox.list(caller, filter=f"{wanted.text} {status}".strip(), limit=PAGE, cursor=cursor)
        if current == "pending" and not cursor:
            doubts = (await inbox.list(caller, filter=f"{wanted.text} is:in-doubt".strip(), limit=PAGE)).items
    except Invalid as error:
        problem = error
    names = await people.names(store, caller, [item["requester"] for item in (*doubts, *found.items)])
    return Listing(wanted, found, names, doubts, problem, cursor is None, current)


async def following(inbox: Inbox, caller: Principal, wanted: Wanted, item_id: str) -> str | None:
    """The next pending item of the list."""
    try:
        status = "is:pending" if wanted.by_tab else ""
        return await inbox.following(caller, item_id, filter=f"{wanted.text} {status}".strip())
    except Invalid:
        return await inbox.following(caller, item_id, filter="is:pending")
