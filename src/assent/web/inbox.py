"""The inbox in the browser: the list, an item, and everything a person can do about it. Plain forms: each does one
thing, says which revision it is about, and leads on to where that can be seen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, get_args
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse
from starlette.datastructures import FormData

from assent.domain import filters
from assent.domain.access import Principal
from assent.domain.filters import Filter
from assent.domain.ids import new_token
from assent.errors import AssentError, Conflict, Invalid, InvalidDecision
from assent.http.authentication import Caller
from assent.http.origins import require_same_origin
from assent.ports import Store
from assent.services.deciding import Proposal
from assent.services.deliveries import Deliveries
from assent.services.inbox import Doubt, Inbox
from assent.services.item_views import ItemPage as Found
from assent.web import decisions, item_page, people
from assent.web.errors import PageRoute
from assent.web.item_page import Attempt, ItemPage
from assent.web.rendering import render

Text = Annotated[str, Query(max_length=500)]
Act = Callable[[ItemPage, FormData, str], Awaitable[str]]
"""Does what was asked for, under an Idempotency-Key, and says where to go on."""

PAGE = 50
_TABS = ("pending", "resolved")
_OUTCOMES: tuple[Doubt, ...] = get_args(Doubt)
_MOST_FIELDS = 20_000


def routes(inbox: Inbox, deliveries: Deliveries, store: Store) -> APIRouter:
    web = APIRouter(prefix="/inbox", include_in_schema=False, route_class=PageRoute)
    desk = _Desk(inbox, deliveries, store)
    _look(web, desk)
    _act(web, desk)
    return web


def _look(web: APIRouter, desk: _Desk) -> None:
    @web.get("")
    async def list_page(
        caller: Caller, q: Text = "", tab: str = "pending", cursor: str | None = None, done: str | None = None
    ) -> Response:
        return await desk.list(caller, q.strip(), tab if tab in _TABS else "pending", cursor, done)

    @web.get("/{item_id:uuid}")
    async def show_page(caller: Caller, item_id: UUID, q: Text = "", done: str | None = None) -> Response:
        return await desk.show(caller, str(item_id), q=q, done=done)

    @web.get("/{item_id:uuid}/cancel")
    async def cancel_page(caller: Caller, item_id: UUID, q: Text = "") -> Response:
        """Asks once more before an item is closed for good without a decision."""
        page = await item_page.gather(desk.inbox, desk.store, caller, str(item_id))
        return render("cancel.html", caller=caller, page=page, item=page.item, q=q, key=_key)


def _act(web: APIRouter, desk: _Desk) -> None:
    acts: dict[str, Act] = {
        "decision": desk.decide,
        "revision-request": desk.send_back,
        "undo": desk.undo,
        "cancellation": desk.cancel,
        "in-doubt": desk.settle,
        "comments": desk.comment,
        "delivery": desk.retry,
    }
    for name, act in acts.items():
        web.add_api_route(f"/{{item_id:uuid}}/{name}", _route(desk, act), methods=["POST"], name=name)


def _route(desk: _Desk, act: Act) -> Callable[..., Awaitable[Response]]:
    async def route(request: Request, caller: Caller, item_id: UUID) -> Response:
        require_same_origin(request)
        return await desk.attempt(caller, str(item_id), await request.form(max_fields=_MOST_FIELDS), act)

    return route


class _Desk:
    """What the routes share: the services, and the way from an error back to the page with what was typed."""

    def __init__(self, inbox: Inbox, deliveries: Deliveries, store: Store) -> None:
        self.inbox = inbox
        self.deliveries = deliveries
        self.store = store

    # Looking

    async def list(self, caller: Principal, q: str, tab: str, cursor: str | None, done: str | None) -> Response:
        problem, current, found = None, tab, Found([], None, {"pending": 0, "resolved": 0})
        doubts: list[dict[str, Any]] = []
        try:
            status = "" if _names_status(filters.parse(q)) else f"is:{tab}"
            current = tab if status else ""
            found = await self.inbox.list(caller, filter=f"{q} {status}".strip(), limit=PAGE, cursor=cursor)
            if tab == "pending" and not cursor and status:
                doubts = (await self.inbox.list(caller, filter=f"{q} is:in-doubt".strip(), limit=PAGE)).items
        except Invalid as error:
            problem = error
        names = await people.names(self.store, caller, [one["requester"] for one in (*doubts, *found.items)])
        told = await item_page.told(self.inbox, self.store, caller, done)
        return render(
            "inbox.html",
            status=problem.status if problem else 200,
            caller=caller,
            q=q,
            tab=tab,
            current=current,
            found=found,
            doubts=doubts,
            names=names,
            problem=problem,
            first=cursor is None,
            told=told,
            key=_key,
        )

    async def show(
        self, caller: Principal, item_id: str, *, q: str = "", done: str | None = None, attempt: Attempt | None = None
    ) -> Response:
        page = await item_page.gather(self.inbox, self.store, caller, item_id)
        return render(
            "item.html",
            status=attempt.problem.status if attempt else 200,
            caller=caller,
            page=page,
            item=page.item,
            names=page.names,
            q=q,
            told=await item_page.told(self.inbox, self.store, caller, done),
            attempt=attempt,
            changed=page.changed_since(attempt.seen if attempt else None) if item_page.stale(attempt) else None,
            kept=attempt.kept if attempt else {},
            key=_key,
        )

    # Doing

    async def attempt(self, caller: Principal, item_id: str, posted: FormData, act: Act) -> Response:
        """Does it, or shows the page with what stands against it and with everything that was typed."""
        page, q = await item_page.gather(self.inbox, self.store, caller, item_id), str(posted.get("q") or "")[:500]
        seen = item_page.seen_by(page, posted)
        try:
            there = await act(page, posted, str(posted.get("key") or "")[:200] or _key())
        except AssentError as error:
            if error.status >= 500:
                raise
            attempt = Attempt(error, item_page.kept(seen, posted), seen)
            return await self.show(caller, item_id, q=q, attempt=attempt)
        return RedirectResponse(there, 303)

    async def decide(self, page: ItemPage, posted: FormData, key: str) -> str:
        seen = item_page.seen_by(page, posted)
        unseen = Proposal(decisions.number(posted), str(posted.get("hash", "")), via=decisions.VIA)
        proposal = unseen if seen is None else decisions.proposal(seen, posted)
        await self.inbox.decide(page.caller, page.item["id"], proposal, key=key)
        return await self._onwards(page, posted)

    async def send_back(self, page: ItemPage, posted: FormData, key: str) -> str:
        await self.inbox.ask_for_revision(
            page.caller,
            page.item["id"],
            revision=decisions.number(posted),
            hash=str(posted.get("hash", "")),
            notes=decisions.text(posted, "revision_notes") or "",
            grace=decisions.GRACE,
            via=decisions.VIA,
            key=key,
        )
        return await self._onwards(page, posted)

    async def undo(self, page: ItemPage, posted: FormData, key: str) -> str:
        await self.inbox.undo(page.caller, page.item["id"], key=key)
        return _address(page.item["id"], posted, done=page.item["id"])

    async def cancel(self, page: ItemPage, posted: FormData, key: str) -> str:
        await self.inbox.cancel(page.caller, page.item["id"], notes=decisions.text(posted, "cancel_notes"), key=key)
        return await self._onwards(page, posted)

    async def settle(self, page: ItemPage, posted: FormData, key: str) -> str:
        outcome, notes = posted.get("outcome"), decisions.text(posted, "doubt_notes")
        chosen = next((one for one in _OUTCOMES if one == outcome), None)
        if chosen is None:
            raise InvalidDecision("choose what became of it: done, run again, or abandon")
        await self.inbox.settle_doubt(page.caller, page.item["id"], chosen, notes=notes, via=decisions.VIA, key=key)
        return _address(page.item["id"], posted)

    async def comment(self, page: ItemPage, posted: FormData, key: str) -> str:
        await self.inbox.comment(page.caller, page.item["id"], decisions.text(posted, "comment") or "", key=key)
        return _address(page.item["id"], posted) + "#comments"

    async def retry(self, page: ItemPage, posted: FormData, key: str) -> str:
        if page.item["delivery"] is None:
            raise Conflict("there is nothing to deliver")
        await self.deliveries.retry(page.caller, page.item["delivery"]["id"])
        return _address(page.item["id"], posted)

    async def _onwards(self, page: ItemPage, posted: FormData) -> str:
        """To the next item that waits, older ones first; back to the list where nothing does."""
        q = str(posted.get("q") or "")[:500]
        try:
            status = "" if _names_status(filters.parse(q)) else "is:pending"
            found = await self.inbox.list(page.caller, filter=f"{q} {status}".strip(), limit=PAGE)
        except Invalid:
            found = await self.inbox.list(page.caller, filter="is:pending", limit=PAGE)
        done = page.item["id"]
        waiting = [one for one in found.items if one["status"] == "PENDING" and one["id"] != done]
        older = (one for one in waiting if one["created_at"] <= page.item["created_at"])
        following = next(older, waiting[0] if waiting else None)
        return _address(following["id"] if following else None, posted, done=done)


def _key() -> str:
    """A fresh Idempotency-Key, for each form of a page its own."""
    return new_token("web")


def _names_status(wanted: Filter) -> bool:
    """Whether the search itself says which statuses it means, so that a tab must not add its own."""
    return bool(wanted.statuses) or any(name == "execution" for name, _ in wanted.columns)


def _address(item_id: str | None, posted: FormData, **query: str) -> str:
    facts = {"q": str(posted.get("q") or "")[:500], **query}
    told = urlencode({name: value for name, value in facts.items() if value})
    path = f"/inbox/{item_id}" if item_id else "/inbox"
    return f"{path}?{told}" if told else path
