"""REST: sample data of a demonstration. It is counted and removed here; only `assent demo` adds it."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel

from assent.review.samples import Samples
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.routing import router


class SamplesView(BaseModel):
    items: int


def routes(samples: Samples) -> APIRouter:
    api = router("/api", "samples")

    @api.get("/sample-data")
    async def count_samples(caller: Caller) -> SamplesView:
        return SamplesView(items=await samples.count(caller))

    @api.delete("/sample-data")
    async def remove_samples(caller: Caller) -> SamplesView:
        """Removes all of it; the response has the number of removed items."""
        return SamplesView(items=await samples.remove(caller))

    return api
