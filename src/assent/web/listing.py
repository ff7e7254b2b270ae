"""The list beside every item: what is asked for by the address, as the caller may see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from assent.domain import filters
from assent.domain.access import Principal
from assent.errors import AssentError, Invalid
from assent.ports import Store
from assent.services.inbox import Inbox
from assent.services.item_views import ItemPage as Found
from assent.web import people
from assent.web.people import Names

PAGE = 30
TABS = ("pending", "resolved")
View = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which list it is: it stands in the address of every page, so that going back leads where one was."""

    q: str = ""
    tab: str = "pending"
    inbox: str = ""
    base: str = ""
    """The filter of the inbox, before what is searched for in it."""

    @property
    def text(self) -> str:
        return f"{self.base} {self.q}".strip()

    @property
    def by_tab(self) -> bool:
        """Whether the tab says which statuses are meant, because the search does not."""
        wanted = filters.parse(self.text)
        return not (wanted.statuses or any(name == "execution" for name, _ in wanted.columns))

    def query(self, **more: str | None) -> str:
        """As the end of an address, with its question mark."""
        facts = {"inbox": self.inbox, "q": self.q, "tab": "" if self.tab == "pending" else self.tab, **more}
        told = urlencode({name: value for name, value in facts.items() if value})
        return f"?{told}" if told else ""

    def with_term(self, field: str, value: str) -> str:
        """The same list, narrowed to this value of a field; or no longer, where it was."""
        term = f"{field}:{value}"
        kept = [one for one in self.q.split() if not one.startswith(f"{field}:")]
        q = " ".join(kept if term in self.q.split() else [*kept, term])
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
        """What is in doubt stands above all else."""
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
    names = await people.names(store, caller, [one["requester"] for one in (*doubts, *found.items)])
    return Listing(wanted, found, names, doubts, problem, cursor is None, current)


async def following(inbox: Inbox, caller: Principal, wanted: Wanted, item_id: str) -> str | None:
    """The next item of the list that waits."""
    try:
        status = "is:pending" if wanted.by_tab else ""
        return await inbox.following(caller, item_id, filter=f"{wanted.text} {status}".strip())
    except Invalid:
        return await inbox.following(caller, item_id, filter="is:pending")
