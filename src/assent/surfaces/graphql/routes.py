"""`/graphql`: operations by POST, subscriptions over server-sent events and web sockets, GraphiQL in `assent dev`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Body, Request, Response, WebSocket
from fastapi.responses import HTMLResponse

from assent.app import Engine, Services
from assent.errors import NotInstalled
from assent.extras import require
from assent.surfaces.http import errors
from assent.surfaces.http.passkey_origins import Relying
from assent.surfaces.http.routing import router

if TYPE_CHECKING:
    from assent.surfaces.graphql.server import Server

PATH = "/graphql"
_IDE_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' https://unpkg.com; style-src 'unsafe-inline' https://unpkg.com; "
    "font-src https://unpkg.com data:; img-src data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'"
)


def routes(services: Services, engine: Engine, relying: Relying, *, ide: bool) -> APIRouter:
    api = router("", "graphql")
    served = _Lazy(services, engine, relying)

    @api.post(PATH, responses={200: {"description": "the result, with its errors"}})
    async def graphql(request: Request, body: Annotated[Any, Body()]) -> Response:
        """One operation: `{query, variables, operationName}`. docs/graphql.md has the schema."""
        return await (await served.get()).post(request, body)

    @api.websocket(PATH)
    async def graphql_socket(socket: WebSocket) -> None:
        try:
            server = await served.get()
        except NotInstalled as error:  # raised in a handshake, an error would be answered without its text
            return await socket.send_denial_response(errors.respond(PATH, error))
        await server.socket(socket)

    if ide:
        api.add_api_route(PATH, _graphiql, methods=["GET"], include_in_schema=False)
    return api


class _Lazy:
    """Loads strawberry with the first request, in a thread: most processes never need it."""

    def __init__(self, services: Services, engine: Engine, relying: Relying) -> None:
        self._services, self._engine, self._relying = services, engine, relying
        self._loading: asyncio.Task[Server] | None = None

    async def get(self) -> Server:
        _require()
        if self._loading is None:
            self._loading = asyncio.create_task(asyncio.to_thread(self._load))
        return await asyncio.shield(self._loading)

    def _load(self) -> Server:
        from assent.surfaces.graphql.context import Sources
        from assent.surfaces.graphql.persisted import PersistedQueries
        from assent.surfaces.graphql.schema import schema
        from assent.surfaces.graphql.server import Server

        services, engine = self._services, self._engine
        sources = Sources(engine.inbox, engine.live, services.audit, services.agents, engine.reviews)
        schema()
        return Server(sources, self._relying, PersistedQueries())


def _require() -> None:
    require("graphql", "GraphQL")


async def _graphiql() -> Response:
    """GraphiQL, from files that are pinned by their hash."""
    _require()
    from strawberry.http.ides import get_graphql_ide_html

    text = get_graphql_ide_html("graphiql")
    return HTMLResponse(text, headers={"Content-Security-Policy": _IDE_POLICY})
