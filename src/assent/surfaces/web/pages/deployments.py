"""The page of deployments: other servers whose questions are listed here. A key is never shown again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, TypeVar
from uuid import UUID

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import RedirectResponse

from assent.errors import AssentError, Forbidden
from assent.federation.deployments import RemoteDeployments, Wanted
from assent.federation.webhooks import DeploymentWebhooks, path_of
from assent.identity.model.access import Principal
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.origins import public_address
from assent.surfaces.web.errors import PageRoute, mendable
from assent.surfaces.web.text.words import Sign
from assent.surfaces.web.views.shell import Shell
from assent.threads.model.deployments import LONGEST_NAME, Deployment

T = TypeVar("T")

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


def routes(
    deployments: RemoteDeployments, webhooks: DeploymentWebhooks, shell: Shell, public_url: str | None
) -> APIRouter:
    web = APIRouter(prefix=PATH, include_in_schema=False, route_class=PageRoute)
    desk = _Desk(deployments, shell)
    address = partial(_webhook_address, public_url)
    _add_webhooks(web, webhooks, desk, address)

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
    async def rotate(request: Request, caller: Caller, deployment_id: UUID, key: Text = "") -> Response:
        async def rotation() -> str | None:
            return (await deployments.rotate(caller, str(deployment_id), key.strip() or None)).webhook

        return await desk.attempt(caller, rotation(), "rotated", webhook=partial(address, request))

    @web.post("/{deployment_id:uuid}/pause")
    async def pause(caller: Caller, deployment_id: UUID, paused: Text = "yes") -> Response:
        pausing = deployments.pause(caller, str(deployment_id), paused=paused == "yes")
        return await desk.attempt(caller, pausing, "paused" if paused == "yes" else "resumed")

    @web.post("/{deployment_id:uuid}/removal")
    async def remove(caller: Caller, deployment_id: UUID) -> Response:
        return await desk.attempt(caller, deployments.remove(caller, str(deployment_id)), "removed")

    return web


def _add_webhooks(
    web: APIRouter, webhooks: DeploymentWebhooks, desk: _Desk, address: Callable[[Request, str | None], str | None]
) -> None:
    @web.post("/{deployment_id:uuid}/webhook")
    async def create_webhook(request: Request, caller: Caller, deployment_id: UUID) -> Response:
        creation = webhooks.create(caller, str(deployment_id))
        return await desk.attempt(caller, creation, "webhook", webhook=partial(address, request))

    @web.post("/{deployment_id:uuid}/webhook/removal")
    async def remove_webhook(caller: Caller, deployment_id: UUID) -> Response:
        return await desk.attempt(caller, webhooks.remove(caller, str(deployment_id)), "webhook_removed")


def _webhook_address(public_url: str | None, request: Request, secret: str | None) -> str | None:
    return None if secret is None else public_address(public_url, request) + path_of(secret)


class _Desk:
    def __init__(self, deployments: RemoteDeployments, shell: Shell) -> None:
        self._deployments = deployments
        self._shell = shell

    async def attempt(
        self,
        caller: Principal,
        act: Awaitable[T],
        done: str,
        typed: Typed | None = None,
        *,
        webhook: Callable[[T], str | None] = lambda _: None,
    ) -> Response:
        """Does it; shows an error of an administrator on the page, with the input. The address of a new webhook, which
        `webhook` makes of the result, is in this response only."""
        try:
            url = webhook(await act)
        except AssentError as error:
            if error.status == Forbidden.status:
                raise
            return await self.show(caller, typed=typed, problem=mendable(error))
        if url is not None:
            return await self.show(caller, done=done, webhook=url)
        return RedirectResponse(f"{PATH}?done={done}", 303)

    async def show(
        self,
        caller: Principal,
        *,
        typed: Typed | None = None,
        problem: AssentError | None = None,
        done: str = "",
        webhook: str | None = None,
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
            webhook=webhook,
            longest_name=LONGEST_NAME,
        )


def _sign(deployment: Deployment) -> Sign:
    return SIGNS.get(deployment.state, SIGNS["failing"])
