"""The crons page: when runs start by themselves, and which due times were missed."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Form, Query, Response
from fastapi.responses import RedirectResponse

from assent.errors import NotFound
from assent.identity.model.access import Principal, Scope
from assent.kernel.store.ports import Store
from assent.runs.assistants.assistants import Assistants
from assent.runs.crons.crons import Crons, Wanted
from assent.surfaces.http.authentication import Caller
from assent.surfaces.web.errors import PageRoute
from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.text.words import Sign
from assent.surfaces.web.views import people
from assent.surfaces.web.views.shell import Shell
from assent.threads.model.crons import Cron
from assent.threads.rows.crons import Query as CronQuery

PAGE = 25
_PATH = "/inbox/crons"
SIGNS = {
    "waiting": Sign("clock", "Scheduled", "good"),
    "disabled": Sign("pause", "Disabled"),
    "ended": Sign("dash", "Ended"),
    "failing": Sign("alert", "Not fired", "bad"),
}

Offset = Annotated[int, Query(ge=0, le=1_000_000)]
Done = Annotated[str, Query(max_length=20)]


def routes(crons: Crons, assistants: Assistants, store: Store, shell: Shell) -> APIRouter:
    web = APIRouter(prefix=_PATH, include_in_schema=False, route_class=PageRoute)

    @web.get("")
    async def crons_page(caller: Caller, offset: Offset = 0, done: Done = "") -> Response:
        if not caller.may(Scope.RUNS_WRITE):
            return await shell.refuse(caller, Scope.RUNS_WRITE, here="crons", title=_("Crons"))
        page_of_crons, total = await crons.search(caller, CronQuery(), limit=PAGE, offset=offset)
        return await shell.show(
            caller,
            "crons.html",
            here="crons",
            rows=[(cron, SIGNS[state_of(cron)]) for cron in page_of_crons],
            total=total,
            offset=offset,
            size=PAGE,
            done=done,
            titles=await _titles(assistants, caller, page_of_crons),
            names=await people.names(store, caller, [cron.owner for cron in page_of_crons]),
        )

    @web.post("/{cron_id:uuid}/state")
    async def switch(caller: Caller, cron_id: UUID, enabled: Annotated[Literal["yes", "no"], Form()]) -> Response:
        given = {"enabled": enabled == "yes"}
        await crons.update(caller, str(cron_id), Wanted(given, payload=dict(given)))
        return RedirectResponse(f"{_PATH}?done={'enabled' if given['enabled'] else 'disabled'}", 303)

    @web.post("/{cron_id:uuid}/removal")
    async def remove(caller: Caller, cron_id: UUID) -> Response:
        await crons.delete(caller, str(cron_id))
        return RedirectResponse(f"{_PATH}?done=deleted", 303)

    return web


def state_of(cron: Cron) -> str:
    if not cron.enabled:
        return "disabled"
    if cron.next_run_at is None:
        return "ended"
    return "failing" if cron.problem else "waiting"


async def _titles(assistants: Assistants, caller: Principal, crons: list[Cron]) -> dict[str, str]:
    """The names of the assistants; those of graphs that are not served are missing."""
    titles = dict[str, str]()
    for assistant_id in dict.fromkeys(cron.assistant_id for cron in crons):
        try:
            titles[assistant_id] = (await assistants.get(caller, assistant_id)).name
        except NotFound:
            continue
    return titles
