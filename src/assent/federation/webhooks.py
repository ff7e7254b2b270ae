"""Webhooks of deployments: a call says that something has changed there, and the sync looks at once.

The address has a secret, of which only the hash is stored. Nothing that a call contains is read: the questions come
from the deployment itself, as always. So the worst that a stolen address allows is a look too many.
"""

from __future__ import annotations

from assent.errors import NotFound
from assent.federation.deployments import new_webhook_secret, require
from assent.identity.model.access import Principal, Scope
from assent.kernel import events
from assent.kernel.ids import token_hash
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.threads.model.deployments import Deployment
from assent.threads.rows.remote import deployments

PATH = "/api/deployments/look"


def path_of(secret: str) -> str:
    """In the query: logs have the path only."""
    return f"{PATH}?token={secret}"


class DeploymentWebhooks:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def create(self, caller: Principal, deployment_id: str) -> str:
        """Returns the secret of the new webhook, which replaces the one before."""
        caller.require(Scope.ADMIN)
        secret = new_webhook_secret()
        await self._store.write(caller.tenant, _set, caller, deployment_id, token_hash(secret))
        return secret

    async def remove(self, caller: Principal, deployment_id: str) -> Deployment:
        caller.require(Scope.ADMIN)
        return await self._store.write(caller.tenant, _set, caller, deployment_id, None)

    async def call(self, secret: str) -> None:
        """Makes the process that follows the deployment look now."""
        owner = await self._store.read(None, deployments.of_webhook, token_hash(secret))
        if owner is None:
            raise NotFound("no deployment has this webhook", hint="make a new one: assent deployments webhook NAME")
        tenant, deployment_id = owner
        await self._store.write(tenant, deployments.call, deployment_id)


def _set(tx: Tx, caller: Principal, deployment_id: str, webhook_hash: str | None) -> Deployment:
    require(tx, deployment_id, lock=True)
    deployments.change(tx, deployment_id, webhook_hash=webhook_hash)
    events.append(tx, caller, "deployment.changed", f"deployment:{deployment_id}", {"fields": ["webhook"]})
    return require(tx, deployment_id)
