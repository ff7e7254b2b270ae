"""Deliveries: lists sent, waiting and failed ones, and retries failed ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from assent.errors import ConfigError, Conflict, Forbidden, NotFound
from assent.identity.authorization import owned_by
from assent.identity.model.access import Principal, Scope
from assent.kernel import events, jsontext
from assent.kernel.store.paging import Page
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.outbox import deliveries, webhook_signatures
from assent.outbox.model import WEBHOOK, Delivery, DeliveryStatus
from assent.review.rows import items, secrets
from assent.threads.model import webhooks


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
        page = await self._store.read(
            caller.tenant,
            deliveries.page,
            status=status,
            subject=subject,
            limit=limit,
            cursor=cursor,
            visible=owned_by(caller),
        )
        return Page([_addressed(caller, delivery) for delivery in page.items], page.next)

    async def get(self, caller: Principal, delivery_id: str) -> Delivery:
        """Shows the payload of an item's delivery to administrators only, and without secrets."""
        _require(caller, Scope.ITEMS_READ)
        delivery = _addressed(caller, await self._store.read(caller.tenant, _shown, caller, delivery_id))
        secret = delivery.subject.startswith("item:") and not caller.may(Scope.ADMIN)
        return replace(delivery, body="") if secret else delivery

    async def retry(self, caller: Principal, delivery_id: str) -> Delivery:
        """Sends a permanently failed delivery again, with the same id as idempotency key."""
        _require(caller, Scope.RUNS_WRITE)
        retried = await self._store.write(caller.tenant, _retry, caller, delivery_id)
        if caller.may(Scope.ITEMS_READ):
            return await self.get(caller, retried.id)
        return _addressed(caller, replace(retried, body=""))

    def signing_secret(self, caller: Principal) -> str:
        """The key with which a receiver of this tenant verifies webhook signatures."""
        caller.require(Scope.ADMIN)
        try:
            return webhook_signatures.shown_key(webhook_signatures.signing_key(self._secret(), caller.tenant))
        except ConfigError as error:
            raise Conflict("no signing secret is configured", hint=error.hint) from error


def _require(caller: Principal, scope: Scope) -> None:
    """Refuses users of the project's auth file: its handlers filter threads but not deliveries, whose payload may be of
    another user's thread."""
    caller.require(scope)
    if caller.user is not None:
        raise Forbidden("only a key or session of this server can read deliveries")


def _addressed(caller: Principal, delivery: Delivery) -> Delivery:
    """The path and the query of a webhook's target are often the credential of its receiver: only administrators and
    the actor who set the target see them; other callers see the host."""
    if delivery.kind != WEBHOOK or caller.may(Scope.ADMIN) or delivery.owner == caller.actor:
        return delivery
    body = delivery.body and jsontext.dump(webhooks.addressed_by_host(jsontext.load(delivery.body)))
    return replace(delivery, target=webhooks.host_of(delivery.target), body=body)


def _get(tx: Tx, caller: Principal, delivery_id: str) -> Delivery:
    """Hides deliveries about a private thread from other programs."""
    delivery = deliveries.get(tx, delivery_id, visible=owned_by(caller))
    if delivery is None:
        raise NotFound(f"delivery {delivery_id!r} not found")
    return delivery


def _shown(tx: Tx, caller: Principal, delivery_id: str) -> Delivery:
    """Masks the payload of an item's delivery; the webhook payload of a run is masked on creation."""
    delivery = _get(tx, caller, delivery_id)
    kind, _, about = delivery.subject.partition(":")
    item = items.get(tx, about) if kind == "item" else None
    if item is None or not delivery.body:
        return delivery
    cover = secrets.covering_of(tx, secrets.asked_with(tx, item))
    return replace(delivery, body=jsontext.dump(cover(jsontext.load(delivery.body))))


def _retry(tx: Tx, caller: Principal, delivery_id: str) -> Delivery:
    before = _get(tx, caller, delivery_id)
    if not deliveries.retry(tx, delivery_id):
        raise Conflict(f"the delivery is {before.status}; only a failed delivery can be retried")
    details = {"subject": before.subject, "attempts": before.attempts, "failure": before.failure}
    events.append(tx, caller, "delivery.retried", f"delivery:{delivery_id}", details)
    return _get(tx, caller, delivery_id)
