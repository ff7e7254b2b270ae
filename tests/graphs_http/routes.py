"""An author's own routes, with something to do when they start and stop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.started = True
    yield


app = FastAPI(lifespan=lifespan)


@app.get("/weather")
async def weather() -> dict[str, bool]:
    return {"sunny": bool(app.state.started)}


@app.get("/ok")
async def ok() -> dict[str, str]:
    return {"never": "reached, because the server's own routes come first"}
