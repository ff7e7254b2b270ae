"""The OpenAPI document: encoded once, because it is large and public."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import dataclass

from fastapi import FastAPI, Request, Response

from assent.kernel import fair_threads
from assent.surfaces.http.errors import Problem
from assent.surfaces.http.public import public

SCHEMA = "/openapi.json"


@dataclass(frozen=True, slots=True)
class Document:
    body: bytes
    etag: str

    @classmethod
    def of(cls, body: bytes) -> Document:
        return cls(body, f'"{hashlib.sha256(body).hexdigest()[:32]}"')

    def answer(self, request: Request) -> Response:
        headers = {"ETag": self.etag, "Cache-Control": "no-cache"}
        etags = request.headers.get("if-none-match", "")
        if self.etag in (etag.strip().removeprefix("W/") for etag in etags.split(",")):
            return Response(status_code=304, headers=headers)
        return Response(self.body, media_type="application/json", headers=headers)


def add_schema(app: FastAPI) -> None:
    """Adds the route. The first request makes the document, in a thread; concurrent requests share it."""
    making: asyncio.Task[Document] | None = None

    @public
    async def schema(request: Request) -> Response:
        nonlocal making
        if making is None:
            making = asyncio.create_task(fair_threads.beside(_encode, app))
        return (await asyncio.shield(making)).answer(request)

    app.add_route(SCHEMA, schema, include_in_schema=False)


def _encode(app: FastAPI) -> Document:
    document = app.openapi()
    document["components"]["schemas"]["Problem"] = Problem.model_json_schema()
    return Document.of(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode())
