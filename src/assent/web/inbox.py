"""The inbox in the browser: the list, an item beside it, and everything a person can do about it. Plain forms: each
does one thing, says which revision it is about, and leads on to where that can be seen. A script may ask for a part of
a page by `Assent-Part`; it gets the same markup that stands in the whole page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.responses import RedirectResponse
from starlette.datastructures import FormData

from assent.domain.access import Principal
from assent.domain.ids import new_token
from assent.errors import AssentError
from assent.http.authentication import Caller
from assent.web import item_page, listing, people
from assent.web.desk import SNOOZES, Act, Desk, Onward
from assent.web.errors import PageRoute, mendable
from assent.web.facets import facets
from assent.web.item_page import Attempt, ItemPage
from assent.web.listing import TABS, Wanted
from assent.web.presence import Presence
from assent.web.rendering import render
from assent.web.shell import Shell

Text = Annotated[str, Query(max_length=500)]
Part = Annotated[str, Header(alias="Assent-Part", max_length=20)]
_MOST_FIELDS = 20_000


def routes(desk: Desk, shell: Shell) -> APIRouter:
    web = APIRouter(prefix="/inbox", include_in_schema=False, route_class=PageRoute)
    pages = _Pages(desk, shell)
    _look(web, pages)
    _reveal(web, pages)
    for name, act in desk.acts.items():
        web.add_api_route(f"/{{item_id:uuid}}/{name}", _posted(pages, act), methods=["POST"], name=name)
    return web


def _wanted(q: Text = "", tab: str = "pending", inbox: Text = "") -> Wanted:
    return Wanted(q.strip(), tab if tab in TABS else "pending", inbox)


InAddress = Annotated[Wanted, Depends(_wanted)]


def _look(web: APIRouter, pages: _Pages) -> None:
    @web.get("")
    async def list_page(
        caller: Caller, wanted: InAddress, cursor: str | None = None, done: str | None = None, part: Part = ""
    ) -> Response:
        return await pages.list(caller, wanted, cursor, done, part)

    @web.get("/{item_id:uuid}")
    async def show_page(
        caller: Caller, item_id: UUID, wanted: InAddress, done: str | None = None, part: Part = ""
    ) -> Response:
        return await pages.show(caller, str(item_id), wanted, done=done, part=part)

    @web.get("/{item_id:uuid}/presence")
    async def presence(caller: Caller, item_id: UUID) -> Response:
        """Asked for now and then by an open page: who asks is looking."""
        await pages.desk.inbox.get(caller, str(item_id))
        looking = pages.presence.look(caller, str(item_id))
        names = await people.names(pages.desk.store, caller, looking)
        return render("parts/presence.html", looking=looking, names=names)

    @web.get("/{item_id:uuid}/cancel")
    async def cancel_page(caller: Caller, item_id: UUID, wanted: InAddress) -> Response:
        """Asks once more before an item is closed for good without a decision."""
        page = await pages.desk.page(caller, str(item_id))
        return await pages.shell.show(
            caller, "cancel.html", here="inbox", page=page, item=page.item, wanted=wanted, key=new_key
        )


def _reveal(web: APIRouter, pages: _Pages) -> None:
    @web.post("/{item_id:uuid}/reveal")
    async def reveal(caller: Caller, item_id: UUID) -> Response:
        """A page of its own, that is neither kept nor come back to."""
        actions, item = await pages.desk.inbox.reveal(caller, str(item_id)), await pages.desk.page(caller, str(item_id))
        return await pages.shell.show(caller, "reveal.html", here="inbox", item=item.item, actions=actions)


def _posted(pages: _Pages, act: Act) -> Callable[..., Awaitable[Response]]:
    async def route(request: Request, caller: Caller, item_id: UUID, part: Part = "") -> Response:
        return await pages.attempt(caller, str(item_id), await request.form(max_fields=_MOST_FIELDS), act, part)

    return route


class _Pages:
    """From what is asked to the page, or the part of it; and from an error back to the page with what was typed."""

    def __init__(self, desk: Desk, shell: Shell) -> None:
        self.desk = desk
        self.shell = shell
        self.presence = Presence()

    async def list(
        self, caller: Principal, wanted: Wanted, cursor: str | None, done: str | None, part: str
    ) -> Response:
        wanted = await self._in_inbox(caller, wanted)
        listed = await self._listed(caller, wanted, cursor)
        told = await item_page.told(self.desk.inbox, self.desk.store, caller, done)
        status = listed.problem.status if listed.problem else 200
        return await self._page(
            caller, wanted, "listing" if part == "list" else "", status=status, listed=listed, told=told, item=None
        )

    async def show(
        self,
        caller: Principal,
        item_id: str,
        wanted: Wanted,
        *,
        done: str | None = None,
        attempt: Attempt | None = None,
        part: str = "",
    ) -> Response:
        wanted, page = await self._in_inbox(caller, wanted), await self.desk.page(caller, item_id)
        return await self._page(
            caller,
            wanted,
            part if part in ("detail", "row") else "",
            status=attempt.problem.status if attempt else 200,
            listed=None if part in ("detail", "row") else await self._listed(caller, wanted),
            told=await item_page.told(self.desk.inbox, self.desk.store, caller, done),
            page=page,
            item=page.item,
            attempt=attempt,
            changed=page.changed_since(attempt.seen if attempt else None) if item_page.stale(attempt) else None,
            kept=attempt.kept if attempt else page.draft,
            snoozes=SNOOZES,
            **await self._looking(caller, page),
        )

    async def _looking(self, caller: Principal, page: ItemPage) -> dict[str, Any]:
        looking = self.presence.look(caller, page.item["id"])
        return {"looking": looking, "names": page.names.knowing(await people.names(self.desk.store, caller, looking))}

    async def attempt(self, caller: Principal, item_id: str, posted: FormData, act: Act, part: str) -> Response:
        """Does it, or shows the page with what stands against it and with everything that was typed."""
        page, wanted = await self.desk.page(caller, item_id), _sent_along(posted)
        wanted = await self._in_inbox(caller, wanted)
        seen = item_page.seen_by(page, posted)
        try:
            onward = await act(page, posted, wanted, str(posted.get("key") or "")[:200] or new_key())
        except AssentError as error:
            attempt = Attempt(mendable(error), item_page.kept(seen, posted), seen)
            return await self.show(caller, item_id, wanted, attempt=attempt, part=part)
        return await self._onwards(caller, wanted, onward, part)

    async def _onwards(self, caller: Principal, wanted: Wanted, onward: Onward, part: str) -> Response:
        """A browser is led there; a script gets what stands there at once, and where that is."""
        address = onward.address(wanted)
        if part != "detail" or onward.item_id is None:
            return RedirectResponse(address, 303)
        shown = await self.show(caller, onward.item_id, wanted, done=onward.done, part=part)
        shown.headers["Assent-Location"] = address
        return shown

    async def _page(self, caller: Principal, wanted: Wanted, part: str, *, status: int, **facts: Any) -> Response:
        facts |= {"wanted": wanted, "key": new_key, "facets": facets()}
        if part in ("detail", "row"):
            return render(f"parts/{part}.html", status=status, **facts)
        template = f"parts/{part}.html" if part else "inbox.html"
        return await self.shell.show(caller, template, here=wanted.inbox or "inbox", status=status, **facts)

    async def _listed(self, caller: Principal, wanted: Wanted, cursor: str | None = None) -> listing.Listing:
        return await listing.gather(self.desk.inbox, self.desk.store, caller, wanted, cursor)

    async def _in_inbox(self, caller: Principal, wanted: Wanted) -> Wanted:
        """With the filter of the inbox that is named; one that is gone, or somebody else's, is none."""
        found = await self.shell.inbox(caller, wanted.inbox) if wanted.inbox else None
        return replace(wanted, base=found["filter"]) if found else replace(wanted, inbox="")


def _sent_along(posted: FormData) -> Wanted:
    """The list that the form was sent from."""
    facts = {name: str(posted.get(name) or "")[:500] for name in ("q", "tab", "inbox")}
    return _wanted(**facts)


def new_key() -> str:
    """A fresh Idempotency-Key, for each form of a page its own."""
    return new_token("web")
