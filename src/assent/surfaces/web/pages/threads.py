"""The threads pages: the list by status, and one thread with conversation, state, history and graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response

from assent.errors import NotFound
from assent.identity.model.access import Principal
from assent.kernel.ids import as_uuid
from assent.review.inbox import Inbox
from assent.settings import Mode, Settings
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.origins import address_of
from assent.surfaces.web import titles
from assent.surfaces.web.errors import PageRoute
from assent.surfaces.web.views.shell import Shell
from assent.surfaces.web.views.threads import conversation, thread_page
from assent.surfaces.web.views.threads.thread_page import Sources
from assent.threads.model.assistants import Assistant
from assent.threads.model.assistants import Query as AssistantQuery
from assent.threads.model.threads import Query as ThreadQuery
from assent.threads.model.threads import SortBy, Thread, ThreadStatus

SIZES = (10, 25, 50)
_TABS = ("", *thread_page.STATUSES)
_NAMES = 200
_AT_ONCE = 12
"""Maximum number of ids in one inbox filter."""

Offset = Annotated[int, Query(ge=0, le=1_000_000)]
Text = Annotated[str, Query(max_length=200)]
Saved = Mapping[str, Any] | None
"""One of the caller's inboxes."""


@dataclass(frozen=True, slots=True)
class View:
    """The list's filter and page, as in its URL."""

    status: str = ""
    graph: str = ""
    inbox: str = ""
    limit: int = SIZES[0]
    offset: int = 0

    def address(self, **other: Any) -> str:
        values = {field.name: other.get(field.name, getattr(self, field.name)) for field in fields(self)}
        query = {field.name: values[field.name] for field in fields(self) if values[field.name] != field.default}
        return f"/inbox/threads?{urlencode(query)}" if query else "/inbox/threads"


@dataclass(frozen=True, slots=True)
class Row:
    thread: Thread
    title: str
    words: str
    assistant: str
    needs: bool
    """Whether the thread waits for a person."""


def routes(sources: Sources, shell: Shell, settings: Settings, *, admits_studio: bool) -> APIRouter:
    """`admits_studio`: whether Studio may call this server from a browser."""
    web = APIRouter(prefix="/inbox/threads", include_in_schema=False, route_class=PageRoute)

    @web.get("")
    async def list_page(
        caller: Caller, status: Text = "", graph: Text = "", inbox: Text = "", limit: int = SIZES[0], offset: Offset = 0
    ) -> Response:
        saved = await shell.inbox(caller, inbox) if inbox else None
        size = limit if limit in SIZES else SIZES[0]
        view = View(status if status in _TABS else "", graph.strip(), saved["id"] if saved else "", size, offset)
        assistants = await _assistants(sources, caller)
        rows, more = await _rows(sources, caller, _query(view, saved), assistants)
        return await shell.show(
            caller,
            "threads.html",
            here="threads",
            view=view,
            saved=saved,
            tabs=thread_page.STATUSES,
            sizes=SIZES,
            graphs=sorted({assistant.graph_id for assistant in assistants} | ({view.graph} if view.graph else set())),
            rows=rows,
            more=more,
        )

    @web.get("/{thread_id:uuid}")
    async def show_page(
        request: Request, caller: Caller, thread_id: UUID, before: Text = "", inbox: Text = ""
    ) -> Response:
        page = await _page(sources, caller, str(thread_id), before)
        saved = await shell.inbox(caller, inbox) if inbox else None
        is_elsewhere = page.studio is not None or bool(saved and saved["url"])
        return await shell.show(
            caller,
            "thread.html",
            here="threads",
            page=page,
            thread=page.thread,
            saved=saved,
            status_sign=thread_page.STATUSES[page.thread.status],
            run_signs=thread_page.RUNS,
            before=before,
            studio=page.studio or thread_page.studio_link(page.thread.id, _deployment(request, settings, saved)),
            refuses_studio=not (admits_studio or is_elsewhere),
            is_dev=settings.mode is Mode.DEV,
            studio_origin=thread_page.STUDIO_ORIGIN,
        )

    return web


async def _page(sources: Sources, caller: Principal, thread_id: str, before: str) -> thread_page.ThreadPage:
    try:
        return await thread_page.gather(sources, caller, thread_id, before or None)
    except NotFound:
        return await thread_page.gather_remote(sources, caller, thread_id)


def _deployment(request: Request, settings: Settings, saved: Saved) -> str:
    """The deployment's URL: of the inbox, of the server's settings, or of this request."""
    if saved and saved["url"]:
        return str(saved["url"])
    configured = settings.mode is Mode.SERVE and "url" in settings.model_fields_set
    return settings.url if configured else address_of(request) or str(request.base_url)


def _query(view: View, saved: Saved) -> ThreadQuery:
    wanted = {"graph_id": view.graph} if view.graph else {}
    if named := saved and saved["graph_id"]:
        wanted |= {"assistant_id" if as_uuid(named) else "graph_id": named}
    status = ThreadStatus(view.status) if view.status else None
    return ThreadQuery(metadata=wanted, status=status, limit=view.limit, offset=view.offset, sort_by=SortBy.UPDATED_AT)


async def _assistants(sources: Sources, caller: Principal) -> list[Assistant]:
    return (await sources.assistants.search(caller, AssistantQuery(), limit=_NAMES))[0]


async def _rows(
    sources: Sources, caller: Principal, query: ThreadQuery, assistants: Sequence[Assistant]
) -> tuple[list[Row], bool]:
    threads, more = await sources.threads.search(caller, query, interrupts=False, reveal=False)
    headings = await _asked(sources.inbox, caller, [thread.id for thread in threads if thread.waits])
    names = {assistant.id: assistant.name for assistant in assistants if not assistant.is_graphs_own}
    return [_row(thread, headings.get(thread.id, ""), names) for thread in threads], more


def _row(thread: Thread, asked: str, names: dict[str, str]) -> Row:
    return Row(
        thread,
        thread_page.title(thread),
        asked or conversation.last_words(thread.values),
        names.get(str(thread.metadata.get("assistant_id")), ""),
        thread.waits or thread.status is ThreadStatus.INTERRUPTED,
    )


async def _asked(inbox: Inbox, caller: Principal, thread_ids: Sequence[str]) -> dict[str, str]:
    """The heading of the newest pending item of each thread."""
    headings: dict[str, str] = {}
    for start in range(0, len(thread_ids), _AT_ONCE):
        some = ",".join(thread_ids[start : start + _AT_ONCE])
        for item in (await inbox.list(caller, filter=f"is:pending thread:{some}", limit=200, arguments=True)).items:
            headings.setdefault(item["source"]["thread_id"], titles.row_heading(item))
    return headings
