"""REST: the outbox of the caller's tenant, and the secret by which receivers verify what comes from it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from assent.api.schemas import Cursor, Limit, PageOf
from assent.domain.deliveries import Delivery, DeliveryStatus
from assent.http.authentication import Caller
from assent.http.routing import router
from assent.services.deliveries import Deliveries
from assent.store import jsontext

Subject = Annotated[str | None, Query(max_length=200, description="what it tells about, such as `run:<id>`")]
Status = Annotated[DeliveryStatus | None, Query()]


class DeliveryView(BaseModel):
    id: str = Field(description="sent along as `webhook-id`, the same at every attempt")
    kind: str
    subject: str
    target: str
    status: DeliveryStatus
    attempts: int
    failure: str | None = Field(description="why the last attempt failed")
    due_at: datetime | None = Field(description="when it is tried next; null once it is settled")
    attempted_at: datetime | None
    delivered_at: datetime | None
    created_at: datetime

    @classmethod
    def of(cls, delivery: Delivery) -> DeliveryView:
        return cls(**{name: getattr(delivery, name) for name in DeliveryView.model_fields})


class FullDelivery(DeliveryView):
    body: Any = Field(description="what is sent; null once it has arrived, because then it is not kept")

    @classmethod
    def of(cls, delivery: Delivery) -> FullDelivery:
        body = jsontext.load(delivery.body) if delivery.body else None
        return cls(**DeliveryView.of(delivery).model_dump(), body=body)


class SigningSecret(BaseModel):
    secret: str = Field(description="for a Standard Webhooks library; whoever has it can sign in this server's name")


def routes(deliveries: Deliveries) -> APIRouter:
    api = router("/api", "deliveries")

    @api.get("/deliveries")
    async def list_deliveries(
        caller: Caller, status: Status = None, subject: Subject = None, limit: Limit = 50, cursor: Cursor = None
    ) -> PageOf[DeliveryView]:
        page = await deliveries.list(caller, status=status, subject=subject, limit=limit, cursor=cursor)
        return PageOf(items=[DeliveryView.of(delivery) for delivery in page.items], next=page.next)

    @api.get("/deliveries/{delivery_id}")
    async def get_delivery(caller: Caller, delivery_id: str) -> FullDelivery:
        return FullDelivery.of(await deliveries.get(caller, delivery_id))

    @api.post("/deliveries/{delivery_id}/retry")
    async def retry_delivery(caller: Caller, delivery_id: str) -> FullDelivery:
        return FullDelivery.of(await deliveries.retry(caller, delivery_id))

    @api.get("/webhooks/secret")
    async def webhook_secret(caller: Caller) -> SigningSecret:
        return SigningSecret(secret=deliveries.signing_secret(caller))

    return api
