"""One process that serves the LangGraph API: the routes of its nouns over a store that other processes may share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import httpx
from fastapi import FastAPI
from langgraph_sdk.client import LangGraphClient

from assent.api.langgraph import assistants as assistant_routes
from assent.api.langgraph import system as system_routes
from assent.domain.access import DEFAULT_TENANT, Kind, operator
from assent.engine.graphs import GraphSpec
from assent.http import errors
from assent.http.authentication import Authentication
from assent.http.counting import RequestCount
from assent.services.access import Access
from assent.services.assistants import Assistants
from assent.services.keys import Keys
from assent.services.metrics import Metrics, Workers
from assent.settings import Mode, Settings
from tests.contract.stores import AnyStore


@dataclass
class Server:
    """One process: its services over a database that other processes may share."""

    store: AnyStore
    graphs: Mapping[str, GraphSpec]
    assistants: Assistants = field(init=False)
    metrics: Metrics = field(init=False)
    app: FastAPI = field(init=False)

    def __post_init__(self) -> None:
        self.assistants = Assistants(self.store, self.graphs)
        self.metrics = Metrics(self.store, lambda: Workers(most=10, active=3))
        self.app = FastAPI()
        errors.install(self.app)
        self.app.include_router(assistant_routes.routes(self.assistants))
        self.app.include_router(system_routes.routes(self.metrics))
        access = Access(self.store, session_lifetime=timedelta(hours=1))
        self.app.add_middleware(Authentication, access=access, settings=Settings(mode=Mode.SERVE))
        self.app.add_middleware(RequestCount, metrics=self.metrics)

    async def client(self, *scopes: str, tenant: str = DEFAULT_TENANT) -> httpx.AsyncClient:
        """An agent of this tenant with a key of its own."""
        key = await Keys(self.store).create(operator(tenant), kind=Kind.AGENT, name="an agent", scopes=scopes)
        transport = httpx.ASGITransport(self.app)
        return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers={"x-api-key": key.secret})

    async def sdk(self) -> LangGraphClient:
        return LangGraphClient(await self.client())
