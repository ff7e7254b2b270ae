"""The composition root: Settings → store → services → ASGI app. The only module that knows concrete classes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import make_url

from assent.bus.memory import MemoryBus
from assent.engine.loader import LoadedGraphs, load_graphs
from assent.engine.manifest import read_manifest
from assent.engine.project import Project
from assent.engine.queues.embedded import EmbeddedQueue
from assent.engine.runner import Runner
from assent.ports import Store
from assent.services.access import Access
from assent.services.assistants import Assistants
from assent.services.audit import Audit
from assent.services.keys import Keys
from assent.services.metrics import Metrics, Workers
from assent.services.onboarding import Onboarding
from assent.services.retention import Retention
from assent.services.runs import Runs
from assent.services.threads import Threads
from assent.services.users import Users
from assent.settings import Settings
from assent.store import migrations

if TYPE_CHECKING:
    from fastapi import FastAPI


@dataclass(frozen=True, slots=True)
class Engine:
    """What executes graphs, and the use cases over it."""

    project: Project
    queue: EmbeddedQueue
    assistants: Assistants
    runs: Runs
    threads: Threads
    metrics: Metrics


@dataclass(frozen=True, slots=True)
class Services:
    """Every use case, over one store."""

    store: Store
    access: Access
    audit: Audit
    keys: Keys
    users: Users
    onboarding: Onboarding
    retention: Retention


def create_store(settings: Settings) -> Store:
    if make_url(settings.database).get_backend_name() == "sqlite":
        from assent.store.sqlite import SqliteStore

        return SqliteStore(settings.database)
    from assent.store.postgres import PostgresStore

    return PostgresStore(settings.database, connections=settings.database_connections)


def create_services(store: Store, settings: Settings) -> Services:
    access = Access(store, session_lifetime=settings.session_lifetime)
    audit, keys, users = Audit(store), Keys(store), Users(store)
    return Services(
        store=store,
        access=access,
        audit=audit,
        keys=keys,
        users=users,
        onboarding=Onboarding(access, users, keys),
        retention=Retention(store, audit, event_payloads=settings.retention_event_payloads),
    )


@asynccontextmanager
async def open_services(settings: Settings) -> AsyncIterator[Services]:
    """An up-to-date database with the use cases over it, for as long as the block runs."""
    await asyncio.to_thread(migrations.upgrade, settings.database)
    store = create_store(settings)
    await store.open()
    try:
        yield create_services(store, settings)
    finally:
        await store.close()


def load_project(settings: Settings) -> LoadedGraphs:
    """Imports the author's graphs. Called before the event loop starts: their modules may do as they please."""
    if not settings.config.exists():
        return LoadedGraphs({}, {})
    return load_graphs(read_manifest(settings.config), checkpoint_types=settings.checkpoint_types)


@asynccontextmanager
async def open_engine(store: Store, loaded: LoadedGraphs, settings: Settings) -> AsyncIterator[Engine]:
    """Executes runs for as long as the block runs; what is left then is handed back for the next start."""
    project, bus = Project(loaded, store), MemoryBus()
    assistants = Assistants(store, project.graphs)
    runner = Runner(store, project, bus, timeout=settings.run_timeout)
    queue = EmbeddedQueue(store, runner.execute, lock=_lock_file(settings), concurrency=settings.run_concurrency)
    await queue.open()
    try:
        runs = Runs(store, bus, assistants, default_strategy=settings.default_multitask_strategy)
        metrics = Metrics(store, lambda: Workers(settings.run_concurrency, queue.active))
        yield Engine(project, queue, assistants, runs, Threads(store, project), metrics)
    finally:
        await queue.close()


def _lock_file(settings: Settings) -> Path | None:
    file = make_url(settings.database).database
    return None if file in (None, "", ":memory:") else Path(f"{file}.lock")


def create_app(services: Services, engine: Engine, settings: Settings) -> FastAPI:
    from fastapi import FastAPI
    from starlette.middleware.cors import CORSMiddleware

    from assent.api import audit, health, keys, sessions, users
    from assent.api.langgraph import assistants, runs, system, threads
    from assent.api.schemas import Problem
    from assent.http import boundary, errors
    from assent.http.authentication import Authentication
    from assent.web import pages, rendering

    app = FastAPI(
        title="Assent",
        version=version("assent"),
        redoc_url=None,
        docs_url=None,
        responses={"4XX": {"model": Problem}, "5XX": {"model": Problem}},
    )
    errors.install(app)
    app.mount("/static", rendering.static_files())
    for api in (
        health.routes(services.store),
        sessions.routes(services.access),
        keys.routes(services.keys),
        users.routes(services.users),
        audit.routes(services.audit),
        assistants.routes(engine.assistants),
        threads.routes(engine.threads),
        runs.routes(engine.runs),
        system.routes(engine.metrics),
        pages.routes(services.access, services.audit, engine.threads, settings),
    ):
        app.include_router(api)
    # The last one added is the first one met.
    app.add_middleware(Authentication, access=services.access, settings=settings)
    app.add_middleware(boundary.BodyLimit, limit=settings.max_body_bytes)
    app.add_middleware(boundary.LastResort)
    app.add_middleware(CORSMiddleware, **boundary.cors(settings))
    app.add_middleware(boundary.HostCheck, settings=settings)
    app.add_middleware(boundary.RequestLog)
    return app
