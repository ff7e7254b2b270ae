"""Deliveries: what was sent, what still waits, what failed for good, and another try for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from assent.domain import webhooks
from assent.domain.access import Principal, Scope
from assent.domain.deliveries import Delivery, DeliveryStatus
from assent.errors import ConfigError, Conflict, Forbidden, NotFound
from assent.ports import Store
from assent.store import deliveries, events
from assent.store.paging import Page
from assent.store.transaction import Tx


class Deliveries:
    def __init__(self, store: Store, *, secret: Callable[[], bytes]) -> None:
        self._store = store
        self._secret = secret

    async def list(
        self,
        caller: Principal,
        *,
        status: DeliveryStatus | None = None,
        subject: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Delivery]:
        _require(caller, Scope.ITEMS_READ)
        return await self._store.read(
            caller.tenant, deliveries.page, status=status, subject=subject, limit=limit, cursor=cursor
        )

    async def get(self, caller: Principal, delivery_id: str) -> Delivery:
        """What it carries of an item's decision may hold secrets: only an administrator sees that."""
        _require(caller, Scope.ITEMS_READ)
        delivery = await self._store.read(caller.tenant, _get, delivery_id)
        secret = delivery.subject.startswith("item:") and not caller.may(Scope.ADMIN)
        return replace(delivery, body="") if secret else delivery

    async def retry(self, caller: Principal, delivery_id: str) -> Delivery:
        """Sends again what had failed for good. The receiver knows it by the same id as before."""
        _require(caller, Scope.RUNS_WRITE)
        retried = await self._store.write(caller.tenant, _retry, caller, delivery_id)
        return await self.get(caller, retried.id) if caller.may(Scope.ITEMS_READ) else replace(retried, body="")

    def signing_secret(self, caller: Principal) -> str:
        """What a receiver of this tenant needs to verify that a webhook is from here."""
        caller.require(Scope.ADMIN)
        try:
            return webhooks.shown_key(webhooks.signing_key(self._secret(), caller.tenant))
        except ConfigError as error:
            raise Conflict("there is no secret to sign with", hint=error.hint) from error


def _require(caller: Principal, scope: Scope) -> None:
    """A user whom the project's auth file made sees what its handlers show, and they know nothing of deliveries: what
    these carry may be of somebody else's thread."""
    caller.require(scope)
    if caller.user is not None:
        raise Forbidden("the outbox is shown to holders of a key or session of this server")


def _get(tx: Tx, delivery_id: str) -> Delivery:
    delivery = deliveries.get(tx, delivery_id)
    if delivery is None:
        raise NotFound(f"there is no delivery {delivery_id!r}")
    return delivery


def _retry(tx: Tx, caller: Principal, delivery_id: str) -> Delivery:
    before = _get(tx, delivery_id)
    if not deliveries.retry(tx, delivery_id):
        raise Conflict(f"the delivery is {before.status}; only one that has failed is retried")
    told = {"subject": before.subject, "attempts": before.attempts, "failure": before.failure}
    events.append(tx, caller, "delivery.retried", f"delivery:{delivery_id}", told)
    return _get(tx, delivery_id)
