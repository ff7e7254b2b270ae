"""The settings pages: this server, its deployments and failed deliveries. `keys.py`, `people.py` and `account.py` have
the other tabs."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from assent.errors import AssentError
from assent.identity.model.access import Principal, Scope
from assent.outbox.model import DeliveryStatus
from assent.review.deliveries import Deliveries
from assent.settings import Settings
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.origins import address_of
from assent.surfaces.web.errors import PageRoute, mendable
from assent.surfaces.web.views.shell import Shell

PAGE = 50
PATH = "/inbox/settings"
Cursor = Annotated[str | None, Query(max_length=1000)]


def routes(deliveries: Deliveries, graphs: Iterable[str], settings: Settings, shell: Shell) -> APIRouter:
    web = APIRouter(prefix=PATH, include_in_schema=False, route_class=PageRoute)
    desk = _Desk(deliveries, shell)

    @web.get("")
    async def server_page(request: Request, caller: Caller) -> Response:
        facts: dict[str, Any] = {"mode": settings.mode, "database": settings.database_shown, "graphs": sorted(graphs)}
        address = shell.inboxes.this_server(address_of(request))
        return await shell.show(
            caller,
            "settings.html",
            here="settings",
            tab="server",
            version=version("assent"),
            address=address,
            **facts,
        )

    @web.get("/notifications")
    async def notifications_page(caller: Caller, cursor: Cursor = None, done: str = "") -> Response:
        return await desk.notifications(caller, cursor=cursor, done=done)

    @web.post("/notifications/{delivery_id}/retry")
    async def retry(caller: Caller, delivery_id: str) -> Response:
        try:
            await deliveries.retry(caller, delivery_id)
        except AssentError as error:
            if error.status == 403:
                raise
            return await desk.notifications(caller, problem=mendable(error))
        return RedirectResponse(f"{PATH}/notifications?done=retried", 303)

    @web.post("/notifications/secret")
    async def secret(caller: Caller) -> Response:
        """POST only, so that no link leads to the secret."""
        return await desk.notifications(caller, secret=deliveries.signing_secret(caller))

    return web


class _Desk:
    def __init__(self, deliveries: Deliveries, shell: Shell) -> None:
        self._deliveries = deliveries
        self._shell = shell

    async def notifications(
        self,
        caller: Principal,
        *,
        cursor: str | None = None,
        done: str = "",
        secret: str | None = None,
        problem: AssentError | None = None,
    ) -> Response:
        failed = await self._deliveries.list(caller, status=DeliveryStatus.FAILED, limit=PAGE, cursor=cursor)
        return await self._shell.show(
            caller,
            "settings_notifications.html",
            here="settings",
            tab="notifications",
            status=problem.status if problem else 200,
            failed=failed,
            first=cursor is None,
            may_retry=caller.may(Scope.RUNS_WRITE),
            secret=secret,
            problem=problem,
            done=done,
        )
