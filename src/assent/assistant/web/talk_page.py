"""The data of a conversation's page, limited to what the caller may see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from assent.assistant.talk.service import TITLE
from assent.assistant.talk.threads import Standing
from assent.assistant.talk.turns import reason_of
from assent.assistant.web.lines import Line, lines, title
from assent.errors import NotFound
from assent.identity.model.access import Principal
from assent.kernel.store.ports import Store
from assent.review.inbox import Inbox
from assent.runs.threads.threads import Threads
from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.views import item_page
from assent.surfaces.web.views.item_page import ItemPage
from assent.threads.model.threads import Query, SortBy, Thread

_ITEMS = 20
_EARLIER = 25


@dataclass(frozen=True, slots=True)
class Sources:
    """The services that provide a page's data."""

    threads: Threads
    inbox: Inbox
    store: Store


@dataclass(frozen=True, slots=True)
class TalkPage:
    thread: Thread
    asked: Sequence[ItemPage]
    """The questions that wait for a person."""

    run_id: str | None
    """The run that works on the request."""

    failure: str | None
    """Why the last run failed."""

    @property
    def lines(self) -> list[Line]:
        return lines(self.thread.values)

    @property
    def title(self) -> str:
        return _named(self.thread) or title(self.thread.values) or _("New conversation")

    @property
    def address(self) -> str:
        return f"/inbox/assistant/{self.thread.id}"


async def gather(sources: Sources, caller: Principal, thread_id: str, standing: Standing) -> TalkPage:
    """`standing` was read before: the page does not show less than it."""
    thread = await sources.threads.get(caller, thread_id, reveal=False)
    pages = [await _asked(sources, caller, item.id) for item in standing.waiting[:_ITEMS]]
    asked = [page for page in pages if page is not None]
    idle = standing.run_id is None and not asked
    failure = reason_of(standing.failed) if idle and standing.failed else None
    return TalkPage(thread, asked, standing.run_id, failure)


async def earlier(sources: Sources, caller: Principal, graph_id: str) -> list[tuple[Thread, str]]:
    """The caller's conversations with their titles, the latest first."""
    metadata = {"graph_id": graph_id}
    query = Query(metadata=metadata, owner=caller.actor, limit=_EARLIER, sort_by=SortBy.UPDATED_AT)
    search = partial(sources.threads.search, caller, interrupts=False, reveal=False)
    threads, _more = await search(query, values=False)
    untitled = [thread.id for thread in threads if not _named(thread)]
    states, _more = await search(replace(query, ids=untitled)) if untitled else ([], False)
    titles = {thread.id: title(thread.values) for thread in states}
    return [(thread, _named(thread) or titles.get(thread.id, "")) for thread in threads]


def _named(thread: Thread) -> str:
    return str(thread.metadata.get(TITLE) or "")


async def _asked(sources: Sources, caller: Principal, item_id: str) -> ItemPage | None:
    """None if the project's auth handlers hide the item from the caller."""
    try:
        return await item_page.gather(sources.inbox, sources.store, caller, item_id)
    except NotFound:
        return None
