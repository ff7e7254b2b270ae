"""Pages to add, edit and remove inboxes: "Add Inbox" and "Save this search"."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from assent.errors import AssentError, Invalid
from assent.identity.model.access import Principal
from assent.kernel.ids import new_token
from assent.review.inboxes import LONGEST_NAME, Inboxes, Wanted
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.origins import address_of
from assent.surfaces.web.errors import PageRoute, mendable
from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.views.shell import Shell

Text = Annotated[str, Form(max_length=1000)]
Search = Annotated[str | None, Query(max_length=500)]
Act = Callable[[Wanted], Awaitable[str]]
"""Saves the inbox and returns its id."""

_Typed = tuple[Wanted, bool]


def _typed(graph_id: Text = "", url: Text = "", name: Text = "", filter: Text = "", search: Text = "") -> _Typed:
    """The form's values, and whether it is a saved search."""
    return Wanted(graph_id, url, name, filter), bool(search)


Typed = Annotated[_Typed, Depends(_typed)]


def routes(inboxes: Inboxes, graphs: Iterable[str], shell: Shell) -> APIRouter:
    web = APIRouter(prefix="/inbox/inboxes", include_in_schema=False, route_class=PageRoute)
    desk = _Desk(inboxes, graphs, shell)

    @web.get("/new")
    async def new_page(request: Request, caller: Caller, q: Search = None) -> Response:
        if q is not None:
            return await desk.form(caller, Wanted(filter=q.strip()), search=True)
        return await desk.form(caller, Wanted(url=desk.this_server(request)), search=False)

    @web.post("")
    async def create(request: Request, caller: Caller, typed: Typed, key: Text = "") -> Response:

        async def act(wanted: Wanted) -> str:
            made = await inboxes.create(caller, wanted, here=address_of(request), key=key[:200] or None)
            return str(made["id"])

        return await desk.attempt(caller, typed, act)

    @web.get("/{inbox_id:uuid}")
    async def edit_page(request: Request, caller: Caller, inbox_id: UUID) -> Response:
        saved = await inboxes.get(caller, str(inbox_id))
        if saved["graph_id"] is None:
            wanted = Wanted(name=saved["name"], filter=saved["filter"])
            return await desk.form(caller, wanted, search=True, inbox_id=saved["id"])
        wanted = Wanted(saved["graph_id"], saved["url"] or desk.this_server(request), saved["name"])
        return await desk.form(caller, wanted, search=False, inbox_id=saved["id"])

    @web.post("/{inbox_id:uuid}")
    async def change(request: Request, caller: Caller, inbox_id: UUID, typed: Typed) -> Response:
        saved = await inboxes.get(caller, str(inbox_id))

        async def act(wanted: Wanted) -> str:
            return str((await inboxes.update(caller, saved["id"], wanted, here=address_of(request)))["id"])

        return await desk.attempt(caller, typed, act, inbox_id=saved["id"])

    @web.post("/{inbox_id:uuid}/removal")
    async def remove(caller: Caller, inbox_id: UUID) -> Response:
        await inboxes.remove(caller, str(inbox_id))
        return RedirectResponse("/inbox", 303)

    return web


class _Desk:
    def __init__(self, inboxes: Inboxes, graphs: Iterable[str], shell: Shell) -> None:
        self._inboxes = inboxes
        self._graphs = graphs
        self._shell = shell

    def this_server(self, request: Request) -> str:
        return self._inboxes.this_server(address_of(request)) or ""

    async def form(
        self,
        caller: Principal,
        wanted: Wanted,
        *,
        search: bool,
        inbox_id: str = "",
        problem: AssentError | None = None,
    ) -> Response:
        return await self._shell.show(
            caller,
            "inbox_form.html",
            here=inbox_id or "settings",
            status=problem.status if problem else 200,
            wanted=wanted,
            search=search,
            inbox_id=inbox_id,
            problem=problem,
            graphs=sorted(self._graphs),
            key=new_token("web"),
            longest_name=LONGEST_NAME,
        )

    async def attempt(self, caller: Principal, typed: _Typed, act: Act, *, inbox_id: str = "") -> Response:
        """Saves the inbox; on errors, shows the form with the error and the person's input."""
        wanted, search = typed
        try:
            _complete(wanted, search=search)
            saved = await act(wanted)
        except AssentError as error:
            return await self.form(caller, wanted, search=search, inbox_id=inbox_id, problem=mendable(error))
        return RedirectResponse(f"/inbox?inbox={saved}", 303)


def _complete(wanted: Wanted, *, search: bool) -> None:
    """Checks required fields again, because a client can skip the browser's checks."""
    if search and not wanted.filter.strip():
        raise Invalid(_("The filter is missing. Enter a search."))
    if not search and not wanted.graph_id.strip():
        raise Invalid(_("Assistant/Graph ID is missing."))
    if not search and not wanted.url.strip():
        raise Invalid(_("Deployment URL is missing."))
