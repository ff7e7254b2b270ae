"""The settings page of the saved reasons: texts that reviewers use again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Response
from fastapi.responses import RedirectResponse

from assent.errors import AssentError, Invalid
from assent.identity.model.access import Principal, Scope
from assent.review.collaboration.reasons import Reasons, Use, Wanted
from assent.surfaces.http.authentication import Caller
from assent.surfaces.web.errors import PageRoute, mendable
from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.views.shell import Shell

PATH = "/inbox/settings/reasons"
USES = {Use.BOTH: "Rejections and revisions", Use.REJECT: "Rejections", Use.REVISION: "Revisions"}
Text = Annotated[str, Form(max_length=5000)]


def _typed(name: Text = "", text: Text = "", use: Text = Use.BOTH.value) -> Wanted:
    chosen = next((known for known in Use if known == use), None)
    if chosen is None:
        raise Invalid(_("Choose where the reason is offered."))
    return Wanted(name, text.replace("\r\n", "\n"), chosen)


Sent = Annotated[Wanted, Depends(_typed)]


def routes(reasons: Reasons, shell: Shell) -> APIRouter:
    web = APIRouter(prefix=PATH, include_in_schema=False, route_class=PageRoute)
    desk = _Desk(reasons, shell)

    @web.get("")
    async def reasons_page(caller: Caller, done: str = "") -> Response:
        return await desk.show(caller, done=done)

    @web.post("")
    async def add(caller: Caller, typed: Sent) -> Response:
        return await desk.attempt(caller, lambda: reasons.create(caller, typed), "added", typed)

    @web.post("/{reason_id}/change")
    async def change(caller: Caller, reason_id: str, typed: Sent) -> Response:
        return await desk.attempt(caller, lambda: reasons.update(caller, reason_id, typed), "changed")

    @web.post("/{reason_id}/removal")
    async def remove(caller: Caller, reason_id: str) -> Response:
        return await desk.attempt(caller, lambda: reasons.remove(caller, reason_id), "removed")

    return web


class _Desk:
    def __init__(self, reasons: Reasons, shell: Shell) -> None:
        self._reasons = reasons
        self._shell = shell

    async def attempt(
        self, caller: Principal, act: Callable[[], Awaitable[Any]], done: str, typed: Wanted | None = None
    ) -> Response:
        try:
            await act()
        except AssentError as error:
            return await self.show(caller, problem=mendable(error), typed=typed)
        return RedirectResponse(f"{PATH}?done={done}", 303)

    async def show(
        self, caller: Principal, *, done: str = "", problem: AssentError | None = None, typed: Wanted | None = None
    ) -> Response:
        return await self._shell.show(
            caller,
            "settings_reasons.html",
            here="settings",
            tab="reasons",
            status=problem.status if problem else 200,
            reasons=await self._reasons.list(caller),
            may_write=caller.may(Scope.POLICY_WRITE),
            uses=USES,
            typed=typed or Wanted("", ""),
            opened=typed is not None,
            problem=problem,
            done=done,
        )
