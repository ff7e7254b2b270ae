"""REST: other deployments whose questions this inbox lists. Changing them is an administrator's right."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from assent.federation.deployments import RemoteDeployments, Wanted
from assent.federation.webhooks import path_of
from assent.identity.model.access import Principal
from assent.surfaces.api.schemas import Body
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.origins import public_address
from assent.surfaces.http.routing import router
from assent.threads.model.deployments import LONGEST_NAME, MOST_GRAPHS, Deployment, Trouble

Key = Annotated[str, Field(min_length=1, max_length=4000, description="stored encrypted, and never shown again")]
Headers = Annotated[dict[str, str], Field(max_length=20, description="sent with every request, stored encrypted")]
Graphs = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]],
    Field(max_length=MOST_GRAPHS, description="names of graphs or ids of assistants to follow; empty: all"),
]
Stringify = Annotated[bool, Field(description="send the arguments of calls as texts, for graphs that expect texts")]


class DeploymentIn(Body):
    url: str = Field(min_length=1, max_length=500, description="such as https://agents.example.com")
    name: str | None = Field(None, max_length=LONGEST_NAME, description="the host by default")
    key: Key | None = None
    headers: Headers = Field(default_factory=dict)
    graphs: Graphs = Field(default_factory=list)
    stringify_args: Stringify = False

    def wanted(self) -> Wanted:
        return Wanted(self.name or "", self.url, self.key, self.headers, self.graphs, self.stringify_args)


class DeploymentChange(Body):
    name: str | None = Field(None, min_length=1, max_length=LONGEST_NAME)
    headers: Headers | None = None
    graphs: Graphs | None = None
    stringify_args: Stringify | None = None

    def changes(self) -> dict[str, Any]:
        return {name: value for name, value in self.model_dump(exclude_unset=True).items() if value is not None}


class NewKey(Body):
    key: Key | None = Field(None, description="null removes the key")


class DeploymentView(BaseModel):
    id: str
    name: str
    url: str
    has_key: bool
    headers: list[str] = Field(description="the names of the extra headers")
    graphs: list[str]
    stringify_args: bool
    paused: bool
    in_file: bool = Field(description="whether `assent.toml` names it; it is changed there")
    version: str | None = Field(description="of the server, as it said at the last check")
    problem: Trouble | None = Field(description="why it cannot be followed now")
    message: str | None
    help: str | None = Field(description="the page about the problem")
    failing_since: datetime | None
    synced_at: datetime | None = Field(description="when its questions were last read")
    has_webhook: bool = Field(description="whether it can announce changes at an address of this server")
    called_at: datetime | None = Field(description="when it last did")
    created_at: datetime
    updated_at: datetime


class RotatedView(DeploymentView):
    webhook_url: str | None = Field(description="the new address of its webhook, shown once; null if it has none")


def routes(deployments: RemoteDeployments, public_url: str | None) -> APIRouter:
    api = router("/api/deployments", "deployments")

    view, address = partial(_view, deployments), partial(public_address, public_url)

    @api.get("")
    async def list_deployments(caller: Caller) -> list[DeploymentView]:
        return [view(caller, deployment) for deployment in await deployments.list(caller)]

    @api.post("", status_code=201)
    async def add_deployment(caller: Caller, body: DeploymentIn) -> DeploymentView:
        """Adds it and checks the connection; `problem` says why it cannot be followed."""
        return view(caller, await deployments.add(caller, body.wanted()))

    @api.get("/{deployment_id}")
    async def get_deployment(caller: Caller, deployment_id: str) -> DeploymentView:
        return view(caller, await deployments.get(caller, deployment_id))

    @api.patch("/{deployment_id}")
    async def change_deployment(caller: Caller, deployment_id: str, body: DeploymentChange) -> DeploymentView:
        return view(caller, await deployments.change(caller, deployment_id, body.changes()))

    @api.delete("/{deployment_id}")
    async def remove_deployment(caller: Caller, deployment_id: str) -> DeploymentView:
        """Removes it here and closes its open items; nothing changes on its server."""
        before = view(caller, await deployments.get(caller, deployment_id))
        await deployments.remove(caller, deployment_id)
        return before

    @api.post("/{deployment_id}/check")
    async def check_deployment(caller: Caller, deployment_id: str) -> DeploymentView:
        return view(caller, await deployments.check(caller, deployment_id))

    @api.put("/{deployment_id}/key")
    async def rotate_deployment_key(request: Request, caller: Caller, deployment_id: str, body: NewKey) -> RotatedView:
        """The webhook, if there is one, gets a new address with it."""
        rotated = await deployments.rotate(caller, deployment_id, body.key)
        url = None if rotated.webhook is None else address(request) + path_of(rotated.webhook)
        return RotatedView(**view(caller, rotated.deployment).model_dump(), webhook_url=url)

    @api.post("/{deployment_id}/pause")
    async def pause_deployment(caller: Caller, deployment_id: str) -> DeploymentView:
        return view(caller, await deployments.pause(caller, deployment_id))

    @api.post("/{deployment_id}/resume")
    async def resume_deployment(caller: Caller, deployment_id: str) -> DeploymentView:
        return view(caller, await deployments.pause(caller, deployment_id, paused=False))

    return api


def _view(deployments: RemoteDeployments, caller: Principal, deployment: Deployment) -> DeploymentView:
    has_key, headers = deployments.header_names(caller.tenant, deployment)
    return DeploymentView(
        id=deployment.id,
        name=deployment.name,
        url=deployment.url,
        has_key=has_key,
        headers=list(headers),
        graphs=list(deployment.graphs),
        stringify_args=deployment.stringify_args,
        paused=deployment.paused,
        in_file=deployment.in_file,
        version=str((deployment.info or {}).get("version") or "") or None,
        problem=deployment.problem,
        message=deployment.message,
        help=deployment.problem.page if deployment.problem else None,
        failing_since=deployment.failing_since,
        synced_at=deployment.synced_at,
        has_webhook=deployment.has_webhook,
        called_at=deployment.called_at,
        created_at=deployment.created_at,
        updated_at=deployment.updated_at,
    )
