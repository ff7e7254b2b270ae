"""The author's own routes (`http.app` in langgraph.json): behind ours, and behind the same authentication.

Nothing of it is public: a route that the author forgot to protect is protected here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.types import ASGIApp


def mount(app: FastAPI, custom: ASGIApp, prefix: str) -> None:
    """Everything that no route of ours answers goes to the author's app."""
    app.mount(prefix.rstrip("/"), custom)


@asynccontextmanager
async def lifespan(custom: ASGIApp | None) -> AsyncIterator[None]:
    """What the author's app wants to do when it starts and stops."""
    context = getattr(getattr(custom, "router", None), "lifespan_context", None)
    if context is None:
        yield
        return
    async with context(custom):
        yield
