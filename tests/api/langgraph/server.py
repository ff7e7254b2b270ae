"""One process that serves the LangGraph API: the routes of its nouns over a store that other processes may share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import httpx
from fastapi import FastAPI
from langgraph_sdk.client import LangGraphClient

from assent.identity.access import Access
from assent.identity.keys import Keys
from assent.identity.model.access import DEFAULT_TENANT, Kind, operator
from assent.runs.assistants.assistants import Assistants
from assent.runs.metrics import Metrics, Workers
from assent.runs.project.graphs import GraphSpec
from assent.settings import Mode, Settings
from assent.surfaces.api.langgraph import assistants as assistant_routes
from assent.surfaces.api.langgraph import system
from assent.surfaces.http import errors, routing
from assent.surfaces.http.authentication import Authentication
from assent.surfaces.http.limits.admission import Admission
from assent.surfaces.http.limits.request_count import RequestCount
from assent.surfaces.http.public import PublicRoutes
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
        routing.add(self.app, assistant_routes.routes(self.assistants))
        routing.add(self.app, system.routes(self.metrics))
        access = Access(self.store, session_lifetime=timedelta(hours=1))
        settings = Settings(mode=Mode.SERVE)
        public, admission = PublicRoutes(self.app.routes), Admission(settings)
        self.app.add_middleware(Authentication, access=access, settings=settings, public=public, admission=admission)
        self.app.add_middleware(RequestCount, metrics=self.metrics)

    async def client(self, *scopes: str, tenant: str = DEFAULT_TENANT) -> httpx.AsyncClient:
        """An agent of this tenant with a key of its own."""
        key = await Keys(self.store).create(operator(tenant), kind=Kind.AGENT, name="an agent", scopes=scopes)
        transport = httpx.ASGITransport(self.app)
        return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers={"x-api-key": key.secret})

    async def sdk(self) -> LangGraphClient:
        return LangGraphClient(await self.client())
