"""The page of deployments: other servers whose questions are listed here. A key is never shown again."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Form, Response
from fastapi.responses import RedirectResponse

from assent.errors import AssentError, Forbidden
from assent.federation.deployments import RemoteDeployments, Wanted
from assent.identity.model.access import Principal
from assent.surfaces.http.authentication import Caller
from assent.surfaces.web.errors import PageRoute, mendable
from assent.surfaces.web.text.words import Sign
from assent.surfaces.web.views.shell import Shell
from assent.threads.model.deployments import LONGEST_NAME, Deployment

PATH = "/inbox/settings/deployments"
Text = Annotated[str, Form(max_length=5000)]
SIGNS = {
    "ok": Sign("check", "Working", "good"),
    "paused": Sign("pause", "Paused"),
    "failing": Sign("alert", "Not working", "bad"),
}


@dataclass(frozen=True, slots=True)
class Typed:
    url: str = ""
    name: str = ""
    key: str = ""
    graphs: str = ""
    headers: str = ""
    stringify_args: bool = False

    def wanted(self) -> Wanted:
        graphs = self.graphs.replace(",", " ").split()
        named = (line.partition(":") for line in self.headers.splitlines() if line.strip())
        headers = {name.strip(): value.strip() for name, _, value in named}
        return Wanted(self.name, self.url, self.key.strip() or None, headers, graphs, self.stringify_args)


def _typed(
    url: Text = "", name: Text = "", key: Text = "", graphs: Text = "", headers: Text = "", stringify_args: Text = ""
) -> Typed:
    return Typed(url, name, key, graphs, headers, stringify_args == "yes")


def routes(deployments: RemoteDeployments, shell: Shell) -> APIRouter:
    web = APIRouter(prefix=PATH, include_in_schema=False, route_class=PageRoute)
    desk = _Desk(deployments, shell)

    @web.get("")
    async def deployments_page(caller: Caller, done: str = "") -> Response:
        return await desk.show(caller, done=done)

    @web.post("")
    async def add(caller: Caller, typed: Annotated[Typed, Depends(_typed)]) -> Response:
        return await desk.attempt(caller, deployments.add(caller, typed.wanted()), "added", typed)

    @web.post("/{deployment_id:uuid}/check")
    async def check(caller: Caller, deployment_id: UUID) -> Response:
        return await desk.attempt(caller, deployments.check(caller, str(deployment_id)), "checked")

    @web.post("/{deployment_id:uuid}/key")
    async def rotate(caller: Caller, deployment_id: UUID, key: Text = "") -> Response:
        rotation = deployments.rotate(caller, str(deployment_id), key.strip() or None)
        return await desk.attempt(caller, rotation, "rotated")

    @web.post("/{deployment_id:uuid}/pause")
    async def pause(caller: Caller, deployment_id: UUID, paused: Text = "yes") -> Response:
        pausing = deployments.pause(caller, str(deployment_id), paused=paused == "yes")
        return await desk.attempt(caller, pausing, "paused" if paused == "yes" else "resumed")

    @web.post("/{deployment_id:uuid}/removal")
    async def remove(caller: Caller, deployment_id: UUID) -> Response:
        return await desk.attempt(caller, deployments.remove(caller, str(deployment_id)), "removed")

    return web


class _Desk:
    def __init__(self, deployments: RemoteDeployments, shell: Shell) -> None:
        self._deployments = deployments
        self._shell = shell

    async def attempt(
        self, caller: Principal, act: Awaitable[Deployment], done: str, typed: Typed | None = None
    ) -> Response:
        """Does it; shows an error of an administrator on the page, with the input."""
        try:
            await act
        except AssentError as error:
            if error.status == Forbidden.status:
                raise
            return await self.show(caller, typed=typed, problem=mendable(error))
        return RedirectResponse(f"{PATH}?done={done}", 303)

    async def show(
        self, caller: Principal, *, typed: Typed | None = None, problem: AssentError | None = None, done: str = ""
    ) -> Response:
        rows = [(deployment, _sign(deployment)) for deployment in await self._deployments.list(caller)]
        return await self._shell.show(
            caller,
            "settings_deployments.html",
            here="settings",
            tab="deployments",
            status=problem.status if problem else 200,
            rows=rows,
            typed=typed or Typed(),
            opened=typed is not None or not rows,
            problem=problem,
            done=done,
            longest_name=LONGEST_NAME,
        )


def _sign(deployment: Deployment) -> Sign:
    return SIGNS.get(deployment.state, SIGNS["failing"])
