"""REST: the outbox of the caller's tenant, and the secret by which receivers verify its webhooks."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from assent.kernel import jsontext
from assent.outbox.model import Delivery, DeliveryStatus
from assent.review.deliveries import Deliveries
from assent.surfaces.api.schemas import Cursor, Limit, PageOf
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.routing import router

Subject = Annotated[str | None, Query(max_length=200, description="the subject, such as `run:<id>`")]
Status = Annotated[DeliveryStatus | None, Query()]


class DeliveryView(BaseModel):
    id: str = Field(description="sent as `webhook-id`, the same at every attempt")
    kind: str
    subject: str
    target: str = Field(description="only scheme and host of a URL that another caller set")
    status: DeliveryStatus
    attempts: int
    failure: str | None = Field(description="why the last attempt failed")
    due_at: datetime | None = Field(description="when the next attempt is due; null once it is delivered or has failed")
    attempted_at: datetime | None
    delivered_at: datetime | None
    created_at: datetime

    @classmethod
    def of(cls, delivery: Delivery) -> DeliveryView:
        return cls(**{name: getattr(delivery, name) for name in DeliveryView.model_fields})


class FullDelivery(DeliveryView):
    body: Any = Field(description="the payload; null once it is delivered, because then it is deleted")

    @classmethod
    def of(cls, delivery: Delivery) -> FullDelivery:
        body = jsontext.load(delivery.body) if delivery.body else None
        return cls(**DeliveryView.of(delivery).model_dump(), body=body)


class SigningSecret(BaseModel):
    secret: str = Field(description="for a Standard Webhooks library; keep it secret: it can sign as this server")


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
