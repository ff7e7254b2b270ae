"""The inbox pages: the list, an item beside it, and the item's actions as plain forms. Each form names its revision and
redirects to the result. Scripts request a part of a page with the header `Assent-Part` and get the same markup as in
the full page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from starlette.datastructures import FormData

from assent.errors import AssentError
from assent.identity.model.access import Principal
from assent.kernel.ids import new_token
from assent.review import live
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.passkey_origins import Relying, Site
from assent.surfaces.web import assets
from assent.surfaces.web.errors import PageRoute, mendable
from assent.surfaces.web.pages.desk import SNOOZES, Act, Ask, Desk, Onward
from assent.surfaces.web.rendering import draw, render
from assent.surfaces.web.views import item_list, item_page, people
from assent.surfaces.web.views.facets import facets, suggestions
from assent.surfaces.web.views.item_list import TABS, Wanted
from assent.surfaces.web.views.item_page import Attempt, ItemPage
from assent.surfaces.web.views.presence import Presence
from assent.surfaces.web.views.shell import MINE, Shell

Text = Annotated[str, Query(max_length=500)]
Part = Annotated[str, Header(alias="Assent-Part", max_length=20)]
_MOST_FIELDS = 20_000
OWN_LISTS = frozenset(entry.filter for entry in MINE)
_ICON_HEADERS = {"Cache-Control": "private, max-age=86400", "X-Content-Type-Options": "nosniff"}


def routes(desk: Desk, relying: Relying, shell: Shell) -> APIRouter:
    web = APIRouter(prefix="/inbox", include_in_schema=False, route_class=PageRoute)
    pages = _Pages(desk, relying, shell)
    _look(web, pages)
    _reveal(web, pages)
    for name, act in desk.acts.items():
        web.add_api_route(f"/{{item_id:uuid}}/{name}", _posted(pages, act), methods=["POST"], name=name)
    for name, ask in desk.confirmations.items():
        path = f"/{{item_id:uuid}}/{name}/confirmation"
        web.add_api_route(path, _confirming(pages, ask), methods=["POST"], name=f"{name} confirmation")
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

    @web.get("/icon.svg")
    async def icon(caller: Caller, count: Annotated[str, Query(pattern=r"^[0-9,]{1,7}\+?$")]) -> Response:
        """The icon of the tab, with the number of pending items. A picture in the page itself would need a weaker
        content security policy."""
        return Response(assets.counted_icon(count), media_type="image/svg+xml", headers=_ICON_HEADERS)

    @web.get("/{item_id:uuid}")
    async def show_page(
        request: Request, caller: Caller, item_id: UUID, wanted: InAddress, done: str | None = None, part: Part = ""
    ) -> Response:
        return await pages.show(caller, str(item_id), wanted, pages.relying.site(request), done=done, part=part)

    @web.get("/{item_id:uuid}/presence")
    async def presence(caller: Caller, item_id: UUID) -> Response:
        """Polled by open pages; each request records the caller as a viewer."""
        await pages.desk.inbox.get(caller, str(item_id))
        looking = pages.presence.look(caller, str(item_id))
        names = await people.names(pages.desk.store, caller, looking)
        return render("parts/presence.html", looking=looking, names=names)

    @web.get("/{item_id:uuid}/context")
    async def context(caller: Caller, item_id: UUID) -> Response:
        """Read from the item's deployment once its page is shown: the page never waits for it."""
        item, read = await pages.desk.remote_context(caller, str(item_id))
        return await draw("parts/context.html", item=item, context=read)

    @web.get("/{item_id:uuid}/cancel")
    async def cancel_page(caller: Caller, item_id: UUID, wanted: InAddress) -> Response:
        """Confirmation before an item is closed without a decision."""
        page = await pages.desk.page(caller, str(item_id))
        return await pages.shell.show(
            caller, "cancel.html", here="inbox", page=page, item=page.item, wanted=wanted, key=new_key
        )


def _reveal(web: APIRouter, pages: _Pages) -> None:
    @web.post("/{item_id:uuid}/reveal")
    async def reveal(caller: Caller, item_id: UUID) -> Response:
        """Shows the secrets on a separate page that is not cached."""
        actions, item = await pages.desk.inbox.reveal(caller, str(item_id)), await pages.desk.page(caller, str(item_id))
        return await pages.shell.show(caller, "reveal.html", here="inbox", item=item.item, actions=actions)


def _posted(pages: _Pages, act: Act) -> Callable[..., Awaitable[Response]]:
    async def route(request: Request, caller: Caller, item_id: UUID, part: Part = "") -> Response:
        posted, site = await request.form(max_fields=_MOST_FIELDS), pages.relying.site(request)
        return await pages.attempt(caller, str(item_id), posted, act, part, site)

    return route


def _confirming(pages: _Pages, ask: Ask) -> Callable[..., Awaitable[Response]]:
    async def route(request: Request, caller: Caller, item_id: UUID, part: Part = "") -> Response:
        """The passkey challenge for the page's script; 204 if no passkey is needed."""
        posted, site = await request.form(max_fields=_MOST_FIELDS), pages.relying.site(request)
        return await pages.confirm(caller, str(item_id), posted, ask, part, site)

    return route


class _Pages:
    """Renders pages and parts; on errors, the page with the person's input."""

    def __init__(self, desk: Desk, relying: Relying, shell: Shell) -> None:
        self.desk = desk
        self.relying = relying
        self.shell = shell
        self.presence = Presence()

    async def list(
        self, caller: Principal, wanted: Wanted, cursor: str | None, done: str | None, part: str
    ) -> Response:
        after = await self._position(caller)
        wanted = await self._in_inbox(caller, wanted)
        listed = await self._listed(caller, wanted, cursor)
        told = await item_page.told(self.desk.inbox, self.desk.store, caller, done)
        status = listed.problem.status if listed.problem else 200
        return await self._page(
            caller,
            wanted,
            "listing" if part == "list" else "",
            status=status,
            listed=listed,
            told=told,
            item=None,
            after=after,
        )

    async def show(
        self,
        caller: Principal,
        item_id: str,
        wanted: Wanted,
        site: Site,
        *,
        done: str | None = None,
        attempt: Attempt | None = None,
        part: str = "",
    ) -> Response:
        after = await self._position(caller)
        wanted, page = await self._in_inbox(caller, wanted), await self.desk.page(caller, item_id, site)
        return await self._page(
            caller,
            wanted,
            part if part in ("detail", "row") else "",
            after=after,
            status=attempt.problem.status if attempt else 200,
            listed=None if part in ("detail", "row") else await self._listed(caller, wanted),
            told=await item_page.told(self.desk.inbox, self.desk.store, caller, done),
            page=page,
            item=page.item,
            attempt=attempt,
            changed=page.changed_since(attempt.seen if attempt else None) if item_page.stale(attempt) else None,
            kept=attempt.kept if attempt else page.draft,
            snoozes=SNOOZES,
            undo=self.desk.undo_window.total_seconds(),
            **await self._looking(caller, page),
        )

    async def _position(self, caller: Principal) -> int:
        """Where the page's stream of changes begins: before anything that the page shows is read."""
        return await self.desk.store.read(caller.tenant, live.position)

    async def _looking(self, caller: Principal, page: ItemPage) -> dict[str, Any]:
        looking = self.presence.look(caller, page.item["id"])
        return {"looking": looking, "names": page.names.knowing(await people.names(self.desk.store, caller, looking))}

    async def attempt(
        self, caller: Principal, item_id: str, posted: FormData, act: Act, part: str, site: Site
    ) -> Response:
        """Runs the action; on errors, shows the page with the error and the person's input."""
        page, wanted = await self.desk.page(caller, item_id, site), _sent_along(posted)
        wanted = await self._in_inbox(caller, wanted)
        try:
            onward = await act(page, posted, wanted, str(posted.get("key") or "")[:200] or new_key())
        except AssentError as error:
            return await self._refused(page, wanted, posted, error, part)
        return await self._onwards(caller, wanted, onward, part, site)

    async def confirm(
        self, caller: Principal, item_id: str, posted: FormData, ask: Ask, part: str, site: Site
    ) -> Response:
        page = await self.desk.page(caller, item_id, site)
        try:
            options = await ask(page, posted)
        except AssentError as error:
            return await self._refused(page, await self._in_inbox(caller, _sent_along(posted)), posted, error, part)
        return Response(status_code=204) if options is None else JSONResponse(options)

    async def _refused(
        self, page: ItemPage, wanted: Wanted, posted: FormData, error: AssentError, part: str
    ) -> Response:
        seen = item_page.seen_by(page, posted)
        attempt = Attempt(mendable(error), item_page.kept(seen, posted), seen)
        return await self.show(page.caller, page.item["id"], wanted, page.site, attempt=attempt, part=part)

    async def _onwards(self, caller: Principal, wanted: Wanted, onward: Onward, part: str, site: Site) -> Response:
        """Redirects a browser; sends a script the next page's content and URL."""
        address = onward.address(wanted)
        if part != "detail" or onward.item_id is None:
            return RedirectResponse(address, 303)
        shown = await self.show(caller, onward.item_id, wanted, site, done=onward.done, part=part)
        shown.headers["Assent-Location"] = address
        return shown

    async def _page(self, caller: Principal, wanted: Wanted, part: str, *, status: int, **facts: Any) -> Response:
        facts |= {"wanted": wanted, "key": new_key}
        if facts.get("listed"):
            menus = facets(facts["listed"])
            facts |= {"facets": menus, "suggestions": suggestions(menus)}
        if part in ("detail", "row"):
            return await draw(f"parts/{part}.html", status=status, **facts)
        template = f"parts/{part}.html" if part else "inbox.html"
        here = wanted.inbox or (wanted.q if wanted.q in OWN_LISTS else "inbox")
        facts |= {"waiting": item_list.waiting(facts.get("listed"))}
        return await self.shell.show(caller, template, here=here, status=status, **facts)

    async def _listed(self, caller: Principal, wanted: Wanted, cursor: str | None = None) -> item_list.Listing:
        return await item_list.gather(self.desk.inbox, self.desk.store, caller, wanted, cursor)

    async def _in_inbox(self, caller: Principal, wanted: Wanted) -> Wanted:
        """Adds the filter of the named inbox; ignores a missing or foreign inbox."""
        saved = await self.shell.inbox(caller, wanted.inbox) if wanted.inbox else None
        return replace(wanted, base=saved["filter"]) if saved else replace(wanted, inbox="")


def _sent_along(posted: FormData) -> Wanted:
    """The list that the form belongs to."""
    facts = {name: str(posted.get(name) or "")[:500] for name in ("q", "tab", "inbox")}
    return _wanted(**facts)


def new_key() -> str:
    """A new idempotency key for one form."""
    return new_token("web")
