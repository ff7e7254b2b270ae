"""The author's own routes (`http.app` in langgraph.json): matched after ours, behind the same authentication.

They are public only with `http.enable_custom_route_auth: false`: a route that the author forgot to protect is
protected here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.routing import Mount
from starlette.types import ASGIApp


def mount(app: FastAPI, custom: ASGIApp) -> Mount:
    """Routes all requests that match no route of ours to the author's app."""
    mounted = Mount("", app=custom)
    app.routes.append(mounted)
    return mounted


@asynccontextmanager
async def lifespan(custom: ASGIApp | None) -> AsyncIterator[None]:
    """Runs the lifespan of the author's app, if it has one."""
    context = getattr(getattr(custom, "router", None), "lifespan_context", None)
    if context is None:
        yield
        return
    async with context(custom):
        yield
