"""The OpenAPI document: encoded once, because it is large and public."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse
from markupsafe import Markup
from starlette.types import ASGIApp

from assent.kernel import fair_threads
from assent.surfaces.http import custom_documents
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


def add_schema(app: FastAPI, custom: ASGIApp | None = None, security: Mapping[str, Any] | None = None) -> None:
    """Adds the route. The first request makes the document, in a thread; concurrent requests share it. `custom` is the
    author's app, and `security` what their auth handlers need."""
    making: asyncio.Task[Document] | None = None

    @public
    async def schema(request: Request) -> Response:
        nonlocal making
        if making is None:
            making = asyncio.create_task(fair_threads.beside(_encode, app, custom, security or {}))
        return (await asyncio.shield(making)).answer(request)

    app.add_route(SCHEMA, schema, include_in_schema=False)


def add_page(app: FastAPI) -> None:
    """A list of all operations, for authors: plain HTML, because a page of ours loads nothing from elsewhere."""

    async def page() -> HTMLResponse:
        text = await fair_threads.beside(_page, app)
        return HTMLResponse(text, headers={"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"})

    app.add_api_route("/docs", page, methods=["GET"], include_in_schema=False)


def _page(app: FastAPI) -> str:
    rows = Markup("").join(
        Markup("<tr><td>{}<td><code>{}</code><td>{}").format(
            method.upper(), path, operation.get("description") or operation.get("summary", "")
        )
        for path, operations in app.openapi()["paths"].items()
        for method, operation in operations.items()
    )
    return Markup(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Assent: the API</title><h1>The API</h1>"
        '<p>The document for programs is <a href="{}">{}</a>.</p><table>{}</table>'
    ).format(SCHEMA, SCHEMA, rows)


def _encode(app: FastAPI, custom: ASGIApp | None, security: Mapping[str, Any]) -> Document:
    document = copy.deepcopy(app.openapi())
    document["components"]["schemas"]["Problem"] = Problem.model_json_schema()
    if custom is not None:
        custom_documents.add_routes(document, custom)
    custom_documents.add_security(document, security)
    return Document.of(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode())
