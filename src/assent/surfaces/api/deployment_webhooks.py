"""REST: the webhooks of deployments, with which they announce changes.

The route that a deployment calls has no other credential than the secret in its query. It reads no body, and its calls
are limited per webhook.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from assent.federation.webhooks import PATH, DeploymentWebhooks, path_of
from assent.kernel.ids import token_hash
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.limits.rates import Rate
from assent.surfaces.http.origins import public_address
from assent.surfaces.http.public import public, unread
from assent.surfaces.http.routing import router

_CALLS_PER_SECOND = 20.0


class NewWebhook(BaseModel):
    url: str = Field(description="shown once; a POST to it makes this server read the deployment's questions at once")


def routes(webhooks: DeploymentWebhooks, public_url: str | None) -> APIRouter:
    api = router("/api/deployments", "deployments")
    api.add_route(PATH, _look(webhooks), methods=["POST"])

    @api.post("/{deployment_id}/webhook", status_code=201)
    async def create_deployment_webhook(request: Request, caller: Caller, deployment_id: str) -> NewWebhook:
        """Makes the address at which the deployment announces changes. It replaces the one before."""
        secret = await webhooks.create(caller, deployment_id)
        return NewWebhook(url=public_address(public_url, request) + path_of(secret))

    @api.delete("/{deployment_id}/webhook", status_code=204)
    async def remove_deployment_webhook(caller: Caller, deployment_id: str) -> None:
        await webhooks.remove(caller, deployment_id)

    return api


def _look(webhooks: DeploymentWebhooks) -> Callable[[Request], Awaitable[Response]]:
    rate = Rate(_CALLS_PER_SECOND, hint="the questions are read about every second anyway")

    @public
    @unread
    async def look(request: Request) -> Response:
        secret = request.query_params.get("token", "")
        rate.spend(token_hash(secret))
        await webhooks.call(secret)
        return Response(status_code=204)

    return look
